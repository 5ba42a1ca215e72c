//! WebSockets in an HTTP/2 stream (RFC 8441): opened towards members as in HTTP/1.1, and ended in the same way.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use h2::ext::Protocol;
use h2::{Reason, RecvStream, SendStream};
use hostler_testkit::{eventually, ok, text, upstream, within};
use http::{Method, Request};
use sha1::{Digest, Sha1};

use crate::http2::{Talk, get, talk, whole};
use crate::in_front_of;
use crate::tunnels::{End, GOING_AWAY, Member, has_tunnels, in_front};

fn websocket(path: &str) -> Request<()> {
    let mut request = Request::builder().method(Method::CONNECT).uri(format!("http://site.test{path}"));
    for (name, value) in [("sec-websocket-version", "13"), ("sec-websocket-protocol", "chat")] {
        request = request.header(name, value);
    }
    request.extension(Protocol::from_static("websocket")).body(()).unwrap()
}

/// The member's answer to the head that it got.
pub(super) fn accept(head: &str) -> String {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    let key = lines.filter(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key")).map(|(_, key)| key);
    let [key] = key.collect::<Vec<_>>()[..] else { panic!("one key in {head}") };
    assert_eq!(BASE64_STANDARD.decode(key).unwrap().len(), 16);
    let hash = Sha1::digest(format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11"));
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {}\r\nSec-WebSocket-Protocol: chat\r\n\r\n",
        BASE64_STANDARD.encode(hash)
    )
}

/// Waits until the server has announced RFC 8441.
async fn ready(talk: &mut Talk) {
    eventually("SETTINGS_ENABLE_CONNECT_PROTOCOL", async || {
        talk.send.is_extended_connect_protocol_enabled().then_some(())
    })
    .await;
}

async fn open(talk: &mut Talk, member: &Member) -> (SendStream<Bytes>, RecvStream, End) {
    open_by(websocket("/chat"), talk, member).await
}

async fn open_by(
    request: Request<()>,
    talk: &mut Talk,
    member: &Member,
) -> (SendStream<Bytes>, RecvStream, End) {
    ready(talk).await;
    let (answer, sender) = talk.begin(request, false).await;
    let mut end = member.accept().await;
    let answering = accept(&end.head);
    end.send(answering).await;
    let answer = within("an answer", answer).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["sec-websocket-protocol"], "chat");
    assert!(!answer.headers().contains_key("sec-websocket-accept"), "{answer:?}");
    (sender, answer.into_body(), end)
}

#[tokio::test]
async fn a_websocket_opens_and_bytes_go_both_ways() {
    let member = Member::start().await;
    let site = in_front(&member, "[pools.app]\nconcurrency = 1\n").await;
    let mut talk = talk(&site).await;
    let (mut sender, mut body, mut end) = open(&mut talk, &member).await;
    let head = end.head.to_ascii_lowercase();
    assert!(head.starts_with("get /chat http/1.1\r\n"), "{head}");
    for line in [
        "connection: upgrade\r\n",
        "upgrade: websocket\r\n",
        "sec-websocket-version: 13\r\n",
        "host: site.test\r\n",
    ] {
        assert!(head.contains(line), "{line:?} in {head}");
    }
    has_tunnels(&site, 1).await;
    sender.send_data("\u{1}\u{2}hi".into(), false).unwrap();
    assert_eq!(end.read(4).await, b"\x01\x02hi");
    end.send(vec![7; 200_000]).await;
    let mut taken = 0;
    while taken < 200_000 {
        let data = within("data", body.data()).await.unwrap().unwrap();
        taken += data.len();
        body.flow_control().release_capacity(data.len()).unwrap();
    }
    // It takes no slot: a second one can be opened.
    let _other = open(&mut talk, &member).await;
    has_tunnels(&site, 2).await;
    sender.send_reset(Reason::CANCEL);
    has_tunnels(&site, 1).await;
    assert!(!end.rest().await.0.starts_with(b"HTTP"));
    let line = site.access("/chat").await;
    assert_eq!(
        (&line["status"], &line["bytes_out"], &line["aborted"]),
        (&200.into(), &200_000.into(), &"client".into())
    );
}

#[tokio::test]
async fn a_stop_closes_a_websocket_over_http2_with_1001() {
    let member = Member::start().await;
    let mut site = in_front(&member, "").await;
    let mut talk = talk(&site).await;
    let (mut sender, mut body, mut end) = open(&mut talk, &member).await;
    has_tunnels(&site, 1).await;
    site.terminate();
    assert_eq!(within("a Close frame", body.data()).await.unwrap().unwrap(), GOING_AWAY);
    sender.send_data(Bytes::from_static(&[0x88, 0x80, 0, 0, 0, 0]), true).unwrap();
    assert_eq!(end.read(1).await, [0x88]);
    end.send(GOING_AWAY).await;
    drop(end);
    assert_eq!(site.exit().await, 0);
    let last = within("the end", body.data()).await;
    assert!(last.is_none(), "{last:?}");
    assert!(body.is_end_stream(), "and the stream ends in order");
}

#[tokio::test]
async fn an_answer_that_opens_no_tunnel_is_a_bad_answer() {
    let app = upstream()
        .script(|seen| match seen.target().as_str() {
            "/page" => ok("a page"),
            "/forbidden" => text("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"),
            _ => text("HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n"),
        })
        .start()
        .await;
    let config =
        "[[routes]]\nmatch = \"/fixed\"\nrespond = \"here\"\n[[routes]]\nmatch = \"*\"\npool = \"app\"\n";
    let site = in_front_of(&app, config).await;
    let mut talk = talk(&site).await;
    ready(&mut talk).await;
    for (path, status, refusal) in [
        ("/page", 400, Some("no_websocket")),
        ("/fixed", 400, Some("no_websocket")),
        ("/forbidden", 403, None),
        ("/wrong", 502, Some("bad_answer")),
    ] {
        let (answer, _sender) = talk.begin(websocket(path), false).await;
        let (answer, _) = whole(answer).await;
        let found = answer.headers().get("hostler-refusal").map(|reason| reason.to_str().unwrap());
        assert_eq!((answer.status().as_u16(), found), (status, refusal), "{path}");
    }
    site.settles("app", 0, 0).await;
    assert_eq!(talk.ask(get("/page")).await.1, b"a page");
}

#[tokio::test]
async fn the_long_head_of_a_websocket_counts_as_long_as_it_is_open() {
    let member = Member::start().await;
    let site = in_front(&member, "").await;
    let mut talk = talk(&site).await;
    let mut request = websocket("/chat");
    request.headers_mut().insert("x-large", "x".repeat(60_000).parse().unwrap());
    let (mut sender, _body, _end) = open_by(request, &mut talk, &member).await;
    has_tunnels(&site, 1).await;
    let used = async || site.status().await["request_memory"]["used"].as_u64().unwrap();
    let while_open = used().await;
    assert!(while_open >= 50_000, "{while_open}");
    sender.send_reset(Reason::CANCEL);
    has_tunnels(&site, 0).await;
    eventually("nothing to be held any more", async || (used().await == 0).then_some(())).await;
}
