//! HTTP/2 heads that would be several requests, or another request, in HTTP/1.1: no member gets any of them. The frames are written by
//! hand.

use hostler_testkit::{Frame, FrameClient, block, eventually, frame_client, indexed_block, upstream};

use crate::in_front_of;

const PROTOCOL_ERROR: u32 = 1;

type Fields<'a> = &'a [(&'a str, &'a str)];

/// The pseudo fields of a valid request, with these changed or removed.
fn with<'a>(fields: Fields<'a>) -> Vec<(&'a str, &'a str)> {
    let good = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a.test")];
    let named = |name: &str| fields.iter().any(|(other, _)| *other == name);
    let kept = good.into_iter().filter(|(name, _)| !named(name));
    let (pseudo, plain): (Vec<_>, Vec<_>) = fields.iter().partition(|(name, _)| name.starts_with(':'));
    let pseudo = pseudo.into_iter().filter(|(_, value)| *value != "(none)");
    kept.chain(pseudo).chain(plain).collect()
}

/// The stream ends with an error, and the connection serves the next one.
async fn assert_reset(client: &mut FrameClient, fields: Fields<'_>) {
    let seen = loop {
        let frame = client.next().await.unwrap_or_else(|| panic!("{fields:?} ended the connection"));
        if matches!(frame.kind, Frame::RST_STREAM | Frame::GOAWAY | Frame::HEADERS) {
            break frame;
        }
    };
    assert_eq!((seen.kind, seen.stream), (Frame::RST_STREAM, 1), "{fields:?}: {seen:?}");
    assert_eq!(seen.code(), PROTOCOL_ERROR, "{fields:?}");
    client.send(&[Frame::request(3, &with(&[]))]).await;
    assert_eq!(client.next_of(Frame::HEADERS).await.stream, 3, "{fields:?}");
}

/// The stream or the connection ends with an error.
async fn assert_broken(client: &mut FrameClient, fields: Fields<'_>) {
    loop {
        match client.next().await {
            Some(frame) if matches!(frame.kind, Frame::RST_STREAM | Frame::GOAWAY) => {
                assert_ne!(frame.code(), 0, "{fields:?}");
                return;
            }
            Some(frame) if frame.kind == Frame::HEADERS => panic!("{fields:?} was answered"),
            Some(_) => {}
            None => return,
        }
    }
}

#[tokio::test]
async fn a_malformed_http2_head_resets_its_stream() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let cases: &[Fields] = &[
        &[("Upper", "x")],
        &[("x y", "x")],
        &[("x:y", "x")],
        &[("", "x")],
        &[("x\r\nsmuggled", "x")],
        &[("x", "a\r\nsmuggled: 1")],
        &[("x", "a\nsmuggled: 1")],
        &[("x", "a\rb")],
        &[("x", "a\0b")],
        &[("connection", "close")],
        &[("connection", "x")],
        &[("keep-alive", "timeout=1")],
        &[("proxy-connection", "keep-alive")],
        &[("transfer-encoding", "chunked")],
        &[("upgrade", "websocket")],
        &[("te", "gzip")],
        &[("te", "trailers, gzip")],
        &[("content-length", "5")],
        &[("content-length", "+0")],
        &[("content-length", "0, 0")],
        &[(":path", "")],
        &[(":path", "/a b")],
        &[(":path", "/a#b")],
        &[(":path", "/?a#b")],
        &[(":path", "#b")],
        &[(":path", "/ HTTP/1.1\r\nsmuggled: 1\r\n\r\n")],
        &[(":path", "(none)")],
        &[(":scheme", "(none)")],
        &[(":method", "(none)")],
        &[(":method", "GE T")],
        &[(":method", "GET / HTTP/1.1\r\nsmuggled: 1\r\n")],
        &[(":method", "")],
        &[(":authority", "a b")],
        &[(":authority", "%61.test")],
        &[(":authority", "a\r\nsmuggled: 1")],
        &[(":status", "200")],
        &[(":unknown", "x")],
        &[(":protocol", "websocket")],
    ];
    for fields in cases {
        let mut client = frame_client(site.address()).await;
        client.send(&[Frame::request(1, &with(fields))]).await;
        assert_reset(&mut client, fields).await;
    }
    assert_eq!(app.requests().len(), cases.len(), "{:?}", app.requests());
}

#[tokio::test]
async fn a_malformed_field_in_any_frame_of_a_head_resets_its_stream() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let malformed: Fields = &[("connection", "close"), ("x", "y")];
    let head = block(&with(malformed));
    for first in 0..head.len() {
        let second = (first + head.len()) / 2;
        let mut client = frame_client(site.address()).await;
        client
            .send(&[
                Frame::new(Frame::HEADERS, Frame::END_STREAM, 1, &head[..first]),
                Frame::new(Frame::CONTINUATION, 0, 1, &head[first..second]),
                Frame::new(Frame::CONTINUATION, Frame::END_HEADERS, 1, &head[second..]),
            ])
            .await;
        assert_reset(&mut client, malformed).await;
    }
    assert_eq!(app.requests().len(), head.len(), "{:?}", app.requests());
}

#[tokio::test]
async fn a_malformed_field_takes_its_place_in_the_table() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut client = frame_client(site.address()).await;
    let pseudo = block(&with(&[]));
    let head = |stream, fields: &[u8]| Frame::request_of(stream, [&pseudo, fields].concat());
    // Indices 64, 63 and 62 then.
    let fields = indexed_block(&[("first", "1"), ("second", "a\0b"), ("third", "3")]);
    client.send(&[head(1, &fields)]).await;
    assert_reset(&mut client, &[]).await;
    client.send(&[head(5, &[0x80 | 63])]).await;
    assert_eq!(client.next_of(Frame::RST_STREAM).await.stream, 5);
    // The name of 63 with another value, which is not indexed.
    client.send(&[head(7, &[0x80 | 64, 0x80 | 62, 0x0f, 63 - 15, 1, b'2'])]).await;
    app.has_seen(2).await;
    let seen = &app.requests()[1];
    let values = ["first", "second", "third"].map(|name| seen.field(name));
    assert_eq!(values, ["1", "2", "3"].map(|value| Some(value.to_owned())));
}

#[tokio::test]
async fn a_head_that_http_1_1_refuses_is_refused_in_http2() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let cases: &[(Fields, &str)] = &[
        (&[("x", " a")], "bad_head"),
        (&[("x", "a\t")], "bad_head"),
        (&[("host", "b.test")], "bad_host"),
        (&[("host", "a.test:443")], "bad_host"),
        (&[(":authority", "a.test:81"), ("host", "a.test")], "bad_host"),
        (&[("host", "a.test"), ("host", "a.test")], "bad_host"),
        (&[(":authority", "(none)")], "bad_host"),
        (&[(":authority", "(none)"), ("host", "a,b")], "bad_host"),
        (&[(":authority", "user@a.test")], "bad_host"),
        (&[("content-length", "0"), ("content-length", "0")], "bad_framing"),
        (&[("content-length", "")], "bad_framing"),
        (&[(":path", "*")], "bad_target"),
        (&[(":path", "/a{b")], "bad_target"),
        (&[(":path", "/x\\..\\admin")], "bad_target"),
        (&[(":path", "/a%zz")], "bad_target"),
        (&[(":path", "//admin")], "bad_target"),
        (&[(":authority", "(none)"), ("host", "%61.test")], "bad_host"),
        (&[("expect", "tea")], "expectation"),
        (&[(":method", "CONNECT"), (":scheme", "(none)"), (":path", "(none)")], "connect"),
        (&[(":method", "CONNECT"), (":protocol", "connect-udp")], "connect"),
    ];
    for (count, (fields, reason)) in cases.iter().enumerate() {
        let mut client = frame_client(site.address()).await;
        client.send(&[Frame::request(1, &with(fields))]).await;
        let seen = eventually(fields, async || site.access_lines().get(count).cloned()).await;
        assert_eq!(seen["refusal"], *reason, "{fields:?}: {seen}");
        client.next_of(Frame::HEADERS).await;
    }
    assert!(app.requests().is_empty(), "{:?}", app.requests());
}

#[tokio::test]
async fn a_body_must_match_its_content_length() {
    let app = upstream().start().await;
    for route in ["", "[[routes]]\nmatch = \"*\"\npool = \"app\"\nbuffer = \"none\"\n"] {
        let site = in_front_of(&app, route).await;
        for (said, sent) in [("2", "abc"), ("4", "abc"), ("0", "abc")] {
            let changed = [(":method", "POST"), ("content-length", said)];
            let fields = with(&changed);
            let mut client = frame_client(site.address()).await;
            client
                .send(&[Frame::head(1, &fields), Frame::new(Frame::DATA, Frame::END_STREAM, 1, sent)])
                .await;
            assert_broken(&mut client, &fields).await;
        }
    }
    assert!(!app.requests().iter().any(|seen| seen.is_whole), "{:?}", app.requests());
}

#[tokio::test]
async fn trailers_with_a_pseudo_field_reset_their_stream() {
    let app = upstream().start().await;
    let trailers: Fields = &[(":status", "200"), ("x-sum", "9")];
    for route in ["", "[[routes]]\nmatch = \"*\"\npool = \"app\"\nbuffer = \"none\"\n"] {
        let site = in_front_of(&app, route).await;
        let mut client = frame_client(site.address()).await;
        upload(&mut client, block(trailers)).await;
        assert_reset(&mut client, trailers).await;
    }
    // Only the requests that follow on the same connections are whole.
    let whole: Vec<_> = app.requests().into_iter().filter(|seen| seen.is_whole).collect();
    assert!(whole.len() == 2 && whole.iter().all(|seen| seen.body.is_empty()), "{whole:?}");
}

/// Sends a POST with a body and these trailers.
async fn upload(client: &mut FrameClient, trailers: Vec<u8>) {
    client
        .send(&[
            Frame::head(1, &with(&[(":method", "POST")])),
            Frame::new(Frame::DATA, 0, 1, "abc"),
            Frame::request_of(1, trailers),
        ])
        .await;
}

/// The trailers of an upload have this value once, and then `more` times.
async fn repeated_trailers_reset_their_stream(settings: &str, value: &str, more: usize) {
    let app = upstream().start().await;
    let site = in_front_of(&app, settings).await;
    let mut client = frame_client(site.address()).await;
    // A field in the table, which each byte after it repeats.
    let mut trailers = indexed_block(&[("x-sum", value)]);
    trailers.extend(vec![0x80_u8 | 62; more]);
    upload(&mut client, trailers).await;
    assert_reset(&mut client, &[]).await;
    // Only the request that follows reaches the app.
    assert_eq!(app.only_request().method(), "GET");
}

#[tokio::test]
async fn trailers_over_the_limit_of_a_head_reset_their_stream() {
    repeated_trailers_reset_their_stream("server.max_header_size = '8 KiB'", &"9".repeat(3000), 5).await;
}

#[tokio::test]
async fn more_than_a_hundred_trailers_reset_their_stream() {
    repeated_trailers_reset_their_stream("", "9", 100).await;
}

#[tokio::test]
async fn a_valid_http2_head_is_passed_on_unchanged() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let mut client = frame_client(site.address()).await;
    let cases: &[Fields] = &[
        &[("host", "A.TEST"), ("te", "trailers")],
        &[(":authority", "(none)"), ("host", "b.test:81")],
        &[(":method", "OPTIONS"), (":path", "*")],
        &[(":scheme", "https"), (":path", "/%2e%2e/a[b]?c={d}[e]^`|")],
        &[(":authority", "a.test:80"), ("host", "a.test")],
        &[(":scheme", "https"), ("host", "a.test:443")],
    ];
    for (at, fields) in cases.iter().enumerate() {
        client.send(&[Frame::request(2 * at as u32 + 1, &with(fields))]).await;
        app.has_seen(at + 1).await;
    }
    let seen: Vec<_> =
        app.requests().iter().map(|seen| (seen.target(), seen.field("host").unwrap())).collect();
    let expected = [
        ("/", "a.test"),
        ("/", "b.test:81"),
        ("*", "a.test"),
        ("/%2e%2e/a[b]?c={d}[e]^`|", "a.test"),
        ("/", "a.test:80"),
        ("/", "a.test"),
    ];
    assert_eq!(seen, expected.map(|(target, host)| (target.to_owned(), host.to_owned())));
}
