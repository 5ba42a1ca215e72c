//! HTTP/2 connections that last for many requests: what is odd in one of them now and then does not add up until the connection ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use hostler_testkit::{Frame, eventually, frame_client, ok, upstream};
use http::Response;

use crate::http2_member::{Asked, Http2Plan, send};
use crate::{http2_members, in_front_of};

type Fields = [(&'static str, &'static str); 4];

const GET: Fields = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")];
const POST: Fields = [(":method", "POST"), (":scheme", "http"), (":path", "/"), (":authority", "a")];
/// More than the `h2` crate takes of one connection without forgetting any, and less than a flood.
const EMPTY: u32 = 150;
/// The same for heads that break the protocol, and how many good ones follow each.
const MALFORMED: u32 = 1_100;
const GOOD: usize = 8;
/// More uploads than the `h2` crate remembers by itself when it has reset their streams, and how many late frames come of each.
const REFUSED: u32 = 200;
const LATE: usize = 10;
/// The error code for frames of a closed stream.
const STREAM_CLOSED: u32 = 5;
/// More streams than the `h2` crate by itself lets a client open and reset in one piece, and fewer than a client may have open.
const ABANDONED: u32 = 60;
/// How many of these fill the window that a stream of a member has, and how many streams with them would cost more than a connection may.
const EVENT: &str = "data: an event with 32 bytes....";
const EVENTS: usize = (128 << 10) / EVENT.len();
const UNREAD: usize = 12;
/// More than those of any other stream.
const LAST_EVENTS: usize = EVENTS + 500;

#[tokio::test]
async fn an_empty_data_frame_in_each_request_does_not_end_the_connection() {
    let app = upstream().script(|seen| ok(format!("{} bytes", seen.body.len()))).start().await;
    let site = in_front_of(&app, "").await;
    let mut client = frame_client(site.address()).await;
    for request in 0..EMPTY {
        let stream = 2 * request + 1;
        let frames = [
            Frame::head(stream, &POST),
            Frame::new(Frame::DATA, 0, stream, ""),
            Frame::new(Frame::DATA, Frame::END_STREAM, stream, "x"),
        ];
        client.send(&frames).await;
        assert_eq!(client.next_of(Frame::HEADERS).await.stream, stream);
    }
}

#[tokio::test]
async fn a_malformed_head_now_and_then_does_not_end_the_connection() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut client = frame_client(site.address()).await;
    client.send(&[Frame::new(Frame::WINDOW_UPDATE, 0, 0, [0x7f, 0, 0, 0])]).await;
    let malformed = [&GET[..], &[("connection", "x")]].concat();
    let mut streams = (1..).step_by(2);
    for _ in 0..MALFORMED {
        let mut frames = vec![Frame::request(streams.next().unwrap(), &malformed)];
        frames.extend(streams.by_ref().take(GOOD).map(|stream| Frame::request(stream, &GET)));
        client.send(&frames).await;
        let (mut resets, mut answers) = (0, 0);
        while (resets, answers) != (1, GOOD) {
            match client.next().await.expect("the connection goes on").kind {
                Frame::RST_STREAM => resets += 1,
                Frame::HEADERS => answers += 1,
                _ => {}
            }
        }
    }
}

/// They arrive after the stream has ended, and wait for no one.
#[tokio::test]
async fn small_data_frames_of_streams_that_were_reset_do_not_end_the_connection() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut client = frame_client(site.address()).await;
    let malformed = [&POST[..], &[("connection", "x")]].concat();
    for request in 0..20 {
        let stream = 2 * request + 1;
        let mut frames = vec![Frame::head(stream, &malformed)];
        frames.extend((0..100).map(|_| Frame::new(Frame::DATA, 0, stream, "x")));
        client.send(&frames).await;
        assert_eq!(client.next_of(Frame::RST_STREAM).await.stream, stream);
    }
    client.send(&[Frame::request(41, &GET)]).await;
    assert_eq!(client.next_of(Frame::HEADERS).await.stream, 41);
}

#[tokio::test]
async fn the_rest_of_many_refused_uploads_does_not_end_the_connection() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "routes = [{ match = \"/known\", pool = \"app\" }]").await;
    let mut client = frame_client(site.address()).await;
    client.send(&[Frame::new(Frame::WINDOW_UPDATE, 0, 0, [0x7f, 0, 0, 0])]).await;
    let streams = || (0..REFUSED).map(|request| 2 * request + 1);
    for stream in streams() {
        client.send(&[Frame::head(stream, &POST)]).await;
        assert_eq!(client.next_of(Frame::RST_STREAM).await.stream, stream);
    }
    for stream in streams() {
        let late: Vec<_> = (0..LATE).map(|_| Frame::new(Frame::DATA, 0, stream, "x")).collect();
        client.send(&late).await;
    }
    let last = 2 * REFUSED + 1;
    client.send(&[Frame::request(last, &GET)]).await;
    assert_eq!(client.next_of(Frame::HEADERS).await.stream, last);
}

/// The client has sent them before it got the reset.
#[tokio::test]
async fn late_trailers_of_a_refused_upload_do_not_end_the_connection() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "routes = [{ match = \"/known\", pool = \"app\" }]").await;
    let mut client = frame_client(site.address()).await;
    client.send(&[Frame::head(1, &POST)]).await;
    assert_eq!(client.next_of(Frame::RST_STREAM).await.stream, 1);
    let trailers = Frame::request(1, &[("x-sum", "1")]);
    // As long as the stream is remembered, they are ignored.
    let reset = eventually("a stream that is forgotten", async || {
        client.send(&[trailers.clone(), Frame::new(Frame::PING, 0, 0, [0; 8])]).await;
        loop {
            let frame = client.next().await.expect("the connection goes on");
            match frame.kind {
                Frame::RST_STREAM => return Some(frame),
                Frame::PING => return None,
                _ => {}
            }
        }
    })
    .await;
    assert_eq!((reset.stream, reset.code()), (1, STREAM_CLOSED));
    client.send(&[Frame::request(3, &GET)]).await;
    assert_eq!(client.next_of(Frame::HEADERS).await.stream, 3);
}

/// The client sends a request before it learns that none is accepted any more, and then how much of the response it can take.
#[tokio::test]
async fn a_window_update_of_a_request_that_came_too_late_does_not_end_the_connection() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "").await;
    let mut client = frame_client(site.address()).await;
    client.send(&[Frame::request(1, &GET)]).await;
    app.has_seen(1).await;
    site.terminate();
    // The first GOAWAY names no stream. The last one comes when the client has answered the PING.
    let ping = client.next_of(Frame::PING).await;
    client.send(&[Frame::new(Frame::PING, 1, 0, ping.payload)]).await;
    while client.next_of(Frame::GOAWAY).await.payload[..4] != [0_u8, 0, 0, 1] {}
    let late = [Frame::request(3, &GET), Frame::new(Frame::WINDOW_UPDATE, 0, 3, [0, 1, 0, 0])];
    client.send(&late).await;
    client.send(&[Frame::new(Frame::PING, 0, 0, [7; 8])]).await;
    assert_eq!(client.next_of(Frame::PING).await.payload, [7_u8; 8]);
    app.release_all();
    assert_eq!(client.next_of(Frame::HEADERS).await.stream, 1);
}

#[tokio::test]
async fn many_requests_that_come_together_with_their_resets_do_not_end_the_connection() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut client = frame_client(site.address()).await;
    let abandoned = |request: u32| {
        let stream = 2 * request + 1;
        [Frame::request(stream, &GET), Frame::new(Frame::RST_STREAM, 0, stream, [0, 0, 0, 8])]
    };
    let mut frames: Vec<_> = (0..ABANDONED).flat_map(abandoned).collect();
    let last = 2 * ABANDONED + 1;
    frames.push(Frame::request(last, &GET));
    client.send(&frames).await;
    while client.next_of(Frame::HEADERS).await.stream != last {}
}

/// As Jetty sends it before trailers.
#[tokio::test]
async fn an_empty_data_frame_in_each_answer_does_not_end_the_connection_to_a_member() {
    let script = async |mut asked: Asked| {
        let mut stream = asked.begin(Response::new(()));
        stream.send_data(Bytes::new(), false).unwrap();
        send(stream, "done".into(), true).await;
    };
    let member = Http2Plan::default().start(script).await;
    let site = http2_members::in_front_of(&member, "").await;
    let mut client = site.connect().await;
    for _ in 0..EMPTY {
        client.get("/").await.assert_ok("done");
    }
    assert_eq!(member.connections(), 1);
}

/// Many servers end each stream with an empty DATA frame.
#[tokio::test]
async fn a_304_with_the_length_of_the_200_may_end_with_an_empty_data_frame() {
    let script = async |mut asked: Asked| {
        let head = Response::builder().status(304).header("content-length", "5").body(()).unwrap();
        asked.begin(head).send_data(Bytes::new(), true).unwrap();
    };
    let member = Http2Plan::default().start(script).await;
    let site = http2_members::in_front_of(&member, "").await;
    let mut client = site.connect().await;
    for _ in 0..3 {
        client.get("/").await.assert_status(304);
    }
    assert_eq!(member.connections(), 1);
}

#[tokio::test]
async fn many_empty_data_frames_in_one_answer_do_not_end_the_connection_to_a_member() {
    let script = async |mut asked: Asked| {
        let mut stream = asked.begin(Response::new(()));
        for _ in 0..EMPTY {
            stream.send_data(Bytes::new(), false).unwrap();
        }
        send(stream, "done".into(), true).await;
    };
    let member = Http2Plan::default().start(script).await;
    let site = http2_members::in_front_of(&member, "").await;
    let mut client = site.connect().await;
    for _ in 0..2 {
        client.get("/").await.assert_ok("done");
    }
    assert_eq!(member.connections(), 1);
}

#[tokio::test]
async fn short_events_that_are_not_read_do_not_end_the_answers_of_others() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = sent.clone();
    let script = move |mut asked: Asked| {
        let counted = counted.clone();
        async move {
            let is_last = asked.path() == "/last";
            let kind = if is_last { "text/plain" } else { "text/event-stream" };
            let mut stream = asked.begin(Response::builder().header("content-type", kind).body(()).unwrap());
            // The streams of a connection send in turns, so the last answer ends after all events.
            let events = if is_last { LAST_EVENTS } else { EVENTS };
            for _ in 0..events {
                let Some(goes_on) = send(stream, EVENT.into(), false).await else { return };
                stream = goes_on;
                counted.fetch_add(1, Ordering::SeqCst);
            }
            match is_last {
                true => stream.send_data(Bytes::new(), true).unwrap(),
                false => drop(std::future::poll_fn(|cx| stream.poll_reset(cx)).await),
            }
        }
    };
    let member = Http2Plan::default().start(script).await;
    let site = http2_members::in_front_of(&member, "server.answer_buffer = '4 KiB'").await;
    // It has the smallest window, and reads nothing.
    let mut unread = frame_client(site.address()).await;
    let requests: Vec<_> = (0..UNREAD as u32).map(|number| Frame::request(2 * number + 1, &GET)).collect();
    unread.send(&requests).await;
    eventually("all events", async || (sent.load(Ordering::SeqCst) == UNREAD * EVENTS).then_some(())).await;
    site.get("/last").await.assert_ok(&EVENT.repeat(LAST_EVENTS));
    assert_eq!((member.connections(), member.open()), (1, 1));
}
