//! Encoded forms of stored answers: encoded once for all clients, and stored beside the answer.

use hostler_testkit::{ReceivedAnswer, Site, Step, Upstream, text, upstream};

use crate::cache_hits::{asked, assert_cache};
use crate::compression::{html, page, plain};
use crate::site;

const FRESH: &str = "ETag: \"v1\"\r\nCache-Control: max-age=60\r\n";
const GZIP: &str = "Accept-Encoding: gzip\r\n";

async fn with_compression(app: &Upstream) -> Site {
    let config = "server.compress = true\n[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'";
    site(config).with("app", app).start().await
}

async fn encoded(site: &Site) -> serde_json::Value {
    site.status().await["compression"]["encoded"].clone()
}

#[track_caller]
fn assert_gzip(answer: &ReceivedAnswer, body: &str) {
    answer
        .assert_status(200)
        .assert_field("content-encoding", "gzip")
        .assert_field("vary", "Accept-Encoding");
    answer.assert_field("etag", "W/\"v1\"");
    assert_eq!(plain(answer), body);
}

#[tokio::test]
async fn an_answer_is_compressed_once_for_all_clients() {
    // One of them takes several turns to encode, the other takes one.
    for body in [page(), page()[..4000].to_owned()] {
        let sent = body.clone();
        let app = upstream().script(move |_| html(FRESH, &sent)).start().await;
        let site = with_compression(&app).await;
        assert_gzip(&asked(&site, "GET", "/", GZIP).await, &body);
        let mut last = None;
        for _ in 0..5 {
            let hit = asked(&site, "GET", "/", GZIP).await;
            assert_gzip(&hit, &body);
            assert_cache(&hit, "hit");
            last = Some(hit);
        }
        let size = last.unwrap().body.len().to_string();
        let head = asked(&site, "HEAD", "/", GZIP).await;
        head.assert_status(200)
            .assert_field("content-encoding", "gzip")
            .assert_field("content-length", &size);
        assert_eq!(encoded(&site).await, 1);
        assert_eq!(app.targets().len(), 1);
    }
}

#[tokio::test]
async fn a_client_without_compression_gets_the_plain_answer() {
    let app = upstream().script(|_| html(FRESH, &page())).start().await;
    let site = with_compression(&app).await;
    for _ in 0..2 {
        assert_gzip(&asked(&site, "GET", "/", GZIP).await, &page());
        let plain = asked(&site, "GET", "/", "").await;
        plain.assert_ok(&page()).assert_no_field("content-encoding").assert_field("vary", "Accept-Encoding");
        plain.assert_field("etag", "\"v1\"");
    }
    let part = asked(&site, "GET", "/", &format!("{GZIP}Range: bytes=0-3\r\n")).await;
    part.assert_status(206).assert_no_field("content-encoding").assert_says("<li>");
    part.assert_field("vary", "Accept-Encoding");
    let parts = asked(&site, "GET", "/", &format!("{GZIP}Range: bytes=0-3,1000-1003\r\n")).await;
    parts.assert_status(206).assert_field("vary", "Accept-Encoding");
    let old = site.send(format!("GET / HTTP/1.0\r\nHost: site.test\r\n{GZIP}\r\n")).await;
    assert_eq!(plain_or_not(&old), page());
    let same = asked(&site, "GET", "/", &format!("{GZIP}If-None-Match: W/\"v1\"\r\n")).await;
    same.assert_status(304).assert_field("etag", "W/\"v1\"").assert_field("vary", "Accept-Encoding");
    let same = asked(&site, "GET", "/", "If-None-Match: \"v1\"\r\n").await;
    same.assert_status(304).assert_field("etag", "\"v1\"").assert_field("vary", "Accept-Encoding");
    assert_eq!(app.targets().len(), 1);
}

fn plain_or_not(answer: &ReceivedAnswer) -> String {
    if answer.field("content-encoding").is_some() { plain(answer) } else { answer.text() }
}

#[tokio::test]
async fn requests_that_wait_for_one_fetch_share_one_encoder() {
    let app = upstream().script(|_| [vec![Step::Hold], html(FRESH, &page())].concat()).start().await;
    let site = with_compression(&app).await;
    let mut clients = Vec::new();
    for _ in 0..50 {
        let mut client = site.connect().await;
        client.send(format!("GET / HTTP/1.1\r\nHost: site.test\r\n{GZIP}\r\n")).await;
        clients.push(client);
    }
    app.has_seen(1).await;
    app.release_all();
    for client in &mut clients {
        assert_gzip(&client.answer().await, &page());
    }
    assert_eq!((app.targets().len(), encoded(&site).await), (1, 1.into()));
}

#[tokio::test]
async fn a_revalidated_entry_keeps_its_compressed_form() {
    let app = upstream().script(|seen| match seen.field("if-none-match") {
        None => html("ETag: \"v1\"\r\nCache-Control: max-age=0\r\n", &page()),
        Some(_) => text("HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\nX-New: 1\r\n\r\n"),
    });
    let app = app.start().await;
    let site = with_compression(&app).await;
    for _ in 0..4 {
        assert_gzip(&asked(&site, "GET", "/", GZIP).await, &page());
    }
    let hit = asked(&site, "GET", "/", GZIP).await;
    assert_gzip(hit.assert_field("x-new", "1"), &page());
    assert_eq!((app.targets().len(), encoded(&site).await), (2, 1.into()));
}

#[tokio::test]
async fn a_date_does_not_say_of_which_form_a_client_has_a_part() {
    let date = "Mon, 01 Jan 2024 00:00:00 GMT";
    let fields = format!("Last-Modified: {date}\r\nCache-Control: max-age=60\r\n");
    let app = upstream().script(move |_| html(&fields, &page())).start().await;
    let site = with_compression(&app).await;
    site.get("/").await.assert_ok(&page());
    let part = "Range: bytes=0-3\r\n";
    let guarded = format!("{part}If-Range: {date}\r\n");
    // The client of the gzip form would put bytes of the plain one behind it.
    asked(&site, "GET", "/", &format!("{GZIP}{guarded}"))
        .await
        .assert_status(200)
        .assert_no_field("content-range");
    asked(&site, "GET", "/", &guarded).await.assert_status(206).assert_says("<li>");
    asked(&site, "GET", "/", &format!("{GZIP}{part}")).await.assert_status(206).assert_says("<li>");
}
