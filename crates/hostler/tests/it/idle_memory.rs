//! Idle connections: they give back the memory of their last request, serve the next one all the same, and leave none when they close. Also
//! what stays of frames.

use std::time::Duration;

use hostler_testkit::{
    Client, Frame, FrameClient, Site, authority, block, eventually, frame_client, indexed_block, tls_clients,
    upstream,
};
use tokio::time::timeout;

use crate::in_front_of;
use crate::tls::{ONE, started};
use crate::tunnels::{Member, in_front};

const PLAIN: usize = 400;
const SECURE: usize = 20;
const MIB: u64 = 1 << 20;

/// The resident memory of the program in bytes.
async fn memory(site: &Site) -> u64 {
    site.status().await["memory"].as_u64().unwrap()
}

/// A request whose head a connection holds: 400 of them, with their copies and the rest of their state, need more than 4 MiB.
fn long_request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a.test\r\nCookie: {}\r\n\r\n", "abcdefgh".repeat(430))
}

async fn with_one_request_each(site: &Site, trust: &hostler_testkit::Authority) -> Vec<Client> {
    let (mut clients, tls) = (Vec::new(), tls_clients(trust));
    for n in 0..PLAIN + SECURE {
        let mut client = match n < PLAIN {
            true => site.connect().await,
            false => tls.connect("a.test", site.tls_address()).await,
        };
        client.send(long_request("/first")).await;
        client.answer().await.assert_ok("ok");
        clients.push(client);
    }
    clients
}

#[tokio::test]
async fn an_idle_connection_gives_its_memory_back_and_serves_its_next_requests() {
    let (trust, app) = (authority(), upstream().start().await);
    let site = started(&trust, ONE, &app).await;
    drop(with_one_request_each(&site, &trust).await);
    eventually("no connection", async || (site.status().await["connections"]["open"] == 0).then_some(()))
        .await;
    let before = memory(&site).await;
    let mut clients = with_one_request_each(&site, &trust).await;
    eventually("memory to be given back", async || (memory(&site).await < before + 2 * MIB).then_some(()))
        .await;
    for (n, client) in clients.iter_mut().enumerate() {
        let requests = [long_request("/second"), long_request("/third")].concat();
        // Every second client sends an empty line first, and the first head in two pieces.
        let (one, other) = requests.split_at(if n % 2 == 0 { requests.len() } else { 9 });
        if n % 2 == 1 {
            client.send("\r\n").await;
        }
        client.send(one).await;
        client.send(other).await;
        client.answer().await.assert_ok("ok");
        client.answer().await.assert_ok("ok");
    }
    drop(clients);
    eventually("memory as before", async || (memory(&site).await < before + MIB).then_some(())).await;
}

const METHOD_AND_SCHEME: [(&str, &str); 2] = [(":method", "GET"), (":scheme", "http")];

/// Sends a request, and waits for the end of its answer.
async fn ask(client: &mut FrameClient, stream: u32, head: Vec<u8>) {
    client.send(&[Frame::request_of(stream, head)]).await;
    let ends = |frame: &Frame| frame.stream == stream && frame.flags & Frame::END_STREAM != 0;
    while !ends(&client.next().await.unwrap()) {}
}

async fn http2_clients_with_one_request_each(site: &Site, count: usize) -> Vec<FrameClient> {
    let mut clients = Vec::new();
    for _ in 0..count {
        let mut client = frame_client(site.address()).await;
        let table = indexed_block(&[(":authority", "a.test"), (":path", "/first"), ("x-kept", "kept")]);
        ask(&mut client, 1, [block(&METHOD_AND_SCHEME), table].concat()).await;
        clients.push(client);
    }
    clients
}

#[tokio::test]
async fn an_idle_http2_connection_gives_its_buffers_back_and_serves_its_next_requests() {
    const CONNECTIONS: usize = 400;
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    drop(http2_clients_with_one_request_each(&site, CONNECTIONS).await);
    eventually("no connection", async || (site.status().await["connections"]["open"] == 0).then_some(()))
        .await;
    let before = memory(&site).await;
    let mut clients = http2_clients_with_one_request_each(&site, CONNECTIONS).await;
    // With the buffers of `h2` it is about 23 KiB for each connection.
    let most = before + CONNECTIONS as u64 * 12 * 1024;
    eventually("memory to be given back", async || (memory(&site).await < most).then_some(())).await;
    for (n, client) in clients.iter_mut().enumerate() {
        if n % 2 == 0 {
            client.send(&[Frame::new(Frame::PING, 0, 0, [7; 8])]).await;
            assert_eq!(client.next_of(Frame::PING).await.payload, [7; 8]);
        }
        // These are the fields of the first request in the dynamic table: its path, its host, and the last one.
        ask(client, 3, [block(&METHOD_AND_SCHEME), vec![0x80 | 63, 0x80 | 64, 0x80 | 62]].concat()).await;
    }
    assert_eq!(app.requests().len(), 3 * CONNECTIONS);
    for seen in app.requests() {
        assert_eq!(seen.target(), "/first");
        assert_eq!(["Host", "X-Kept"].map(|name| seen.field(name).unwrap()), ["a.test", "kept"]);
    }
}

/// What tells a client that the table of the responses was emptied: its maximum size is 0, and then 4096 (RFC 7541 section 6.3).
pub(super) const EMPTIED_TABLE: &[u8] = &[0x20, 0x3f, 0xe1, 0x1f];

/// The encoded head of the response to a request, before which the connection was silent for longer than a second.
async fn head_after_silence(client: &mut FrameClient, stream: u32) -> Vec<u8> {
    while let Ok(Some(_)) = timeout(Duration::from_millis(1500), client.next()).await {}
    let fields = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a.test")];
    client.send(&[Frame::request(stream, &fields)]).await;
    client.next_of(Frame::HEADERS).await.payload
}

#[tokio::test]
async fn an_idle_http2_connection_empties_the_table_of_its_responses_and_says_so() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let (mut client, mut stream) = (frame_client(site.address()).await, 1);
    let first = head_after_silence(&mut client, stream).await;
    assert!(!first.starts_with(EMPTIED_TABLE), "nothing was in it: {first:?}");
    eventually("an emptied table", async || {
        stream += 2;
        let head = head_after_silence(&mut client, stream).await;
        head.starts_with(EMPTIED_TABLE).then_some(())
    })
    .await;
}

/// A client whose table has the paths of 100 requests: 40 bytes each, in frames of 15,000.
async fn http2_client_with_a_full_table(site: &Site) -> FrameClient {
    let (mut client, filler) = (frame_client(site.address()).await, "f".repeat(15_000));
    for request in 0..100 {
        let path = indexed_block(&[(":path", &format!("/{request}"))]);
        let rest = block(&[(":authority", "a.test"), ("filler", &filler)]);
        ask(&mut client, 2 * request + 1, [block(&METHOD_AND_SCHEME), path, rest].concat()).await;
    }
    client
}

#[tokio::test]
async fn fields_in_the_table_of_a_client_do_not_keep_the_frames_that_brought_them() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    drop(http2_client_with_a_full_table(&site).await);
    let before = memory(&site).await;
    let mut clients = Vec::new();
    for _ in 0..20 {
        clients.push(http2_client_with_a_full_table(&site).await);
    }
    // The frames have 30 MB.
    eventually("memory as before", async || (memory(&site).await < before + 10 * MIB).then_some(())).await;
}

/// A client whose head has not ended. It has 1,950 fields of one byte each.
async fn http2_client_with_an_open_head(site: &Site) -> FrameClient {
    let mut client = frame_client(site.address()).await;
    // `age` without a value, as the static table has it (RFC 7541 appendix A).
    let head = [block(&METHOD_AND_SCHEME), vec![0x80 | 21; 1950]].concat();
    client.send(&[Frame::new(Frame::PING, 0, 0, [0; 8]), Frame::new(Frame::HEADERS, 0, 1, head)]).await;
    client.next_of(Frame::PING).await;
    client
}

#[tokio::test]
async fn an_http2_head_that_has_not_ended_takes_no_more_memory_than_its_bytes() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "[server]\nheader_timeout = \"2min\"\n").await;
    drop(http2_client_with_an_open_head(&site).await);
    let before = memory(&site).await;
    let mut clients = Vec::new();
    for _ in 0..200 {
        clients.push(http2_client_with_an_open_head(&site).await);
    }
    // The decoded fields have 28 MB.
    eventually("memory as before", async || (memory(&site).await < before + 10 * MIB).then_some(())).await;
    // A head that ends is decoded.
    let last = block(&[(":path", "/"), (":authority", "a.test")]);
    let pseudo = Frame::new(Frame::HEADERS, Frame::END_STREAM, 1, block(&METHOD_AND_SCHEME));
    let mut client = frame_client(site.address()).await;
    client.send(&[pseudo, Frame::new(Frame::CONTINUATION, Frame::END_HEADERS, 1, last)]).await;
    assert_eq!(client.next_of(Frame::HEADERS).await.payload[0], 0x88, "200");
}

/// A client whose body waits for a slot, in frames of 256 bytes. Behind each is a request that fills the rest of a read buffer.
async fn http2_client_with_an_unread_body(site: &Site) -> FrameClient {
    let (mut client, filler) = (frame_client(site.address()).await, "f".repeat(7_700));
    let fields = [(":method", "POST"), (":scheme", "http"), (":path", "/streamed"), (":authority", "a.test")];
    client.send(&[Frame::head(1, &fields)]).await;
    for request in 1..=250 {
        client.send(&[Frame::new(Frame::DATA, 0, 1, [7; 256])]).await;
        let rest = block(&[(":path", "/fixed"), (":authority", "a.test"), ("filler", &filler)]);
        ask(&mut client, 2 * request + 1, [block(&METHOD_AND_SCHEME), rest].concat()).await;
    }
    client
}

#[tokio::test]
async fn a_body_that_waits_in_short_frames_takes_no_more_memory_than_its_window() {
    let member = Member::start().await;
    let routes = "[[routes]]\nmatch = '/fixed'\nrespond = 'here'\n[[routes]]\nmatch = '*'\npool = 'app'\nbuffer = 'none'";
    let limits = "pools.app.concurrency = 1\npools.app.queue = { timeout = '1m', policy = 'fifo' }\npools.app.request_timeout = '2m'";
    let site = in_front(&member, &format!("{limits}\n{routes}")).await;
    let _first = site.begin("/").await;
    let _takes_the_slot = member.accept().await;
    let mut clients = vec![http2_client_with_an_unread_body(&site).await];
    let before = memory(&site).await;
    for _ in 0..12 {
        clients.push(http2_client_with_an_unread_body(&site).await);
    }
    site.settles("app", 1, clients.len()).await;
    // The bodies have 768 KB. With a read buffer for each frame it would be 24 MB.
    eventually("memory as before", async || (memory(&site).await < before + 10 * MIB).then_some(())).await;
}
