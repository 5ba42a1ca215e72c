//! Clients that read one answer at different speeds while it arrives, or leave it.

use hostler_testkit::{Frame, Step, client_with_window, frame_client, text, upstream};

use crate::cache_hits::{assert_cache, with_cache, with_route};
use crate::site;

const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nCache-Control: max-age=60\r\n\r\n5\r\n01234\r\n";
const OF_TEN: &str = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nCache-Control: max-age=60\r\n\r\n01234";

/// Two clients leave each of these answers, whose members send `more` and then go on until they are told.
async fn leaving_frees_the_slots(begun: &'static str, more: &'static str) {
    let app = upstream().script(move |_| {
        [text(begun), vec![Step::Hold], text(more), vec![Step::AwaitFin, Step::Close]].concat()
    });
    let app = app.start().await;
    let site = site("pools.app.concurrency = 2\n[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\n");
    let site = site.with("app", &app).start().await;
    for path in ["/a", "/b"] {
        for mut client in [site.begin(path).await, site.begin(path).await] {
            client.read_until("01234").await;
            client.reset();
        }
    }
    site.settles("app", 2, 0).await;
    // The next write shows that the clients have left.
    app.release_all();
    site.settles("app", 0, 0).await;
    assert_eq!(app.targets(), ["/a", "/b"]);
    assert!(app.requests().iter().all(|seen| seen.fin));
}

#[tokio::test]
async fn an_answer_of_unknown_length_ends_at_its_member_when_all_clients_have_left() {
    leaving_frees_the_slots(CHUNKED, "2\r\n56\r\n").await;
}

#[tokio::test]
async fn an_answer_of_known_length_that_does_not_come_ends_when_all_clients_have_left() {
    leaving_frees_the_slots(OF_TEN, "56").await;
}

#[tokio::test]
async fn an_answer_that_is_encoded_for_its_client_ends_when_that_has_left() {
    // More than an encoder holds back.
    let digits: String = (0..40_000_u32).map(|n| format!("{:x}", n.wrapping_mul(2_654_435_761))).collect();
    let more = format!("{:x}\r\n{digits}\r\n", digits.len());
    let app = upstream().script(move |_| {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\n\
            Cache-Control: max-age=60\r\n\r\n";
        let more = || [vec![Step::Hold], text(&more)].concat();
        [text(head), more(), more(), vec![Step::AwaitFin, Step::Close]].concat()
    });
    let app = app.start().await;
    let site = with_route(&app, "cache = 'standard'\ncompress = true").await;
    let mut client = site.connect().await;
    client.send("GET / HTTP/1.1\r\nHost: site.test\r\nAccept-Encoding: gzip\r\n\r\n").await;
    app.has_seen(1).await;
    app.release(1);
    client.read_until(": gzip").await;
    client.reset();
    app.release(1);
    site.settles("app", 0, 0).await;
    assert!(app.requests()[0].fin);
}

#[tokio::test]
async fn an_answer_that_ends_soon_after_its_client_has_left_is_stored() {
    let held = |bytes: &str| [vec![Step::Hold], text(bytes)].concat();
    let app = upstream().script(move |_| [text(OF_TEN), held("56"), held("789")].concat()).start().await;
    let site = with_cache(&app).await;
    let mut client = site.begin("/page").await;
    client.read_until("01234").await;
    client.reset();
    app.release(1);
    assert_eq!(site.access("/page").await["aborted"], "client");
    app.release(1);
    site.settles("app", 0, 0).await;
    let stored = site.get("/page").await;
    stored.assert_ok("0123456789");
    assert_cache(&stored, "hit");
}

#[tokio::test]
async fn a_range_behind_what_has_come_may_take_longer_than_a_pause() {
    const BYTES: usize = 20;
    let app = upstream().script(|_| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\nCache-Control: max-age=60\r\n\r\n");
        let piece = |at: usize| [vec![Step::Hold], text([b'a' + at as u8])].concat();
        text(head).into_iter().chain((0..BYTES).flat_map(piece)).collect::<Vec<_>>()
    });
    let app = app.start().await;
    let config = "pools.app.response_idle_timeout = '2s'\n\
        [[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\n";
    let site = site(config).with("app", &app).start().await;
    let mut client = site.connect().await;
    client.send("GET /film HTTP/1.1\r\nHost: site.test\r\nRange: bytes=-1\r\n\r\n").await;
    app.has_seen(1).await;
    // In all it takes longer than a pause may.
    let mut pace = tokio::time::interval(std::time::Duration::from_millis(150));
    for _ in 0..BYTES {
        pace.tick().await;
        app.release(1);
    }
    client.answer().await.assert_status(206).assert_says("t");
}

#[tokio::test]
async fn all_clients_of_an_answer_that_grows_over_max_entry_get_all_of_it() {
    let rest = "x".repeat(12 << 20);
    let chunk = format!("{:x}\r\n{rest}\r\n0\r\n\r\n", rest.len());
    let app = upstream().script(move |_| [text(CHUNKED), vec![Step::Hold], text(&chunk)].concat());
    let app = app.start().await;
    let site = with_cache(&app).await;
    let mut fast = site.begin("/film").await;
    app.has_seen(1).await;
    let mut slow = client_with_window(4096, site.address()).await;
    slow.send("GET /film HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n").await;
    slow.read_until("01234").await;
    app.release_all();
    let body = format!("01234{rest}");
    // The slow one reads nothing before the fast one has all.
    fast.answer().await.assert_ok(&body);
    let (rest_of_slow, _) = slow.rest().await;
    assert_eq!(rest_of_slow.matches('x').count(), rest.len());
    assert_eq!(app.targets(), ["/film"]);
}

#[tokio::test]
async fn a_slow_client_of_http2_holds_neither_the_slot_nor_the_others_of_an_answer_over_max_entry() {
    let rest = "x".repeat(12 << 20);
    let chunk = format!("{:x}\r\n{rest}\r\n0\r\n\r\n", rest.len());
    let app = upstream().script(move |_| [text(CHUNKED), vec![Step::Hold], text(&chunk)].concat());
    let app = app.start().await;
    // Its silence alone must not end it.
    let config = "server.send_timeout = '10m'\npools.app.concurrency = 1\n\
        [[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\n";
    let site = site(config).with("app", &app).start().await;
    let mut slow = frame_client(site.address()).await;
    let fields = [(":method", "GET"), (":scheme", "http"), (":path", "/film"), (":authority", "site.test")];
    // Without a window it takes no byte of the body.
    let no_windows = Frame::new(Frame::SETTINGS, 0, 0, [0, 4, 0, 0, 0, 0]);
    slow.send(&[no_windows, Frame::request(1, &fields)]).await;
    slow.next_of(Frame::HEADERS).await;
    let mut fast = site.connect().await;
    fast.send("GET /film HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n").await;
    fast.read_until("01234").await;
    app.release_all();
    let (rest_of_fast, _) = fast.rest().await;
    assert_eq!(rest_of_fast.matches('x').count(), rest.len());
    site.settles("app", 0, 0).await;
    assert_eq!(app.targets(), ["/film"]);
}
