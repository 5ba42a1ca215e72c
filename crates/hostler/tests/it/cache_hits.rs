//! Answers from memory: what is kept, for whom, and what it is like when it is sent again.

use hostler_testkit::{Seen, Site, Upstream, text, upstream};

use crate::site;

/// A site whose only route keeps answers as they say themselves.
pub(crate) async fn with_cache(upstream: &Upstream) -> Site {
    with_route(upstream, "cache = 'standard'").await
}

/// A site whose only route has these keys.
pub(crate) async fn with_route(upstream: &Upstream, keys: &str) -> Site {
    site(&format!("[[routes]]\nmatch = '*'\npool = 'app'\n{keys}\n")).with("app", upstream).start().await
}

/// An answer with these field lines and this body.
pub(crate) fn answer(fields: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{fields}\r\n{body}")
}

const FRESH: &str = "Cache-Control: max-age=60\r\n";

#[tokio::test]
async fn what_says_that_it_stays_good_is_asked_for_once() {
    let app = upstream().answers(answer(FRESH, "hello")).start().await;
    let site = with_cache(&app).await;
    let first = site.get("/a?b=1").await;
    first.assert_ok("hello").assert_field("cache-status", "Hostler; fwd=uri-miss; fwd-status=200; stored");
    let mut client = site.connect().await;
    for _ in 0..3 {
        let again = client.get("/a?b=1").await;
        again.assert_ok("hello").assert_field("cache-control", "max-age=60").assert_field("age", "0");
        assert!(again.field("cache-status").unwrap().starts_with("Hostler; hit; ttl="), "{again:?}");
    }
    client.get("/a?b=2").await.assert_ok("hello");
    assert_eq!(app.targets(), ["/a?b=1", "/a?b=2"]);
}
