//! WebSockets with a real app and a real client: which bytes pass, and that each connection ends with a Close frame.

use futures_util::{SinkExt, StreamExt};
use hostler_testkit::{eventually, within};
use rustix::process::Signal;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{WebSocketStream, client_async};

use super::proc;
use super::site::{Plan, Site, app, source};

/// Leaves upgrades alone, as an app does that knows only its own path; refuses /refused and keeps the connection. Reads nothing of either.
const UNREAD: &str = "const server = require('node:http').createServer((req, res) => res.end('ok'));
server.on('upgrade', ({ url }, socket) => {
  if (url === '/refused') socket.write('HTTP/1.1 403 Forbidden\\r\\nContent-Length: 2\\r\\n\\r\\nno');
  if (url === '/endless') socket.write('HTTP/1.1 403 Forbidden\\r\\n\\r\\nno');
});
server.listen(3000);";

/// A client's end, and the process that greeted it.
struct Socket {
    socket: WebSocketStream<TcpStream>,
    pid: u32,
}

fn sockets(workers: usize) -> Plan {
    app("sockets.cjs").workers(workers)
}

async fn opened(site: &Site) -> Socket {
    let stream = TcpStream::connect(site.address()).await.unwrap();
    let (socket, _) = within("a handshake", client_async("ws://site.test/", stream)).await.unwrap();
    let mut socket = Socket { socket, pid: 0 };
    socket.pid = socket.next().await.into_text().unwrap().parse().unwrap();
    socket
}

impl Socket {
    async fn next(&mut self) -> Message {
        within("a message", self.socket.next()).await.expect("another message").unwrap()
    }

    async fn echoes(&mut self, message: Message) {
        within("room to send", self.socket.send(message.clone())).await.unwrap();
        assert!(self.next().await == message, "a message comes back as it went");
    }

    /// The connection ends in order: with this code, and nothing after it.
    async fn goes_when_told(mut self) {
        let Message::Close(Some(frame)) = self.next().await else { panic!("no close frame") };
        assert_eq!(frame.code, CloseCode::Away);
        assert!(within("the end", self.socket.next()).await.is_none_or(|end| end.is_err()));
    }
}

/// What the app has received: process id and code.
async fn app_heard(site: &Site, closings: &[(u32, u16)]) {
    site.app_heard(closings.iter().map(|(pid, code)| format!("{pid} {code}")).collect()).await;
}

#[tokio::test]
async fn messages_of_a_megabyte_are_echoed_unchanged() {
    let site = sockets(1).started().await;
    let mut socket = opened(&site).await;
    for size in [0, 1, 125, 126, 65_535, 65_536, 1 << 20] {
        socket.echoes(Message::binary((0..size).map(|n| (n % 253) as u8).collect::<Vec<_>>())).await;
    }
    socket.echoes(Message::text("\u{e9}".repeat(500_000))).await;
    socket.socket.close(None).await.unwrap();
    assert!(matches!(socket.next().await, Message::Close(_)), "the app's own answer");
    assert!(within("the end", socket.socket.next()).await.is_none());
    let pid = socket.pid;
    drop(socket);
    app_heard(&site, &[(pid, 1005)]).await;
    site.has_open("tunnels", &[0]).await;
    site.stop().await;
}

#[tokio::test]
async fn sockets_spread_over_workers_and_take_no_slots() {
    let site = sockets(2).option("pools.app.concurrency=1").started().await;
    let mut open = Vec::new();
    for _ in 0..6 {
        open.push(opened(&site).await);
    }
    site.has_open("tunnels", &[3, 3]).await;
    site.settles_at(0, 0).await;
    site.get("/").await.assert_status(200);
    for socket in &mut open {
        socket.echoes(Message::text("still there")).await;
    }
    let table = site.command(&["status"]).await.stdout;
    assert!(table.contains("6 tunnels"), "{table}");
    drop(open);
    site.stop().await;
}

#[tokio::test]
async fn a_restart_closes_websockets_with_1001_and_the_next_one_reaches_the_successor() {
    let site = sockets(2).started().await;
    let [one, other] = [opened(&site).await, opened(&site).await];
    let (old, told) = (site.pids().await, [(one.pid, 1001), (other.pid, 1001)]);
    let (said, (), ()) =
        tokio::join!(site.command(&["restart"]), one.goes_when_told(), other.goes_when_told());
    said.assert_exit(0);
    app_heard(&site, &told).await;
    let mut new = opened(&site).await;
    assert!(!old.contains(&new.pid));
    new.echoes(Message::text("hello again")).await;
    site.stop().await;
}

#[tokio::test]
async fn a_worker_that_dies_closes_its_websockets_with_a_close_frame() {
    let site = sockets(1).started().await;
    let socket = opened(&site).await;
    let killed = socket.pid;
    proc::signal(killed, Signal::KILL);
    socket.goes_when_told().await;
    site.is_ready().await;
    let exited = opened(&site).await;
    assert_ne!(exited.pid, killed);
    // A tunnel that ends by itself sends nothing more.
    let _asked = site.ask("/exit");
    exited.goes_when_told().await;
    site.has_open("tunnels", &[0]).await;
    site.stop().await;
}

#[tokio::test]
async fn a_worker_that_hangs_over_a_message_is_killed_and_its_websockets_get_a_close_frame() {
    let site = sockets(1).option("pools.app.request_timeout=2s").started().await;
    let mut socket = opened(&site).await;
    eventually("the worker to be asked how it is doing, for its socket's sake", async || {
        site.workers().await[0]["utilisation"].as_f64()
    })
    .await;
    socket.socket.send(Message::text("hang")).await.unwrap();
    let hung = socket.pid;
    socket.goes_when_told().await;
    let told = site.logged("hung: ").await;
    assert!(told.contains("; tunnels: GET site.test/, for ") && !told.contains("unfinished"), "{told}");
    site.is_ready().await;
    assert_ne!(opened(&site).await.pid, hung);
    site.stop().await;
}

#[tokio::test]
async fn an_upgrade_of_hostler_moves_websockets_to_the_successor() {
    let mut site = sockets(1).option("server.drain_timeout=1m").started().await;
    let socket = opened(&site).await;
    let old = socket.pid;
    site.command(&["upgrade"]).await.assert_exit(0);
    socket.goes_when_told().await;
    app_heard(&site, &[(old, 1001)]).await;
    let mut new = opened(&site).await;
    assert_ne!(new.pid, old);
    assert_eq!(site.exit().await, 0, "nothing keeps the old one");
    new.echoes(Message::text("hello again")).await;
    let successor = site.status().await["pid"].as_u64().unwrap() as u32;
    proc::signal(successor, Signal::TERM);
    new.goes_when_told().await;
    eventually("the successor to be gone", async || (!proc::is_alive(successor)).then_some(())).await;
}

#[tokio::test]
async fn a_stop_closes_websockets_with_1001() {
    let site = sockets(1).option("server.drain_timeout=1m").started().await;
    let [one, other] = [opened(&site).await, opened(&site).await];
    let told = [(one.pid, 1001), (other.pid, 1001)];
    site.terminate();
    tokio::join!(one.goes_when_told(), other.goes_when_told());
    app_heard(&site, &told).await;
    site.stop().await;
}

fn upgrade(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
}

#[tokio::test]
async fn upgrades_that_an_app_leaves_alone_end_no_worker() {
    for concurrency in ["'auto'", "2"] {
        let concurrency = format!("pools.app.concurrency={concurrency}");
        let plan = source(UNREAD).option("pools.app.request_timeout=1s").option("pools.app.hang_timeout=1h");
        let site = plan.option(&concurrency).started().await;
        let pids = site.pids().await;
        let [mut waits, mut leaves, mut reads] =
            [site.connect().await, site.connect().await, site.connect().await];
        waits.send(upgrade("/waits")).await;
        waits.answer().await.assert_refused(504, "answer_timeout");
        leaves.send(upgrade("/leaves")).await;
        reads.send(upgrade("/endless")).await;
        reads.read_until("no").await;
        drop((leaves, reads));
        site.settles_at(0, 0).await;
        site.get("/next").await.assert_ok("ok");
        assert_eq!(site.pids().await, pids, "the worker lives on with {concurrency}");
        site.stop().await;
    }
}

#[tokio::test]
async fn an_upgrade_that_an_app_leaves_alone_keeps_no_fixed_slot_when_its_client_has_left() {
    let plan = source(UNREAD).option("pools.app.request_timeout=1h").option("pools.app.concurrency=1");
    let site = plan.started().await;
    let pids = site.pids().await;
    let mut leaves = site.connect().await;
    leaves.send(upgrade("/leaves")).await;
    site.settles_at(1, 0).await;
    drop(leaves);
    site.settles_at(0, 0).await;
    site.get("/next").await.assert_ok("ok");
    assert_eq!(site.pids().await, pids);
    site.stop().await;
}

#[tokio::test]
async fn no_request_follows_a_refused_upgrade_on_its_connection_to_the_worker() {
    let site = source(UNREAD).started().await;
    for _ in 0..2 {
        let mut client = site.connect().await;
        client.send(upgrade("/refused")).await;
        client.answer().await.assert_status(403);
        site.get("/next").await.assert_ok("ok");
    }
    site.stop().await;
}
