//! HTTP/2 clients that request much and read nothing, while the memory for answers is full: their answers stay where they are, and others get what
//! they need.

use std::collections::BTreeMap;
use std::iter::{empty, once};

use hostler_testkit::{
    Frame, FrameClient, Site, SitePlan, Upstream, eventually, frame_client, frame_client_that_reads_late, ok,
    text, upstream, within,
};
use tokio::io::AsyncWriteExt;

use crate::cache_flights::FRESH;
use crate::cache_hits::answer;
use crate::descriptors::descriptors;
use crate::files::ask;
use crate::http2::talk;
use crate::lookups_hostile::services;
use crate::slow_clients::{MIB, app_with_large, is_given_back, patterned, spool};
use crate::tunnels::{Member, in_front};
use crate::{in_front_of, site};

const CLIENTS: u64 = 4;
const STREAMS: u64 = 20;
/// A limit of open files that leaves fewer than 80 for temporary files, and for files that are sent.
const FEW_FILES: u64 = 160;
const LITTLE_MEMORY: &str = "server.answer_memory = '256 KiB'";

fn request(stream: u32, path: &str) -> Frame {
    Frame::request(stream, &[(":method", "GET"), (":scheme", "http"), (":path", path), (":authority", "a")])
}

/// Clients that have each sent `STREAMS` requests and read nothing.
async fn that_read_nothing(site: &Site, path: impl Fn(u64) -> String) -> Vec<FrameClient> {
    let mut clients = Vec::new();
    for client in 0..CLIENTS {
        let requests: Vec<_> =
            (0..STREAMS).map(|n| request(2 * n as u32 + 1, &path(client * STREAMS + n))).collect();
        clients.push(frame_client_that_reads_late(site.address()).await);
        clients[client as usize].send(&requests).await;
    }
    eventually("the memory for answers to be in use", async || {
        (site.status().await["answer_memory"]["used"].as_u64()? >= 128 << 10).then_some(())
    })
    .await;
    clients
}

/// Reads all answers of a client, and checks each.
async fn reads_all(client: &mut FrameClient, expected: &[u8]) {
    let mut bodies = BTreeMap::<u32, Vec<u8>>::new();
    let mut ended = 0;
    while ended < STREAMS {
        let frame = client.next_of(Frame::DATA).await;
        bodies.entry(frame.stream).or_default().extend(&frame.payload);
        ended += u64::from(frame.flags & Frame::END_STREAM != 0);
    }
    assert!(bodies.values().all(|body| body == expected), "they arrived as they were");
}

/// As many as a connection can ask about `STREAMS` times in a window of 64 KiB.
fn addresses() -> String {
    "81.2.69.160\n".repeat(270)
}

/// Clients that have each sent `STREAMS` batches of addresses, whose answers have no window.
async fn that_ask_for_places(site: &Site) -> Vec<FrameClient> {
    let fields = [(":method", "POST"), (":scheme", "http"), (":path", "/geo/batch"), (":authority", "a")];
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = frame_client(site.address()).await;
        client.send(&[Frame::new(Frame::SETTINGS, 0, 0, [0, 4, 0, 0, 0, 0])]).await;
        for stream in (0..STREAMS).map(|n| 2 * n as u32 + 1) {
            let body = Frame::new(Frame::DATA, Frame::END_STREAM, stream, addresses());
            client.send(&[Frame::head(stream, &fields), body]).await;
        }
        clients.push(client);
    }
    clients
}

/// Others are served while nothing is read.
async fn others_are_served(site: &Site) {
    for _ in 0..30 {
        site.get("/other").await.assert_ok("ok");
    }
}

/// A site with files of half a MiB below `/public/`.
async fn with_files(app: &Upstream, names: impl Iterator<Item = String>, plan: &str) -> (SitePlan, Vec<u8>) {
    let (body, routes) = (patterned(MIB / 2), "[[routes]]\nmatch = '/public/*'\nstatic = { dir = '.' }");
    let config = format!("{LITTLE_MEMORY}\n{plan}\n{routes}\n[[routes]]\nmatch = '*'\npool = 'app'");
    let plan = site(&config).with("app", app);
    std::fs::create_dir(plan.folder().join("public")).unwrap();
    for name in names {
        std::fs::write(plan.folder().join(name), &body).unwrap();
    }
    (plan, body)
}

#[tokio::test]
async fn unread_files_are_read_only_when_their_client_takes_them() {
    let app = app_with_large(0).await;
    let (plan, body) = with_files(&app, once("public/large".into()), "").await;
    let site = plan.start().await;
    let before = descriptors(site.pid()).len();
    let mut clients = that_read_nothing(&site, |_| "/public/large".into()).await;
    others_are_served(&site).await;
    let further = descriptors(site.pid()).len() - before;
    assert!(further <= CLIENTS as usize + 8, "{further} descriptors for {CLIENTS} clients and one file");
    for client in &mut clients {
        reads_all(client, &body).await;
    }
    let spool = spool(&site).await;
    assert_eq!(spool["answers"], 0, "a file needs no second file: {spool}");
    drop(clients);
    is_given_back(&site).await;
}

#[tokio::test]
async fn unread_files_beyond_the_descriptors_are_opened_only_to_be_read() {
    let app = app_with_large(0).await;
    let name = |n: u64| format!("public/{n}");
    let names = (0..CLIENTS * STREAMS).map(name);
    let (plan, body) = with_files(&app, names, "server.max_connections = 20").await;
    let site = plan.with_open_files(FEW_FILES, FEW_FILES).start().await;
    let before = descriptors(site.pid()).len();
    let mut clients = that_read_nothing(&site, |n| format!("/{}", name(n))).await;
    others_are_served(&site).await;
    let further = descriptors(site.pid()).len() - before;
    assert!(further < 50, "{further} descriptors for {} files", CLIENTS * STREAMS);
    for client in &mut clients {
        reads_all(client, &body).await;
    }
}

#[tokio::test]
async fn unread_answers_of_workers_go_to_their_files_once() {
    // All of a client's answers are more than the kernel may hold of them.
    let size = MIB;
    let app = app_with_large(size).await;
    let config = format!("{LITTLE_MEMORY}\npools.app.queue.limit = 1000");
    let site = in_front_of(&app, &config).await;
    let mut clients = that_read_nothing(&site, |_| "/large".into()).await;
    app.has_seen((CLIENTS * STREAMS) as usize).await;
    site.settles("app", 0, 0).await;
    others_are_served(&site).await;
    let before = spool(&site).await;
    assert!(before["used"].as_u64().unwrap() > 4 << 20, "{before}");
    others_are_served(&site).await;
    assert_eq!(spool(&site).await, before, "nothing moves while nothing is read");
    for client in &mut clients {
        reads_all(client, &patterned(size)).await;
    }
    let after = spool(&site).await;
    assert!(after["answers"].as_u64().unwrap() <= 2 * CLIENTS * STREAMS, "{after}");
    drop(clients);
    is_given_back(&site).await;
}

#[tokio::test]
async fn unread_answers_have_only_so_many_files() {
    let app = app_with_large(MIB).await;
    let config = format!("{LITTLE_MEMORY}\nserver.max_connections = 20\npools.app.queue.limit = 1000");
    let site = site(&config).with("app", &app).with_open_files(FEW_FILES, FEW_FILES).start().await;
    let before = descriptors(site.pid()).len();
    let clients = that_read_nothing(&site, |_| "/large".into()).await;
    app.has_seen((CLIENTS * STREAMS) as usize).await;
    let spool = spool(&site).await;
    let limit = spool["files_limit"].as_u64().unwrap();
    assert!(limit < CLIENTS * STREAMS && spool["files"].as_u64().unwrap() <= limit, "{spool}");
    let further = descriptors(site.pid()).len() - before;
    assert!(further < 150, "{further} descriptors: {spool}");
    site.settles("app", 0, 0).await;
    others_are_served(&site).await;
    let cut = site.status().await["connections"]["cut"].clone();
    assert!(cut["spool_full"].as_u64().unwrap() > 0, "a worker does not wait for them: {cut}");
    drop(clients);
    is_given_back(&site).await;
    assert_eq!(spool_files(&site).await, 0);
}

#[tokio::test]
async fn unread_lists_of_places_wait_in_files_with_and_without_compression() {
    for compress in ["", "server.compress = true"] {
        let site = services(&format!("{LITTLE_MEMORY}\n{compress}")).await;
        let expected = site.post("/geo/batch", addresses()).await.body;
        assert!(expected.len() > 17 << 10, "a list has {} bytes", expected.len());
        let mut clients = that_ask_for_places(&site).await;
        eventually("the lists in files", async || {
            let status = site.status().await;
            let used = |what: &str| status[what]["used"].as_u64();
            (used("answer_memory")? <= 320 << 10 && used("spool")? >= 1 << 20).then_some(())
        })
        .await;
        let more = (1_u32 << 30).to_be_bytes();
        let all = once(0).chain((0..STREAMS).map(|n| 2 * n as u32 + 1));
        let windows: Vec<_> = all.map(|of| Frame::new(Frame::WINDOW_UPDATE, 0, of, more)).collect();
        for client in &mut clients {
            client.send(&windows).await;
            reads_all(client, &expected).await;
        }
        drop(clients);
        is_given_back(&site).await;
    }
}

#[tokio::test]
async fn unread_events_count_as_memory_for_answers_however_short_they_are() {
    const HEAD: &str =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let event = format!("3e8\r\ndata: {}\n\n\r\n", "x".repeat(1000 - 8));
    let member = Member::start().await;
    let site = in_front(&member, "server.answer_buffer = '4 KiB'").await;
    let mut client = frame_client_that_reads_late(site.address()).await;
    let mut ends = Vec::new();
    for stream in (0..10).map(|n| 2 * n + 1) {
        client.send(&[request(stream, "/events")]).await;
        let mut end = member.accept().await;
        end.send(HEAD).await;
        ends.push(end);
    }
    eventually("the streams", async || (site.status().await["connections"]["streams"] == 10).then_some(()))
        .await;
    for mut end in ends {
        let event = event.clone();
        tokio::spawn(async move { while end.stream.write_all(event.as_bytes()).await.is_ok() {} });
    }
    let used = async || site.status().await["answer_memory"]["used"].as_u64();
    eventually("a full send buffer", async || (used().await? >= 128 << 10).then_some(())).await;
    assert!(used().await.unwrap() <= 512 << 10);
    drop(client);
    is_given_back(&site).await;
}

#[tokio::test]
async fn unread_files_that_are_compressed_leave_encoders_to_others() {
    const PATH: &str = "/public/large.js";
    let app = app_with_large(0).await;
    let limits = "server.compress = true\nserver.compress_memory = '2 MiB'\n\
        server.send_timeout = '10m'\nserver.min_send_rate = '0 B'";
    let (plan, _) = with_files(&app, empty(), limits).await;
    // Compressed, it is longer than the window of a client.
    let mut random = fastrand::Rng::with_seed(7);
    let text: Vec<u8> = (0..MIB / 4).map(|_| random.u8(..)).collect();
    std::fs::write(plan.folder().join(&PATH[1..]), text).unwrap();
    let site = plan.start().await;
    let (mut talk, mut unread) = (talk(&site).await, Vec::new());
    for _ in 0..30 {
        let request = http::Request::get(format!("http://site.test{PATH}"));
        let request = request.header("accept-encoding", "gzip").body(()).unwrap();
        let (answer, _) = talk.begin(request, true).await;
        unread.push(within("an answer", answer).await.unwrap());
    }
    let encoded = unread.iter().filter(|answer| answer.headers().contains_key("content-encoding")).count();
    assert!(encoded <= 3, "half of the memory is enough for three encoders, and {encoded} have begun");
    // On a slow machine, the thread may have used up its time for encoding.
    eventually("a compressed file for another client", async || {
        ask(&site, &format!("GET {PATH}"), "Accept-Encoding: gzip").await.field("content-encoding")
    })
    .await;
    drop(unread);
}

async fn spool_files(site: &Site) -> u64 {
    spool(site).await["files"].as_u64().unwrap()
}

#[tokio::test]
async fn a_client_that_makes_its_windows_smaller_than_what_waits_for_them_loses_its_connection() {
    let app = app_with_large(60 << 10).await;
    let site = in_front_of(&app, "server.send_timeout = '1s'").await;
    let mut client = frame_client_that_reads_late(site.address()).await;
    // The first ones fill the send buffer of the connection, and the others wait for it.
    let requests: Vec<_> = (0..12).map(|n| request(2 * n + 1, "/large")).collect();
    client.send(&requests).await;
    app.has_seen(12).await;
    site.settles("app", 0, 0).await;
    eventually("a full send buffer", async || {
        (site.status().await["answer_memory"]["used"].as_u64()? >= 128 << 10).then_some(())
    })
    .await;
    // No stream may send any more. The client reads all that comes, and gives no window back.
    client.send(&[Frame::new(Frame::SETTINGS, 0, 0, [0, 4, 0, 0, 0, 0])]).await;
    let calm = 11;
    assert_eq!(client.next_of(Frame::GOAWAY).await.code(), calm);
    while client.next().await.is_some() {}
    eventually("an end of the connection", async || {
        (site.status().await["connections"]["open"] == 0).then_some(())
    })
    .await;
    is_given_back(&site).await;
}

#[tokio::test]
async fn a_large_response_that_waits_leaves_a_part_of_the_window_to_a_small_one() {
    /// The window of the connection, and of each stream: more than the kernel takes of a response that is not read.
    const WINDOW: u32 = 4 << 20;
    let body = "x".repeat(6 * MIB);
    let large = answer(FRESH, &body);
    let app = upstream().script(move |seen| match seen.target().as_str() {
        "/large" => text(&large),
        _ => ok("ok"),
    });
    let app = app.start().await;
    let site = in_front_of(&app, "[[routes]]\nmatch = '*'\npool = 'app'\ncache = 'standard'\n").await;
    site.get("/large").await.assert_ok(&body);
    let asks = |stream, path| {
        let fields = [(":method", "GET"), (":scheme", "http"), (":path", path), (":authority", "site.test")];
        Frame::request(stream, &fields)
    };
    let mut client = frame_client(site.address()).await;
    let of_streams = [&[0_u8, 4][..], &WINDOW.to_be_bytes()].concat();
    let more = (WINDOW - 65_535).to_be_bytes();
    client
        .send(&[
            Frame::new(Frame::SETTINGS, 0, 0, of_streams),
            Frame::new(Frame::WINDOW_UPDATE, 0, 0, more),
            asks(1, "/large"),
        ])
        .await;
    client.next_of(Frame::HEADERS).await;
    client.send(&[asks(3, "/small")]).await;
    app.has_seen(2).await;
    site.settles("app", 0, 0).await;
    let mut taken = 0;
    let small = loop {
        let data = client.next_of(Frame::DATA).await;
        if data.stream == 3 {
            break data;
        }
        taken += data.payload.len();
        assert!(taken < WINDOW as usize, "the large response has taken the whole window");
    };
    assert_eq!(small.payload, b"ok");
}

#[tokio::test]
async fn an_event_stream_goes_on_while_another_response_of_its_connection_has_all_memory() {
    const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    const PAGE: &str = "HTTP/1.1 200 OK\r\nX-Accel-Buffering: no\r\nContent-Length: 60000\r\n\r\n";
    let member = Member::start().await;
    let site = in_front(&member, "server.answer_memory = 0").await;
    let waits = async |expected: bool| {
        eventually(format!("that bytes wait: {expected}"), async || {
            let used = site.status().await["answer_memory"]["used"].as_u64()?;
            ((used > 0) == expected).then_some(())
        })
        .await;
    };
    let mut client = frame_client(site.address()).await;
    // No stream has a window at first.
    client.send(&[Frame::new(Frame::SETTINGS, 0, 0, [0, 4, 0, 0, 0, 0]), request(1, "/events")]).await;
    let mut events = member.accept().await;
    events.send(format!("{EVENTS}data: 1\n\n")).await;
    waits(true).await;
    client.send(&[Frame::new(Frame::WINDOW_UPDATE, 0, 1, [0, 0, 1, 0])]).await;
    assert_eq!(client.next_of(Frame::DATA).await.payload, b"data: 1\n\n");
    waits(false).await;
    // The page gets no window, so this part of it waits, with all memory that the connection has in any case.
    client.send(&[request(3, "/page")]).await;
    let mut page = member.accept().await;
    page.send(format!("{PAGE}{}", "x".repeat(4000))).await;
    waits(true).await;
    for event in ["data: 2\n\n", "data: 3\n\n"] {
        events.send(event).await;
        assert_eq!(client.next_of(Frame::DATA).await.payload, event.as_bytes());
    }
}
