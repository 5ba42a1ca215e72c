//! Clients that read their answers slowly or never: their limits, and that they hold no slot.

use std::time::Duration;

use hostler_testkit::{
    Authority, Client, Frame, Site, Step, Upstream, authority, client_with_window, eventually, frame_client,
    ok, text, tls_clients, upstream,
};
use serde_json::Value;
use tokio::net::TcpSocket;
use tokio::time::interval;

use crate::in_front_of;
use crate::tls::{ONE, started};

pub(crate) const MIB: usize = 1 << 20;

/// Bytes whose values show their position.
pub(crate) fn patterned(size: usize) -> Vec<u8> {
    (0..size).map(|n| (n % 251) as u8 ^ (n / 65_521) as u8).collect()
}

/// Answers `/large` with this many bytes, and other paths with `ok`.
pub(crate) async fn app_with_large(size: usize) -> Upstream {
    let large = ok(patterned(size));
    let script = move |seen: &hostler_testkit::Seen| match seen.target().starts_with("/large") {
        true => large.clone(),
        false => ok("ok"),
    };
    upstream().script(script).start().await
}

async fn asks_for_large(site: &Site) -> Client {
    let mut client = client_with_window(4096, site.address()).await;
    client.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n").await;
    client.next_head().await.expect("an answer");
    client
}

pub(crate) async fn spool(site: &Site) -> Value {
    site.status().await["spool"].clone()
}

pub(crate) async fn is_given_back(site: &Site) {
    eventually("the spool and the memory to be free", async || {
        let status = site.status().await;
        (status["spool"]["used"] == 0 && status["answer_memory"]["used"] == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn clients_that_never_read_hold_no_slot_and_leave_no_file() {
    let app = app_with_large(8 * MIB).await;
    let site = in_front_of(&app, "pools.app.concurrency = 2").await;
    let clients = [asks_for_large(&site).await, asks_for_large(&site).await];
    site.settles("app", 0, 0).await;
    for _ in 0..10 {
        site.get("/other").await.assert_ok("ok");
    }
    let spool = spool(&site).await;
    assert_eq!(spool["answers"], 2, "{spool}");
    assert!(spool["used"].as_u64().unwrap() > 8 << 20, "{spool}");
    drop(clients);
    is_given_back(&site).await;
}

#[tokio::test]
async fn the_log_counts_what_a_client_that_leaves_was_sent_and_not_what_waited_for_it() {
    let app = app_with_large(8 * MIB).await;
    let site = in_front_of(&app, "pools.app.concurrency = 1").await;
    let client = asks_for_large(&site).await;
    // Hostler has all of it.
    site.settles("app", 0, 0).await;
    client.reset();
    let line = site.access("/large").await;
    assert_eq!((&line["status"], &line["aborted"]), (&200.into(), &"client".into()), "{line}");
    assert!(line["bytes_out"].as_u64().unwrap() < 8 * MIB as u64, "{line}");
    is_given_back(&site).await;
}

#[tokio::test]
async fn an_answer_larger_than_its_buffer_waits_in_a_file_and_arrives_as_it_was() {
    let size = 30 * MIB;
    let app = app_with_large(size).await;
    let site = in_front_of(&app, "pools.app.concurrency = 1").await;
    let mut slow = asks_for_large(&site).await;
    site.settles("app", 0, 0).await;
    let memory = site.status().await["memory"].as_u64().unwrap();
    assert!(memory < 64 << 20, "bounded: {memory} bytes resident");
    assert!(slow.read_exactly(size).await == patterned(size), "it is another one");
    is_given_back(&site).await;
    slow.get("/other").await.assert_ok("ok");
}

#[tokio::test]
async fn a_chunked_answer_that_waits_in_a_file_keeps_its_chunks() {
    let body = patterned(6 * MIB);
    let chunks = body
        .chunks(100_000)
        .flat_map(|chunk| [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let answer = [&head[..], &chunks.collect::<Vec<u8>>(), b"0\r\nX-Sum: 1\r\n\r\n"].concat();
    let app = upstream().does(text(answer)).start().await;
    let site = in_front_of(&app, "server.answer_buffer = '64 KiB'\npools.app.concurrency = 1").await;
    let mut client = client_with_window(4096, site.address()).await;
    client.send("GET /large HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n").await;
    eventually("a file", async || (spool(&site).await["answers"] == 1).then_some(())).await;
    site.settles("app", 0, 0).await;
    assert!(client.answer().await.body == body, "it is another one");
}

/// Reads 32 KiB a second for six seconds, then the rest. Returns all bytes.
async fn reads_steadily(client: &mut Client, size: usize) -> Vec<u8> {
    let mut ticks = interval(Duration::from_millis(125));
    let mut read = Vec::new();
    for _ in 0..48 {
        ticks.tick().await;
        read.extend(client.read_exactly(4096).await);
    }
    let left = size - read.len();
    read.extend(client.read_exactly(left).await);
    read
}

#[tokio::test]
async fn a_steady_slow_reader_gets_all_of_its_answer() {
    let size = 8 * MIB;
    let app = app_with_large(size).await;
    let site = in_front_of(&app, "server.send_timeout = '4s'").await;
    let mut client = client_with_window(16_384, site.address()).await;
    client.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n").await;
    client.next_head().await.unwrap();
    assert!(reads_steadily(&mut client, size).await == patterned(size));
}

#[tokio::test]
async fn a_steady_slow_reader_over_tls_gets_all_of_its_answer() {
    // So few bytes that TLS soon has all of the rest.
    let size = 5 * MIB;
    let (trust, app) = (authority(), app_with_large(size).await);
    let site = started(&trust, &format!("server.send_timeout = '4s'\n{ONE}"), &app).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16_384).unwrap();
    let stream = socket.connect(site.tls_address()).await.unwrap();
    let mut client = tls_clients(&trust).over("a.test", stream).await.unwrap();
    client.send("GET /large HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    client.next_head().await.unwrap();
    assert!(reads_steadily(&mut client, size).await == patterned(size));
}

#[tokio::test]
async fn a_client_over_tls_that_takes_nothing_of_its_last_answer_keeps_no_connection() {
    let sized = |seen: &hostler_testkit::Seen| ok(patterned(seen.target()[1..].parse().unwrap_or_default()));
    let (trust, app) = (authority(), upstream().script(sized).start().await);
    let site = started(&trust, &format!("server.send_timeout = '1s'\n{ONE}"), &app).await;
    let mut clients = Vec::new();
    // Of some answers the kernel takes the last byte, but not the end of TLS that follows. Which ones depends on the system.
    for window in [6_000, 12_000, 24_000] {
        for size in (16..160).step_by(8) {
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_recv_buffer_size(window).unwrap();
            let stream = socket.connect(site.tls_address()).await.unwrap();
            let mut client = tls_clients(&trust).over("a.test", stream).await.unwrap();
            let path = size * 1024;
            client.send(format!("GET /{path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")).await;
            clients.push(client);
        }
    }
    eventually("all connections to end", async || {
        (site.status().await["connections"]["open"] == 0).then_some(())
    })
    .await;
}

/// A client whose kernel takes little ahead.
async fn tls_client_with_window(trust: &Authority, protocol: &str, site: &Site) -> Client {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let stream = socket.connect(site.tls_address()).await.unwrap();
    tls_clients(trust).speaking(&[protocol]).over("a.test", stream).await.unwrap()
}

async fn bytes_wait_in_tls(site: &Site) {
    eventually("bytes that TLS holds", async || {
        let used = site.status().await["answer_memory"]["used"].as_u64()?;
        (1..100_000).contains(&used).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_tls_holds_of_a_response_counts_as_memory_for_answers() {
    // TLS takes each of them whole, so nothing waits elsewhere. The kernel does not take all of them.
    let (trust, app) = (authority(), app_with_large(60 << 10).await);
    let site = started(&trust, ONE, &app).await;
    let mut client = tls_client_with_window(&trust, "http/1.1", &site).await;
    client.send("GET /large HTTP/1.1\r\nHost: a.test\r\n\r\n".repeat(100)).await;
    bytes_wait_in_tls(&site).await;
    drop(client);
    is_given_back(&site).await;
}

/// Only TLS holds bytes of them that count: heads are not counted before it.
async fn app_with_long_heads() -> Upstream {
    let head = format!("HTTP/1.1 204 No Content\r\nX-Long: {}\r\n\r\n", "x".repeat(8000));
    upstream().answers(head).start().await
}

/// Requests more over HTTP/2 than the kernel takes.
async fn asks_for_long_heads(trust: &Authority, site: &Site) -> Client {
    let mut client = tls_client_with_window(trust, "h2", site).await;
    let fields = [(":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "a.test")];
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(Frame::new(Frame::SETTINGS, 0, 0, "").bytes());
    (0..50).for_each(|n| bytes.extend(Frame::request(2 * n + 1, &fields).bytes()));
    client.send(bytes).await;
    client
}

#[tokio::test]
async fn what_tls_holds_of_responses_over_http_2_counts_as_memory_for_answers() {
    let (trust, app) = (authority(), app_with_long_heads().await);
    let site = started(&trust, ONE, &app).await;
    let client = asks_for_long_heads(&trust, &site).await;
    bytes_wait_in_tls(&site).await;
    drop(client);
    is_given_back(&site).await;
}

#[tokio::test]
async fn tls_gets_little_ahead_while_memory_is_short() {
    let trust = authority();
    let app = app_with_long_heads().await;
    let fixed = format!("[[routes]]\nmatch = '/fixed'\nrespond = '{}'\n", "x".repeat(300_000));
    let routes = "[[routes]]\nmatch = '*'\npool = 'app'";
    let site = started(&trust, &format!("server.answer_memory = '0 B'\n{fixed}{routes}\n{ONE}"), &app).await;
    let mut clients = Vec::new();
    for n in 1..=4 {
        clients.push(asks_for_long_heads(&trust, &site).await);
        app.has_seen(50 * n).await;
        let mut client = tls_client_with_window(&trust, "http/1.1", &site).await;
        client.send("GET /fixed HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
        client.next_head().await.unwrap();
        clients.push(client);
    }
    // While nothing is in use, TLS takes 64 KiB: for one client, or for some at the same time.
    let used = site.status().await["answer_memory"]["used"].as_u64().unwrap();
    assert!(used <= (3 * 64 + 5 * 34) << 10, "{used}");
}

#[tokio::test]
async fn a_full_spool_ends_only_the_answers_of_slow_clients() {
    let app = app_with_large(16 * MIB).await;
    let config = "server.spool_size = '2 MiB'\nserver.answer_buffer = '64 KiB'\npools.app.concurrency = 2";
    let site = in_front_of(&app, config).await;
    let _client = asks_for_large(&site).await;
    eventually("a full spool", async || (spool(&site).await["full"] != 0).then_some(())).await;
    site.get("/other").await.assert_ok("ok");
    let line = site.access("/large").await;
    assert_eq!(line["aborted"], "spool full", "{line}");
    assert_eq!(site.status().await["connections"]["cut"]["spool_full"], 1);
    site.settles("app", 0, 0).await;
    site.get("/other").await.assert_ok("ok");
    is_given_back(&site).await;
}

#[tokio::test]
async fn an_answer_larger_than_the_spool_arrives_if_its_client_reads_on() {
    let size = 8 * MIB;
    let app = app_with_large(size).await;
    let site = in_front_of(&app, "server.spool_size = '1 MiB'\nserver.answer_buffer = '64 KiB'").await;
    let mut client = asks_for_large(&site).await;
    eventually("a full spool", async || (spool(&site).await["full"] != 0).then_some(())).await;
    assert!(client.read_exactly(size).await == patterned(size));
}

#[tokio::test]
async fn answers_that_must_not_be_buffered_are_not_stored_and_only_streams_give_their_slot_back() {
    let direct = "[[routes]]\nmatch = '*'\npool = 'app'\nbuffer = 'none'";
    for (field, route, in_use) in [
        ("Content-Type: text/event-stream", "", 0),
        ("X-Accel-Buffering: no", "", 1),
        ("Content-Type: text/plain", direct, 1),
    ] {
        let head = format!("HTTP/1.1 200 OK\r\n{field}\r\nTransfer-Encoding: chunked\r\n\r\n");
        let event = format!("{:x}\r\n{}\r\n", MIB, "x".repeat(MIB));
        let steps = [text(head), text(event.repeat(16)), vec![Step::Hold]].concat();
        let app = upstream().does(steps).start().await;
        let site = in_front_of(&app, &format!("pools.app.concurrency = 1\n{route}")).await;
        let mut client = asks_for_large(&site).await;
        client.read_exactly(3 * MIB).await;
        let mut seconds = interval(Duration::from_secs(1));
        for _ in 0..2 {
            seconds.tick().await;
        }
        assert_eq!(site.pool("app").await["in_use"], in_use, "{field}");
        assert_eq!(spool(&site).await["answers"], 0, "{field}");
    }
}

fn request(stream: u32) -> Frame {
    let fields = [(":method", "GET"), (":scheme", "http"), (":path", "/large"), (":authority", "a")];
    Frame::request(stream, &fields)
}

/// An initial window of zero (SETTINGS_INITIAL_WINDOW_SIZE).
fn no_windows() -> Frame {
    Frame::new(Frame::SETTINGS, 0, 0, [0, 4, 0, 0, 0, 0])
}

#[tokio::test]
async fn streams_without_a_window_fill_no_memory_and_too_slow_ones_are_reset() {
    const STREAMS: u32 = 50;
    let app = app_with_large(128 << 10).await;
    let config = "server.answer_memory = '256 KiB'\nserver.min_send_rate = '1 KiB'\n\
        pools.app.concurrency = 8\npools.app.queue.limit = 1000";
    let site = in_front_of(&app, config).await;
    let mut clients = Vec::new();
    for _ in 0..4 {
        let mut client = frame_client(site.address()).await;
        let requests: Vec<_> = (0..STREAMS).map(|n| request(2 * n + 1)).collect();
        client.send(&[&[no_windows()][..], &requests].concat()).await;
        clients.push(client);
    }
    app.has_seen(4 * STREAMS as usize).await;
    site.settles("app", 0, 0).await;
    eventually("all of it in files", async || {
        let status = site.status().await;
        let used = status["answer_memory"]["used"].as_u64()?;
        (used <= (256 << 10) && status["spool"]["used"].as_u64()? > 20 << 20).then_some(())
    })
    .await;
    let client = &mut clients[0];
    let mut seconds = interval(Duration::from_secs(1));
    let byte = |n: u32| Frame::new(Frame::WINDOW_UPDATE, 0, 2 * n + 1, [0, 0, 0, 1]);
    for _ in 0..20 {
        seconds.tick().await;
        client.send(&(0..STREAMS).map(byte).collect::<Vec<_>>()).await;
    }
    assert_eq!(client.next_of(Frame::GOAWAY).await.code(), 11);
    assert!(site.status().await["connections"]["cut"]["too_slow"].as_u64().unwrap() > 0);
    drop(clients);
    is_given_back(&site).await;
}

#[tokio::test]
async fn a_stream_that_waited_in_a_file_arrives_as_it_was() {
    let size = 3 * MIB;
    let app = app_with_large(size).await;
    let site = in_front_of(&app, "pools.app.concurrency = 1").await;
    let mut client = frame_client(site.address()).await;
    client.send(&[no_windows(), request(1)]).await;
    site.settles("app", 0, 0).await;
    app.has_seen(1).await;
    eventually("a file", async || (spool(&site).await["answers"] == 1).then_some(())).await;
    site.settles("app", 0, 0).await;
    let more = (size as u32).to_be_bytes();
    client
        .send(&[Frame::new(Frame::WINDOW_UPDATE, 0, 0, more), Frame::new(Frame::WINDOW_UPDATE, 0, 1, more)])
        .await;
    let mut body = Vec::<u8>::new();
    loop {
        let frame = client.next_of(Frame::DATA).await;
        body.extend(&frame.payload);
        if frame.flags & Frame::END_STREAM != 0 {
            break;
        }
    }
    assert!(body == patterned(size), "{} bytes", body.len());
    is_given_back(&site).await;
}
