//! Large answers of the cache whose clients read slowly: their memory is limited, and they keep no others out of the cache.

use hostler_testkit::{Site, Upstream, client_with_window, eventually, upstream};

use crate::cache_flights::{FRESH, LARGE, slow_reader};
use crate::cache_hits::{answer, asked};
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

#[tokio::test]
async fn the_copy_that_several_ranges_need_counts_as_a_body_of_the_cache() {
    let (site, _app, body) = with_room_for_one().await;
    site.get("/1")
        .await
        .assert_ok(&body)
        .assert_field("cache-status", "Hostler; fwd=uri-miss; fwd-status=200; stored");
    let halves = format!("Range: bytes=0-{},{}-\r\n", LARGE / 2 - 1000, LARGE / 2);
    let slow = eventually("a slow client with a copy", async || {
        let mut slow = client_with_window(4096, site.address()).await;
        slow.send(format!("GET /1 HTTP/1.1\r\nHost: site.test\r\n{halves}\r\n")).await;
        let head = slow.next_head().await?.text();
        head.starts_with("HTTP/1.1 206 ").then_some(slow)
    })
    .await;
    // There is room for one copy: the next client gets all.
    asked(&site, "GET", "/1", &halves).await.assert_ok(&body);
    drop(slow);
    eventually("room for a copy", async || {
        (asked(&site, "GET", "/1", &halves).await.status == 206).then_some(())
    })
    .await;
}
