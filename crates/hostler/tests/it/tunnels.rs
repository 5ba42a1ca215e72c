//! Tunnels: which requests become one, and which bytes pass. Raw bytes on both sides.

use hostler_testkit::{Client, Site, Step, WAIT_LIMIT, eventually, ok, text, upstream};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::{in_front_of, site};

const HANDSHAKE: &str = "GET /chat HTTP/1.1\r\nHost: a.test\r\nConnection: keep-alive, Upgrade\r\n\
                         Upgrade: websocket\r\nSec-WebSocket-Key: abc\r\nSec-WebSocket-Version: 13\r\n\r\n";
const SWITCHED: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                        Sec-WebSocket-Accept: xyz\r\n\r\n";
/// "going away" as a server sends it.
pub(super) const GOING_AWAY: &[u8] = &[0x88, 2, 0x03, 0xe9];

pub(super) fn handshake(protocol: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\r\n")
}

pub(super) fn switched(protocol: &str) -> String {
    format!("HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\r\n")
}

/// A member whose connections the test controls.
pub(super) struct Member(pub TcpListener);

/// The member's end of one connection.
pub(super) struct End {
    pub stream: TcpStream,
    pub head: String,
}

impl Member {
    pub async fn start() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    pub fn address(&self) -> String {
        self.0.local_addr().unwrap().to_string()
    }

    /// The next connection, and the head of its first request.
    pub async fn accept(&self) -> End {
        let (mut stream, _) = timeout(WAIT_LIMIT, self.0.accept()).await.unwrap().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(timeout(WAIT_LIMIT, stream.read_u8()).await.unwrap().unwrap());
        }
        End { stream, head: String::from_utf8(head).unwrap() }
    }
}

impl End {
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // If bytes are missing, the reader notices.
        let _ = timeout(WAIT_LIMIT, self.stream.write_all(bytes.as_ref())).await.unwrap();
    }

    pub async fn read(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        timeout(WAIT_LIMIT, self.stream.read_exact(&mut bytes)).await.unwrap().unwrap();
        bytes
    }

    /// Reads to the end: the last bytes, and whether the connection ended in order.
    pub async fn rest(&mut self) -> (Vec<u8>, bool) {
        let mut bytes = Vec::new();
        let read = timeout(WAIT_LIMIT, self.stream.read_to_end(&mut bytes)).await.unwrap();
        (bytes, read.is_ok())
    }

    pub async fn finish_sending(&mut self) {
        let _ = self.stream.shutdown().await;
    }
}

/// A site in front of a member of the test.
pub(super) async fn in_front(member: &Member, config: &str) -> Site {
    site(config).with_member("app", &member.address()).start().await
}

/// A tunnel through a site: the client's end and the member's end.
pub(super) async fn tunnel(site: &Site, member: &Member, protocol: &str) -> (Client, End) {
    let mut client = site.connect().await;
    client.send(handshake(protocol)).await;
    let mut end = member.accept().await;
    end.send(switched(protocol)).await;
    let head = client.next_head().await.unwrap();
    assert!(head.start_line().starts_with("HTTP/1.1 101 "), "{head:?}");
    (client, end)
}

pub(super) async fn has_tunnels(site: &Site, tunnels: usize) {
    eventually(format!("{tunnels} tunnels"), async || {
        let status = site.status().await;
        let found = &status["connections"]["tunnels"];
        (found == tunnels && site.pool("app").await["tunnels"] == tunnels).then_some(())
    })
    .await;
}

/// The usual limit of a process is 1024, for all tests that run at once.
pub(super) fn may_open_many_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
}

#[tokio::test]
async fn a_tunnel_opens_and_carries_bytes_in_both_directions() {
    let member = Member::start().await;
    let site = in_front(&member, "").await;
    let mut client = site.connect().await;
    client.send(HANDSHAKE).await;
    let mut end = member.accept().await;
    let head = end.head.to_ascii_lowercase();
    for line in
        ["connection: upgrade\r\n", "upgrade: websocket\r\n", "sec-websocket-key: abc\r\n", "x-request-id: "]
    {
        assert!(head.contains(line), "{line:?} in {head}");
    }
    assert!(!head.contains("keep-alive") && head.contains("x-forwarded-for: 127.0.0.1\r\n"), "{head}");
    end.send(SWITCHED).await;
    let head = client.next_head().await.unwrap();
    assert_eq!(head.start_line(), "HTTP/1.1 101 Switching Protocols");
    assert_eq!(head.field("upgrade").as_deref(), Some("websocket"));
    assert_eq!(head.field("connection").as_deref(), Some("Upgrade"));
    assert_eq!(head.field("sec-websocket-accept").as_deref(), Some("xyz"));
    client.send("ping").await;
    assert_eq!(end.read(4).await, b"ping");
    end.send("pong").await;
    assert_eq!(client.read_exactly(4).await, b"pong");
}

#[tokio::test]
async fn bytes_directly_after_either_head_belong_to_the_tunnel() {
    let member = Member::start().await;
    let site = in_front(&member, "").await;
    let mut client = site.connect().await;
    client.send(format!("{HANDSHAKE}early from the client")).await;
    let mut end = member.accept().await;
    end.send(format!("{SWITCHED}early from the member")).await;
    assert_eq!(end.read(21).await, b"early from the client");
    client.next_head().await.unwrap();
    assert_eq!(client.read_exactly(21).await, b"early from the member");
}

#[tokio::test]
async fn bytes_after_a_declined_handshake_are_the_next_request() {
    let app = upstream().script(|seen| ok(seen.target())).start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.connect().await;
    client.send(format!("{HANDSHAKE}GET /next HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    client.answer().await.assert_ok("/chat");
    client.answer().await.assert_ok("/next");
}

#[tokio::test]
async fn a_request_body_is_read_whole_before_a_tunnel_opens() {
    let member = Member::start().await;
    let config = "routes = [{ match = \"/*\", pool = \"app\", buffer = \"none\" }]";
    let site = in_front(&member, config).await;
    let mut client = site.connect().await;
    let head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\nContent-Length: 4\r\n\r\n";
    client.send(head).await;
    client.send("bodyafter").await;
    let mut end = member.accept().await;
    assert_eq!(end.read(4).await, b"body");
    end.send(switched("x")).await;
    assert_eq!(end.read(5).await, b"after");
    end.finish_sending().await;
    client.next_head().await.unwrap();
    client.assert_closed().await;
}

#[tokio::test]
async fn only_allowed_protocols_are_offered_and_others_make_an_ordinary_request() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let cases = [
        ("1.1", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n", None),
        ("1.1", "Connection: Upgrade\r\nUpgrade: H2C, TLS/1.0, websocket, HTTP/3.0\r\n", Some("websocket")),
        ("1.1", "Upgrade: websocket\r\n", None),
        ("1.0", "Connection: upgrade\r\nUpgrade: websocket\r\n", None),
    ];
    for (version, fields, offered) in cases {
        let request = format!("GET / HTTP/{version}\r\nHost: a\r\n{fields}\r\n");
        site.send(request).await.assert_ok("ok").assert_no_field("upgrade");
        let seen = app.requests().pop().unwrap();
        assert_eq!(seen.field("upgrade").as_deref(), offered, "{fields}");
        assert_eq!(seen.field("connection").as_deref(), offered.map(|_| "Upgrade"), "{fields}");
        assert_eq!(seen.field("http2-settings"), None);
    }
}

#[tokio::test]
async fn a_switch_to_a_protocol_that_was_not_offered_is_a_bad_answer() {
    for (asked, answered) in [
        (handshake("websocket"), switched("other")),
        (handshake("websocket"), "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\n\r\n".into()),
        (handshake("websocket, h2c"), switched("h2c")),
        (handshake("h2c"), switched("h2c")),
        (handshake("x"), switched("x").replace("HTTP/1.1", "HTTP/1.0")),
        (handshake("x"), switched("x, y")),
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n".into(), switched("websocket")),
    ] {
        let app = upstream().answers(&answered).start().await;
        let site = in_front_of(&app, "").await;
        site.send(&asked).await.assert_refused(502, "bad_answer");
        site.settles("app", 0, 0).await;
    }
}

#[tokio::test]
async fn an_unanswered_handshake_is_an_ordinary_request() {
    let app = upstream()
        .in_turn([vec![Step::Close], [vec![Step::Hold], text(switched("x"))].concat()])
        .start()
        .await;
    let config = "pools.app.concurrency = 1\npools.app.queue.limit = 1\npools.app.request_timeout = \"1h\"";
    let site = in_front_of(&app, config).await;
    let mut client = site.connect().await;
    client.send(handshake("x")).await;
    app.has_seen(2).await;
    // It was sent again and has a slot; the next one waits, and the one after that is refused.
    site.settles("app", 1, 0).await;
    let mut waiting = site.connect().await;
    waiting.send(handshake("x")).await;
    site.settles("app", 1, 1).await;
    site.send(handshake("x")).await.assert_refused(503, "queue_full");
    app.release_all();
    assert!(client.next_head().await.unwrap().start_line().starts_with("HTTP/1.1 101 "));
    waiting.answer().await.assert_ok("ok");
}

#[tokio::test]
async fn a_timed_out_handshake_gets_504_and_the_member_is_told() {
    let member = Member::start().await;
    let site = in_front(&member, "pools.app.concurrency = 1\npools.app.request_timeout = \"2s\"").await;
    let mut client = site.connect().await;
    client.send(handshake("x")).await;
    let mut end = member.accept().await;
    client.answer().await.assert_refused(504, "answer_timeout");
    assert_eq!(end.rest().await, (vec![], true));
    site.settles("app", 0, 0).await;
    has_tunnels(&site, 0).await;
}

#[tokio::test]
async fn an_unanswered_handshake_keeps_no_slot_when_its_client_has_left() {
    let member = Member::start().await;
    let config =
        "pools.app.concurrency = 1\npools.app.ejection.timeouts = 1\npools.app.request_timeout = \"1h\"";
    let site = in_front(&member, config).await;
    for _ in 0..2 {
        let mut client = site.connect().await;
        client.send(handshake("websocket")).await;
        // The member reads nothing more, like Node if its app leaves the upgrade alone.
        let mut end = member.accept().await;
        drop(client);
        site.settles("app", 0, 0).await;
        assert_eq!(end.rest().await.0, Vec::<u8>::new());
    }
    let counters = &site.pool("app").await["counters"];
    assert_eq!((&counters["ejections"], &counters["member_failures"]), (&0.into(), &0.into()), "{counters}");
}

#[tokio::test]
async fn a_426_answer_keeps_its_upgrade_field() {
    let answer = "HTTP/1.1 426 Upgrade Required\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n";
    let app = upstream().answers(answer).start().await;
    let site = in_front_of(&app, "").await;
    let mut client = site.connect().await;
    let answer = client.get("/").await;
    answer.assert_status(426).assert_field("upgrade", "websocket").assert_field("connection", "Upgrade");
    // The connection goes on.
    client.get("/").await.assert_status(426);
}

#[tokio::test]
async fn a_tunnel_takes_no_slot() {
    let member = Member::start().await;
    let site = in_front(&member, "pools.app.concurrency = 1").await;
    let (mut client, mut end) = tunnel(&site, &member, "websocket").await;
    let (mut other, mut other_end) = tunnel(&site, &member, "websocket").await;
    has_tunnels(&site, 2).await;
    let mut ordinary = site.begin("/").await;
    let mut app = member.accept().await;
    app.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    ordinary.answer().await.assert_ok("ok");
    client.send("a").await;
    other.send("b").await;
    assert_eq!((end.read(1).await, other_end.read(1).await), (b"a".to_vec(), b"b".to_vec()));
}

#[tokio::test]
async fn tunnels_spread_over_members_and_are_refused_when_none_takes_more() {
    let members = [Member::start().await, Member::start().await];
    let config = "pools.app.max_tunnels = 2\nserver.threads = 2";
    let [a, b] = &members;
    let site = site(config).with_member("app", &a.address()).with_member("app", &b.address()).start().await;
    let mut open = Vec::new();
    for _ in 0..4 {
        let mut client = site.connect().await;
        client.send(handshake("websocket")).await;
        let (mut end, which) = tokio::select! {
            end = a.accept() => (end, 0),
            end = b.accept() => (end, 1),
        };
        end.send(switched("websocket")).await;
        client.next_head().await.unwrap();
        open.push((which, client, end));
    }
    assert_eq!(open.iter().filter(|(which, ..)| *which == 0).count(), 2, "two each");
    has_tunnels(&site, 4).await;
    let refused = site.send(handshake("websocket")).await;
    refused.assert_refused(503, "too_many_tunnels").assert_field("retry-after", "1");
    assert_eq!(site.pool("app").await["counters"]["refused_tunnels"], 1);
    // An ordinary request is not counted as a tunnel.
    let mut ordinary = site.begin("/").await;
    let mut end = tokio::select! { end = a.accept() => end, end = b.accept() => end };
    end.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").await;
    ordinary.answer().await.assert_status(200);
    // The place of a tunnel that has ended is free again.
    drop(open.pop());
    has_tunnels(&site, 3).await;
    let mut client = site.connect().await;
    client.send(handshake("websocket")).await;
    let mut end = tokio::select! { end = a.accept() => end, end = b.accept() => end };
    end.send(switched("websocket")).await;
    client.next_head().await.unwrap();
    has_tunnels(&site, 4).await;
}

#[tokio::test]
async fn a_side_that_does_not_read_stops_the_other_and_no_byte_is_lost() {
    let member = Member::start().await;
    let site = in_front(&member, "").await;
    let (mut client, mut end) = tunnel(&site, &member, "any").await;
    let piece: Vec<u8> = (0..64 * 1024).map(|n: u32| (n % 251) as u8).collect();
    let (mut sent, mut idle) = (0, 0);
    // Kernel buffers hold a few MiB, Hostler 64 KiB; without back-pressure more than this would be taken.
    while idle < 100 {
        let at = sent % piece.len();
        match client.send_some(&piece[at..]) {
            0 => {
                idle += 1;
                tokio::task::yield_now().await;
                site.status().await;
            }
            taken => (sent, idle) = (sent + taken, 0),
        }
        assert!(sent < 200 << 20, "the client is not stopped");
    }
    client.finish_sending().await;
    let (received, whole) = end.rest().await;
    assert!(whole && received.len() == sent, "{} of {sent}", received.len());
    assert!(received.iter().enumerate().all(|(at, byte)| *byte == (at % piece.len() % 251) as u8));
}

#[tokio::test]
async fn a_thousand_tunnels_carry_only_their_own_bytes() {
    // Both ends of each connection are in this process.
    may_open_many_files();
    let member = Member::start().await;
    let site = in_front(&member, "server.threads = 2").await;
    let mut open = Vec::new();
    for n in 0_u32..1000 {
        let (mut client, end) = tunnel(&site, &member, "any").await;
        client.send(n.to_be_bytes()).await;
        open.push((n, client, end));
    }
    has_tunnels(&site, 1000).await;
    for (n, client, end) in &mut open {
        assert_eq!(end.read(4).await, n.to_be_bytes());
        end.send(n.to_le_bytes()).await;
        assert_eq!(client.read_exactly(4).await, n.to_le_bytes());
    }
    drop(open);
    has_tunnels(&site, 0).await;
}
