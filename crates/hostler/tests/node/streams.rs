//! Event streams of a real app: they take no slot, and their clients find the next worker with `Last-Event-ID`.

use hostler_testkit::{Client, ConnectionEnding, client, eventually};
use rustix::process::Signal;

use super::proc;
use super::site::{Plan, Site, app};

/// A client of an event stream, as an `EventSource` is one.
struct Source {
    client: Client,
    pid: u32,
    last_id: u64,
}

fn events(workers: usize) -> Plan {
    app("events.cjs").workers(workers)
}

async fn listen(site: &Site) -> Source {
    listen_after(site, 0).await
}

async fn listen_after(site: &Site, last_id: u64) -> Source {
    let mut client = client(site.address()).await;
    let fields = format!("Host: site.test\r\nAccept: text/event-stream\r\nLast-Event-ID: {last_id}\r\n");
    client.send(format!("GET /events HTTP/1.1\r\n{fields}\r\n")).await;
    let head = client.next_head().await.unwrap();
    assert_eq!(head.start_line(), "HTTP/1.1 200 OK");
    let mut source = Source { client, pid: 0, last_id };
    source.next().await;
    source
}

impl Source {
    /// The next event, which has the next number.
    async fn next(&mut self) {
        let event = self.client.read_until("\n\n").await;
        let field = |name: &str| {
            let line = event.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.parse::<u64>().unwrap()
        };
        assert_eq!(field("id: "), self.last_id + 1, "{event:?}");
        self.last_id += 1;
        self.pid = field("data: ") as u32;
    }

    /// The answer ends in order and between two events. Returns the number of the last one.
    async fn ends(mut self) -> u64 {
        let rest = self.client.read_until("\r\n0\r\n\r\n").await;
        let events = rest.strip_suffix("\r\n0\r\n\r\n").unwrap();
        assert!(events.is_empty() || events.ends_with("\n\n"), "{events:?}");
        self.last_id + events.lines().filter(|line| line.starts_with("id: ")).count() as u64
    }
}

/// Which processes have seen the end of a stream.
async fn app_heard(site: &Site, pids: &[u32]) {
    site.app_heard(pids.iter().map(u32::to_string).collect()).await;
}

#[tokio::test]
async fn two_event_sources_leave_the_only_slot_of_the_only_worker_to_a_page() {
    for concurrency in ["1", "auto"] {
        let site = events(1).option(&format!("pools.app.concurrency={concurrency}")).started().await;
        let mut sources = [listen(&site).await, listen(&site).await];
        site.has_open("streams", &[2]).await;
        site.settles_at(0, 0).await;
        site.get("/").await.assert_ok("page");
        for source in &mut sources {
            source.next().await;
        }
        drop(sources);
        site.has_open("streams", &[0]).await;
        site.stop().await;
    }
}

#[tokio::test]
async fn event_sources_spread_over_workers() {
    let site = events(2).started().await;
    let mut open = Vec::new();
    for _ in 0..6 {
        open.push(listen(&site).await);
    }
    site.has_open("streams", &[3, 3]).await;
    let table = site.command(&["status"]).await.stdout;
    assert!(table.contains("6 streams"), "{table}");
    drop(open);
    site.stop().await;
}

#[tokio::test]
async fn a_restart_ends_streams_and_clients_continue_at_the_successor() {
    let site = events(2).started().await;
    let [one, other] = [listen(&site).await, listen(&site).await];
    let (old, pids) = (site.pids().await, [one.pid, other.pid]);
    let (said, last_id, _) = tokio::join!(site.command(&["restart"]), one.ends(), other.ends());
    said.assert_exit(0);
    app_heard(&site, &pids).await;
    let mut next = listen_after(&site, last_id).await;
    assert!(!old.contains(&next.pid));
    next.next().await;
    site.stop().await;
}

#[tokio::test]
async fn a_worker_that_dies_breaks_its_streams_off() {
    let site = events(1).started().await;
    let mut source = listen(&site).await;
    proc::signal(source.pid, Signal::KILL);
    let (rest, ending) = source.client.rest().await;
    assert!(ending == ConnectionEnding::Reset && !rest.ends_with("0\r\n\r\n"), "{rest:?}");
    site.is_ready().await;
    let next = listen_after(&site, source.last_id).await;
    assert_ne!(next.pid, source.pid);
    site.has_open("streams", &[1]).await;
    assert_eq!(site.pool("app").await["kept_off"], serde_json::json!([]), "the stream is not to blame");
    site.stop().await;
}

#[tokio::test]
async fn a_worker_that_hangs_is_found_by_its_stream() {
    let hangs = "require('http').createServer((req, res) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' });
        res.write('data: 1\\n\\n');
        setTimeout(() => { for (;;); }, 2000);
    }).listen(3000);";
    let site = super::site::source(hangs)
        .option("pools.app.request_timeout=1s")
        .option("pools.app.hang_timeout=2s")
        .started()
        .await;
    let mut client = site.begin("/").await;
    client.read_until("data: 1\n\n").await;
    client.read_until("\r\n0\r\n\r\n").await;
    site.logged("its event loop").await;
    site.stop().await;
}

#[tokio::test]
async fn neither_the_request_timeout_nor_the_hang_timeout_ends_a_live_stream() {
    let site = events(1)
        .option("pools.app.request_timeout=200ms")
        .option("pools.app.hang_timeout=300ms")
        .started()
        .await;
    let mut source = listen(&site).await;
    while source.last_id < 60 {
        source.next().await;
    }
    drop(source);
    site.has_open("streams", &[0]).await;
    assert_eq!(site.workers().await[0]["restarts"], 0);
    site.stop().await;
}

#[tokio::test]
async fn a_long_poll_does_not_keep_a_page_waiting() {
    let site = events(1).started().await;
    let polls = [site.ask("/poll"), site.ask("/poll")];
    site.settles_at(2, 0).await;
    site.get("/").await.assert_ok("page");
    site.touch("news");
    for poll in polls {
        poll.await.unwrap().assert_ok("news");
    }
    site.stop().await;
}

#[tokio::test]
async fn an_upgrade_of_hostler_moves_event_sources_to_the_successor() {
    let mut site = events(1).option("server.drain_timeout=1m").started().await;
    let mut source = listen(&site).await;
    let old = source.pid;
    site.command(&["upgrade"]).await.assert_exit(0);
    // The connection of the old process ends with its stream, so the next one is to the new process.
    let (rest, _) = source.client.rest().await;
    assert!(rest.ends_with("\n\n\r\n0\r\n\r\n") || rest == "\r\n0\r\n\r\n", "{rest:?}");
    app_heard(&site, &[old]).await;
    let next = listen_after(&site, 9).await;
    assert_ne!(next.pid, old);
    assert_eq!(site.exit().await, 0, "nothing keeps the old one");
    let successor = site.status().await["pid"].as_u64().unwrap() as u32;
    proc::signal(successor, Signal::TERM);
    next.ends().await;
    eventually("the successor to be gone", async || (!proc::is_alive(successor)).then_some(())).await;
}

#[tokio::test]
async fn a_stop_ends_streams_in_order() {
    let site = events(1).option("server.drain_timeout=1m").started().await;
    let [one, other] = [listen(&site).await, listen(&site).await];
    let pids = [one.pid, other.pid];
    site.terminate();
    tokio::join!(one.ends(), other.ends());
    app_heard(&site, &pids).await;
    site.stop().await;
}

#[tokio::test]
async fn a_stream_that_kills_its_worker_at_once_is_kept_off() {
    let dies = "require('http').createServer((req, res) => {
        if (req.url !== '/events') return res.end('page');
        res.writeHead(200, { 'content-type': 'text/event-stream' });
        res.write('data: 1\\n\\n', () => setTimeout(() => process.exit(1), 20));
    }).listen(3000);";
    let site = super::site::source(dies).started().await;
    for _ in 0..2 {
        site.is_ready().await;
        site.get("/").await.assert_ok("page");
        let mut client = site.begin("/events").await;
        client.rest().await;
    }
    eventually("a refusal", async || {
        let kept_off = site.pool("app").await["kept_off"].clone();
        (kept_off[0]["request"] == "GET site.test/events from client 127.0.0.1").then_some(())
    })
    .await;
    site.stop().await;
}

#[tokio::test]
async fn streams_give_no_advice_about_the_number_of_slots() {
    let site = events(1).option("pools.app.concurrency=1").started().await;
    let mut sources = [listen(&site).await, listen(&site).await, listen(&site).await];
    // Twelve seconds of events: longer than advice takes.
    while sources[0].last_id < 600 {
        for source in &mut sources {
            source.next().await;
        }
        if sources[0].last_id % 100 == 0 {
            site.get("/").await.assert_ok("page");
        }
    }
    let pool = site.pool("app").await;
    assert!(pool["times"]["slot_hold"]["max_us"].as_u64().unwrap() < 5_000_000, "{}", pool["times"]);
    let worker = site.workers().await[0].clone();
    assert!(!worker["slots_reason"].as_str().unwrap_or_default().contains("auto"), "{worker}");
    site.stop().await;
}
