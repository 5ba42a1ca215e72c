//! Large answers of the cache whose clients read slowly: their memory is limited, and they keep no others out of the cache.

use hostler_testkit::{Site, Upstream, eventually, upstream};

use crate::cache_flights::{FRESH, LARGE, slow_reader};
use crate::cache_hits::answer;
use crate::site;

/// A site whose store has room for one of its answers, with this body.
async fn with_room_for_one() -> (Site, Upstream, String) {
    let body = "x".repeat(LARGE);
    let app = upstream().answers(answer(FRESH, &body)).start().await;
    let config = "[cache]\nmemory = '8 MB'\nmax_entry = '7 MB'\n[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\n";
    let site = site(config).with("app", &app).start().await;
    (site, app, body)
}

#[tokio::test]
async fn answers_that_slow_clients_still_read_do_not_exceed_the_memory() {
    let (site, app, body) = with_room_for_one().await;
    let mut readers = Vec::new();
    for (path, stored) in [("/1", "; stored"), ("/2", "; stored"), ("/3", "")] {
        readers.push((slow_reader(&site, path).await, stored));
        app.has_seen(readers.len()).await;
        site.settles("app", 0, 0).await;
    }
    for (mut reader, stored) in readers {
        let status = format!("Hostler; fwd=uri-miss; fwd-status=200{stored}");
        reader.answer().await.assert_ok(&body).assert_field("cache-status", &status);
    }
    site.get("/4")
        .await
        .assert_ok(&body)
        .assert_field("cache-status", "Hostler; fwd=uri-miss; fwd-status=200; stored");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_ended_while_clients_hold_too_much_of_the_cache() {
    let (site, app, body) = with_room_for_one().await;
    let mut readers = Vec::new();
    for path in ["/1", "/2"] {
        readers.push(slow_reader(&site, path).await);
        app.has_seen(readers.len()).await;
    }
    eventually("one to be ended", async || {
        (site.status().await["connections"]["cut"]["cache_full"] == 1).then_some(())
    })
    .await;
    site.get("/3").await.assert_ok(&body);
}
