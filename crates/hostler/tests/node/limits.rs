//! Heads that Hostler accepts are accepted by Node too.

use hostler_testkit::ReceivedAnswer;

use super::site::{Site, app, source};

const COOKIE_LENGTH: &str =
    "require('http').createServer((req, res) => res.end(`${req.headers.cookie.length}`)).listen(3000);";

async fn with_cookie(site: &Site, length: usize) -> ReceivedAnswer {
    site.send(format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: {}\r\n\r\n", "c".repeat(length))).await
}

#[tokio::test]
async fn a_head_as_large_as_allowed_reaches_the_worker() {
    for bind in ["socket", "port"] {
        let app = COOKIE_LENGTH.replace("3000", "process.env.PORT ?? 3000");
        let site = source(&app).option(&format!("pools.app.bind={bind}")).started().await;
        for length in [30 << 10, (64 << 10) - 256] {
            with_cookie(&site, length).await.assert_ok(&length.to_string());
        }
        with_cookie(&site, 64 << 10).await.assert_refused(431, "header_too_large");
    }
}

#[tokio::test]
async fn a_body_as_large_as_allowed_reaches_the_worker_whole() {
    let site = app("diary.cjs").started().await;
    for size in [1, 200 << 10, 10 << 20] {
        let answer = site.post("/", vec![b'x'; size]).await;
        assert_eq!(answer.assert_status(200).json()["received"], size);
    }
    site.post("/", vec![b'x'; (10 << 20) + 1]).await.assert_refused(413, "body_too_large");
    assert_eq!(site.diary().len(), 3);
}

#[tokio::test]
async fn a_changed_head_limit_of_hostler_applies_to_its_workers() {
    let site = source(COOKIE_LENGTH).option("server.max_header_size=256 KiB").started().await;
    with_cookie(&site, 200 << 10).await.assert_status(200);
}

#[tokio::test]
async fn a_limit_that_the_operator_has_set_for_node_stays() {
    let site = source(COOKIE_LENGTH).env("NODE_OPTIONS", "--max-http-header-size=20000").started().await;
    // The worker's own answer.
    with_cookie(&site, 30 << 10).await.assert_status(431).assert_no_field("hostler-refusal");
}
