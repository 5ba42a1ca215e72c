//! Floods of frames: each is noticed, counted, and ends its connection. Frames by hand.

use hostler_testkit::{Frame, FrameClient, Site, block, eventually, frame_client, upstream};

use crate::in_front_of;

const CALM: u32 = 11;

fn get() -> Vec<u8> {
    block(&[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")])
}

/// Sends these again and again until nobody takes them any more.
async fn flood(client: &mut FrameClient, mut frames: impl FnMut(u32) -> Vec<Frame>) -> Frame {
    for round in 0..2_000_u32 {
        client.send(&frames(round)).await;
    }
    client.next_of(Frame::GOAWAY).await
}

/// The connection has ended for this, and nothing of it is left.
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
async fn frames_that_cost_nothing_are_too_many_at_some_time() {
    let app = upstream().start().await;
    let post = block(&[(":method", "POST"), (":scheme", "http"), (":path", "/"), (":authority", "a")]);
    let head = Frame::new(Frame::HEADERS, Frame::END_HEADERS, 1, post);
    let same = |frame: Frame| move |_| vec![frame.clone(), frame.clone(), frame.clone(), frame.clone()];
    let window = same(Frame::new(Frame::WINDOW_UPDATE, 0, 0, [0, 0, 0, 1]));
    for (reason, frame) in [
        ("too many SETTINGS frames", Frame::new(Frame::SETTINGS, 0, 0, "")),
        ("too many PING frames", Frame::new(Frame::PING, 0, 0, [0; 8])),
        // Whichever notices first: the machinery counts them as well.
        ("HTTP/2 connection from 127.0.0.1:", Frame::new(Frame::DATA, 0, 1, "")),
        ("too many frames that mean nothing", Frame::new(Frame::PRIORITY, 0, 1, [0, 0, 0, 0, 9])),
        ("too many frames that mean nothing", Frame::new(0xfa, 0, 0, "")),
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
async fn streams_that_are_opened_and_reset_are_too_many_at_some_time() {
    let app = upstream().holds_requests().start().await;
    let site = in_front_of(&app, "[pools.app]\nconcurrency = 1\n").await;
    let mut client = frame_client(site.address()).await;
    let head = get();
    let rapid = |round: u32| {
        let stream = 2 * round + 1;
        let open = Frame::new(Frame::HEADERS, Frame::END_HEADERS | Frame::END_STREAM, stream, &head);
        vec![open, Frame::new(Frame::RST_STREAM, 0, stream, [0, 0, 0, 8])]
    };
    assert_eq!(flood(&mut client, rapid).await.code(), CALM);
    app.release_all();
    assert_flooded(&site, "HTTP/2 connection from 127.0.0.1:").await;
    assert!(app.requests().len() < 600, "{}", app.requests().len());
}

#[tokio::test]
async fn a_head_in_countless_pieces_ends_its_connection() {
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
async fn a_head_that_does_not_come_to_its_end_is_waited_for_so_long() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "[server]\nheader_timeout = \"1s\"\n").await;
    let mut client = frame_client(site.address()).await;
    client.send(&[Frame::new(Frame::HEADERS, 0, 1, get())]).await;
    assert_eq!(client.next_of(Frame::GOAWAY).await.code(), CALM);
    assert_flooded(&site, "server.header_timeout").await;
}

#[tokio::test]
async fn a_request_body_that_stops_coming_is_waited_for_so_long() {
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
