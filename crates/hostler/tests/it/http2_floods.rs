//! Floods of frames: each is noticed, counted, and ends its connection. The frames are written by hand.

use std::future::poll_fn;
use std::time::Duration;

use hostler_testkit::{
    Frame, FrameClient, Site, block, client, eventually, frame_client, ok, upstream, within,
};
use http::{Request, Response};
use tokio::time::interval;

use crate::http2_member::{Asked, Http2Plan};
use crate::idle_memory::EMPTIED_TABLE;
use crate::{http2, http2_members, in_front_of};

const CALM: u32 = 11;

fn get() -> Vec<u8> {
    block(&[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")])
}

/// Sends these frames until the connection takes no more.
async fn flood(client: &mut FrameClient, mut frames: impl FnMut(u32) -> Vec<Frame>) -> Frame {
    for round in 0..2_000_u32 {
        client.send(&frames(round)).await;
    }
    client.next_of(Frame::GOAWAY).await
}

/// The connection has ended for this reason, and nothing of it is left.
async fn assert_flooded(site: &Site, reason: &str) {
    site.says(reason).await;
    eventually("an end of all connections", async || {
        let connections = &site.status().await["connections"];
        (connections["open"] == 0 && connections["flooded"] == 1).then_some(())
    })
    .await;
    site.settles("app", 0, 0).await;
}

#[tokio::test]
async fn a_flood_of_cheap_frames_ends_the_connection() {
    let app = upstream().start().await;
    let post = block(&[(":method", "POST"), (":scheme", "http"), (":path", "/"), (":authority", "a")]);
    let head = Frame::new(Frame::HEADERS, Frame::END_HEADERS, 1, post);
    let same = |frame: Frame| move |_| vec![frame.clone(), frame.clone(), frame.clone(), frame.clone()];
    let window = same(Frame::new(Frame::WINDOW_UPDATE, 0, 0, [0, 0, 0, 1]));
    for (reason, frame) in [
        ("too many SETTINGS frames", Frame::new(Frame::SETTINGS, 0, 0, "")),
        ("too many PING frames", Frame::new(Frame::PING, 0, 0, [0; 8])),
        // Hostler or the `h2` crate notices first: the crate counts them as well.
        ("HTTP/2 connection from 127.0.0.1:", Frame::new(Frame::DATA, 0, 1, "")),
        ("too many PRIORITY, GOAWAY or unknown frames", Frame::new(Frame::PRIORITY, 0, 1, [0, 0, 0, 0, 9])),
        ("too many PRIORITY, GOAWAY or unknown frames", Frame::new(0xfa, 0, 0, "")),
    ] {
        let site = in_front_of(&app, "").await;
        let mut client = frame_client(site.address()).await;
        client.send(std::slice::from_ref(&head)).await;
        assert_eq!(flood(&mut client, same(frame)).await.code(), CALM, "{reason}");
        assert_flooded(&site, reason).await;
    }
    let site = in_front_of(&app, "").await;
    let mut client = frame_client(site.address()).await;
    assert_eq!(flood(&mut client, window).await.code(), CALM);
    assert_flooded(&site, "too many WINDOW_UPDATE frames").await;
    assert!(app.requests().is_empty());
}

#[tokio::test]
async fn a_client_that_floods_again_and_again_makes_few_lines_in_the_log() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.threads = 1").await;
    let settings = Frame::new(Frame::SETTINGS, 0, 0, "");
    for _ in 0..3 {
        let mut client = frame_client(site.address()).await;
        assert_eq!(flood(&mut client, |_| vec![settings.clone()]).await.code(), CALM);
    }
    eventually("all of them counted", async || {
        (site.status().await["connections"]["flooded"] == 3).then_some(())
    })
    .await;
    // Its line comes after all lines about them.
    site.get("/").await.assert_ok("ok");
    site.exchanges(1).await;
    let lines = site.lines();
    let told = lines.iter().filter(|line| line.contains("too many SETTINGS frames")).count();
    assert_eq!(told, 1, "{lines:#?}");
}

#[tokio::test]
async fn a_flood_of_reset_streams_ends_the_connection() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "[pools.app]\nconcurrency = 1\n").await;
    let mut client = frame_client(site.address()).await;
    let head = get();
    let rapid = |round: u32| {
        let stream = 2 * round + 1;
        let open = Frame::request_of(stream, &head);
        vec![open, Frame::new(Frame::RST_STREAM, 0, stream, [0, 0, 0, 8])]
    };
    assert_eq!(flood(&mut client, rapid).await.code(), CALM);
    app.release_all();
    assert_flooded(&site, "HTTP/2 connection from 127.0.0.1:").await;
    assert!(app.requests().len() < 600, "{}", app.requests().len());
}

#[tokio::test]
async fn clients_that_leave_their_event_streams_are_no_flood() {
    let events = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n\
                  9\r\ndata: 1\n\n\r\n";
    let app = upstream().answers(events).start().await;
    let site = in_front_of(&app, "").await;
    let mut talk = http2::talk(&site).await;
    for _ in 0..1000 {
        let (answer, _) = talk.begin(http2::get("/"), true).await;
        // Its body is dropped, which resets the stream.
        assert_eq!(within("a head", answer).await.unwrap().status().as_u16(), 200);
    }
    assert_eq!(site.status().await["connections"]["flooded"], 0);
}

#[tokio::test]
async fn clients_that_end_streamed_calls_of_grpc_are_no_flood() {
    let script = async |mut asked: Asked| {
        let mut messages = asked.begin(Response::new(()));
        let _ = poll_fn(|cx| messages.poll_reset(cx)).await;
    };
    let member = Http2Plan::default().start(script).await;
    let site = http2_members::in_front_of(&member, "pools.app.concurrency = 1000").await;
    let mut talk = http2::talk(&site).await;
    for _ in 0..1000 {
        let call = Request::post("http://site.test/").header("content-type", "application/grpc");
        let (answer, _) = talk.begin(call.body(()).unwrap(), true).await;
        // Its messages are dropped, which resets the stream.
        assert_eq!(within("a head", answer).await.unwrap().status().as_u16(), 200);
    }
    assert_eq!(site.status().await["connections"]["flooded"], 0);
}

/// A head in a HEADERS frame and this many CONTINUATION frames, some of them empty.
fn in_pieces(stream: u32, head: &[u8], continuations: usize) -> Vec<Frame> {
    let at = |number: usize| head.len() * number / (continuations + 1);
    let piece = |number: usize| &head[at(number)..at(number + 1)];
    let ends = if continuations == 0 { Frame::END_HEADERS } else { 0 };
    let first = Frame::new(Frame::HEADERS, Frame::END_STREAM | ends, stream, piece(0));
    let others = (1..=continuations).map(|number| {
        let flags = if number == continuations { Frame::END_HEADERS } else { 0 };
        Frame::new(Frame::CONTINUATION, flags, stream, piece(number))
    });
    std::iter::once(first).chain(others).collect()
}

/// A GET with this many bytes of further fields.
fn get_with(bytes: usize) -> Vec<u8> {
    let value = "x".repeat(1000);
    let fields = vec![("x-a", value.as_str()); bytes / value.len()];
    [get(), if fields.is_empty() { Vec::new() } else { block(&fields) }].concat()
}

/// `:status: 200` as the static table has it (RFC 7541 appendix A).
const STATUS_200: &[u8] = &[0x88];
/// `:status: 431`, its value in Huffman's code.
const STATUS_431: &[u8] = &[0x48, 0x83, 0x69, 0x90, 0xff];

/// Whether a head begins with this status. On a connection that was silent for a second, the sizes of the emptied table come before it.
fn has_status(head: &Frame, status: &[u8]) -> bool {
    head.payload.strip_prefix(EMPTIED_TABLE).unwrap_or(&head.payload).starts_with(status)
}

#[tokio::test]
async fn a_head_in_the_allowed_number_of_frames_is_accepted() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut client = frame_client(site.address()).await;
    let mut stream = 1;
    for bytes in [0, 1000, 30_000, 62_000] {
        for continuations in [0, 1, 5, 6, 7, 31, 32] {
            if bytes / (continuations + 1) > 16_000 {
                continue;
            }
            client.send(&in_pieces(stream, &get_with(bytes), continuations)).await;
            let answer = client.next_of(Frame::HEADERS).await;
            assert_eq!(answer.stream, stream);
            assert!(has_status(&answer, STATUS_200), "{bytes} bytes in {continuations}: {answer:?}");
            stream += 2;
        }
    }
    let seen = app.requests();
    assert_eq!(seen.last().unwrap().head.all("x-a").len(), 62);
    assert_eq!(site.status().await["connections"]["flooded"], 0);
}

#[tokio::test]
async fn a_too_long_head_in_frames_is_refused_and_too_many_frames_end_the_connection() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    // The last two are refused by the `h2` crate, which knows only the upper limit for heads.
    for bytes in [66_000, 80_000, 90_000] {
        let mut client = frame_client(site.address()).await;
        client.send(&in_pieces(1, &get_with(bytes), 32)).await;
        let answer = client.next_of(Frame::HEADERS).await;
        assert!(has_status(&answer, STATUS_431), "{bytes}: {answer:?}");
        // The connection can be used for another request.
        client
            .send(&[Frame::request(
                3,
                &[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")],
            )])
            .await;
        assert!(has_status(&client.next_of(Frame::HEADERS).await, STATUS_200));
    }
    site.refusal("header_too_large").await;
    let mut client = frame_client(site.address()).await;
    client.send(&in_pieces(1, &get(), 33)).await;
    assert_eq!(client.next_of(Frame::GOAWAY).await.code(), CALM);
    assert_flooded(&site, "a head in too many CONTINUATION frames").await;
    assert_eq!(app.requests().len(), 3);
}

#[tokio::test]
async fn a_longer_head_may_have_more_frames() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "[server]\nmax_header_size = \"1 MiB\"\nmax_header_fields = 1000\n").await;
    let mut client = frame_client(site.address()).await;
    client.send(&in_pieces(1, &get_with(900_000), 120)).await;
    // The worker may find it too long, and refuses it then.
    client.next_of(Frame::HEADERS).await;
    assert_eq!(app.only_request().head.all("x-a").len(), 900);
}

#[tokio::test]
async fn a_frame_between_continuation_frames_ends_the_connection() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let pieces = in_pieces(1, &get_with(1000), 7);
    let ping = Frame::new(Frame::PING, 0, 0, [0; 8]);
    let strange = Frame::new(Frame::CONTINUATION, Frame::END_HEADERS, 3, "");
    let long = Frame::new(Frame::CONTINUATION, Frame::END_HEADERS, 1, vec![0; 16_385]);
    for (wrong, code) in [(ping, 1), (strange, 1), (long, 6)] {
        for at in [1, 4] {
            let mut client = frame_client(site.address()).await;
            client.send(&[&pieces[..at], std::slice::from_ref(&wrong)].concat()).await;
            assert_eq!(client.next_of(Frame::GOAWAY).await.code(), code, "{wrong:?} at {at}");
        }
    }
    assert!(app.requests().is_empty());
}

#[tokio::test]
async fn endless_continuation_frames_end_the_connection() {
    let app = upstream().start().await;
    for piece in [String::new(), "x".repeat(1000)] {
        let site = in_front_of(&app, "").await;
        let mut client = frame_client(site.address()).await;
        client.send(&[Frame::new(Frame::HEADERS, 0, 1, get())]).await;
        let field = if piece.is_empty() { Vec::new() } else { block(&[("x-a", &piece)]) };
        let more = |_| vec![Frame::new(Frame::CONTINUATION, 0, 1, &field)];
        assert_eq!(flood(&mut client, more).await.code(), CALM);
        assert_flooded(&site, "HTTP/2 connection from 127.0.0.1:").await;
    }
    assert!(app.requests().is_empty());
}

#[tokio::test]
async fn an_unfinished_http2_head_ends_after_header_timeout() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "[server]\nheader_timeout = \"1s\"\n").await;
    let mut client = frame_client(site.address()).await;
    client.send(&[Frame::new(Frame::HEADERS, 0, 1, get())]).await;
    assert_eq!(client.next_of(Frame::GOAWAY).await.code(), CALM);
    assert_flooded(&site, "server.header_timeout").await;
}

#[tokio::test]
async fn heads_that_follow_each_other_without_a_break_have_their_own_time_each() {
    const HEADS: u32 = 30;
    let app = upstream().start().await;
    let site = in_front_of(&app, "[server]\nheader_timeout = \"4s\"\n").await;
    let mut client = frame_client(site.address()).await;
    let heads: Vec<_> = (0..HEADS).map(|n| Frame::request_of(2 * n + 1, get()).bytes()).collect();
    // Hostler never sees the end of one without the beginning of the next.
    let split = heads[0].len() - 1;
    client.send_bytes(&heads[0][..split]).await;
    // In all they take longer than one of them may.
    let mut pace = interval(Duration::from_millis(200));
    for pair in heads.windows(2) {
        pace.tick().await;
        client.send_bytes(&[&pair[0][split..], &pair[1][..split]].concat()).await;
    }
    client.send_bytes(&heads[heads.len() - 1][split..]).await;
    app.has_seen(HEADS as usize).await;
}

#[tokio::test]
async fn an_unfinished_preface_ends_after_header_timeout() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "[server]\nheader_timeout = \"1s\"\n").await;
    let mut client = client(site.address()).await;
    client.send("PRI * HTTP/2.0\r\n\r\nS").await;
    client.rest().await;
    eventually("an end of all connections", async || {
        (site.status().await["connections"]["open"] == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_burst_of_small_data_frames_is_a_body_like_any_other() {
    let app = upstream().script(|seen| ok(format!("{} bytes", seen.body.len()))).start().await;
    let site = in_front_of(&app, "").await;
    let mut client = frame_client(site.address()).await;
    let post = [(":method", "POST"), (":scheme", "http"), (":path", "/"), (":authority", "a")];
    let mut frames = vec![Frame::head(1, &post)];
    frames.extend((0..1000).map(|_| Frame::new(Frame::DATA, 0, 1, "ten bytes.")));
    frames.push(Frame::new(Frame::DATA, Frame::END_STREAM, 1, ""));
    client.send(&frames).await;
    let body = client.next_of(Frame::DATA).await;
    assert_eq!(String::from_utf8_lossy(&body.payload), "10000 bytes");
}

#[tokio::test]
async fn a_stalled_http2_body_ends_after_body_timeout() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "[server]\nbody_timeout = \"200ms\"\n").await;
    let mut client = frame_client(site.address()).await;
    client
        .send(&[
            Frame::head(1, &[(":method", "POST"), (":scheme", "http"), (":path", "/"), (":authority", "a")]),
            Frame::new(Frame::DATA, 0, 1, "abc"),
        ])
        .await;
    site.refusal("body_timeout").await;
    let reset = client.next_of(Frame::RST_STREAM).await;
    assert_eq!((reset.stream, reset.code()), (1, 0), "answered, and wants no more of it");
    assert!(app.requests().is_empty());
}
