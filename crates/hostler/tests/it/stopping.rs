//! The stop: accepted requests are finished, no new ones begin, and no wait is endless.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use hostler_testkit::{Site, Step, eventually, held_port, ok, text, try_client, upstream};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::process::{Pid, Signal, kill_process};

use crate::in_front_of;

const PATIENT: &str = "server.drain_timeout = '60s'\npools.app.concurrency = 1\n";

#[tokio::test]
async fn accepted_requests_are_finished_and_idle_connections_closed() {
    let app = upstream().holds_requests().start().await;
    let mut site = in_front_of(&app, PATIENT).await;
    let mut idle = site.connect().await;
    let mut used = site.connect().await;
    used.send("X").await;
    drop(used);
    let mut running = site.begin("/running").await;
    site.settles("app", 1, 0).await;
    let mut waiting = site.begin("/waiting").await;
    site.settles("app", 1, 1).await;
    let mut sending = site.connect().await;
    sending.send("POST /sending HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbo").await;
    eventually("the sender to be heard", async || {
        (site.status().await["connections"]["open"] == 4).then_some(())
    })
    .await;

    site.terminate();
    idle.assert_closed().await;
    eventually("the status to tell", async || (site.status().await["state"] == "draining").then_some(()))
        .await;
    app.release_all();
    running.answer().await.assert_ok("/running").assert_field("connection", "close");
    waiting.answer().await.assert_ok("/waiting").assert_field("connection", "close");
    sending.send("dy").await;
    sending.answer().await.assert_ok("/sending").assert_field("connection", "close");
    assert_eq!(site.exit().await, 0);
    site.says("stopped").await;
    assert_eq!(site.access_lines().len(), 3, "every exchange was written down before the end");
}

#[tokio::test]
async fn a_stopping_hostler_accepts_no_connection() {
    let app = upstream().holds_requests().start().await;
    let mut site = in_front_of(&app, PATIENT).await;
    let mut running = site.begin("/running").await;
    site.settles("app", 1, 0).await;
    site.terminate();
    site.says("stopping").await;
    let address = site.address();
    eventually("the listener to be closed", async || tokio::net::TcpStream::connect(address).await.err())
        .await;
    app.release_all();
    running.answer().await.assert_ok("/running");
    assert_eq!(site.exit().await, 0);
}

#[tokio::test]
async fn a_request_whose_head_has_begun_is_served_during_a_stop() {
    let app = upstream().start().await;
    let mut site = in_front_of(&app, PATIENT).await;
    let mut client = site.connect().await;
    client.send("GET /begun HTTP/1.1\r\nHo").await;
    // The thread that answers this has read the other request before.
    site.get("/").await.assert_ok("ok");
    site.terminate();
    site.says("stopping").await;
    client.send("st: a\r\n\r\n").await;
    client.answer().await.assert_ok("ok").assert_field("connection", "close");
    assert_eq!(site.exit().await, 0);
}

#[tokio::test]
async fn a_streaming_answer_is_finished_during_a_stop() {
    let steps = [
        text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"),
        vec![Step::Hold],
        text("1\r\nb\r\n0\r\n\r\n"),
    ];
    let app = upstream().does(steps.concat()).start().await;
    let mut site = in_front_of(&app, PATIENT).await;
    let mut client = site.begin("/").await;
    client.read_until("a\r\n").await;
    site.terminate();
    site.says("stopping").await;
    app.release(1);
    assert!(client.read_until("0\r\n\r\n").await.contains("b\r\n"));
    client.assert_closed().await;
    assert_eq!(site.exit().await, 0);
}

#[tokio::test]
async fn a_second_signal_stops_at_once() {
    let app = upstream().holds_requests().start().await;
    let mut site = in_front_of(&app, PATIENT).await;
    let mut running = site.begin("/running").await;
    site.settles("app", 1, 0).await;
    site.interrupt();
    site.says("stopping").await;
    again(&site).await;
    assert_eq!(site.exit().await, 0);
    assert!(running.maybe_answer("GET").await.is_none());
}

/// Sends stop signals until one counts as the second and not as a repetition of the first.
async fn again(site: &Site) {
    eventually("it to be told a second time", async || {
        site.interrupt();
        site.lines().iter().any(|line| line.contains("a second signal")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_stop_before_the_first_client_is_in_the_log() {
    let (folder, ports) = (tempfile::tempdir().unwrap(), [held_port(), held_port()]);
    let config = format!(
        "[server]\nlisten = '{}'\nadmin = '{}'\n[registrar]\nnats = 'nats://127.0.0.1:1'\nstart_delay = '1h'\n",
        ports[0].address(),
        ports[1].address()
    );
    std::fs::write(folder.path().join("hostler.toml"), config).unwrap();
    let log = folder.path().join("log");
    let mut hostler = Command::new(env!("CARGO_BIN_EXE_hostler"))
        .arg("start")
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let told = || std::fs::read_to_string(&log).unwrap();
    eventually("it to wait for NATS", async || told().contains("nats: no connection").then_some(())).await;
    kill_process(Pid::from_child(&hostler), Signal::TERM).unwrap();
    let status = eventually("its end", async || hostler.try_wait().unwrap()).await;
    assert!(status.success(), "{status}");
    assert!(told().contains("stopped before it served requests: told to stop"), "{}", told());
}

/// Starts Hostler with a data file that becomes a named pipe after the configuration was checked: to read it waits, as for a file system that
/// does not answer. Returns the other end of the pipe. None: Hostler was faster, and has ended because the file is empty.
async fn started_with_a_silent_file(folder: &Path) -> (Child, Option<File>) {
    let (data, pipe) = (folder.join("last.txt"), folder.join("pipe"));
    std::fs::write(folder.join("first.txt"), "text").unwrap();
    std::fs::write(&data, "").unwrap();
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    // The many files before it are time to put the pipe in its place.
    let files = "'first.txt', ".repeat(1000);
    let config = format!(
        "[server]\nlisten = '127.0.0.1:0'\nadmin = 'off'\n[postal]\ndata = [{files}'last.txt']\n[[routes]]\nmatch = '*'\nrespond = 'ok'\n"
    );
    std::fs::write(folder.join("hostler.toml"), config).unwrap();
    let told = folder.join("told");
    let mut hostler = Command::new(env!("CARGO_BIN_EXE_hostler"))
        .arg("start")
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&told).unwrap())
        .spawn()
        .unwrap();
    eventually("the warning about data without a use", async || {
        std::fs::read_to_string(&told).unwrap().contains("no route has postal").then_some(())
    })
    .await;
    std::fs::rename(&pipe, &data).unwrap();
    let at_once = OFlags::NONBLOCK.bits().cast_signed();
    let held = eventually("the file to be read", async || {
        let held = OpenOptions::new().write(true).custom_flags(at_once).open(&data).ok();
        (held.is_some() || hostler.try_wait().unwrap().is_some()).then_some(held)
    })
    .await;
    (hostler, held)
}

#[tokio::test]
async fn a_stop_ends_a_start_whose_files_are_not_read() {
    loop {
        let folder = tempfile::tempdir().unwrap();
        let (mut hostler, held) = started_with_a_silent_file(folder.path()).await;
        let Some(_held) = held else { continue };
        kill_process(Pid::from_child(&hostler), Signal::TERM).unwrap();
        let status = eventually("its end", async || hostler.try_wait().unwrap()).await;
        assert_eq!(status.signal(), Some(Signal::TERM.as_raw()));
        return;
    }
}

#[tokio::test]
async fn a_signal_to_the_process_and_to_its_group_counts_once() {
    let app = upstream().holds_requests().start().await;
    let mut site = in_front_of(&app, PATIENT).await;
    let mut running = site.begin("/running").await;
    site.settles("app", 1, 0).await;
    // As `timeout -s INT` does, or a service manager that adds its own signal.
    site.interrupt();
    site.terminate();
    site.interrupt();
    site.says("stopping").await;
    app.release_all();
    running.answer().await.assert_ok("/running");
    assert_eq!(site.exit().await, 0);
    assert!(!site.lines().iter().any(|line| line.contains("a second signal")), "{:?}", site.lines());
}

#[tokio::test]
async fn a_stop_waits_at_most_the_drain_timeout() {
    let app = upstream().holds_requests().start().await;
    let mut site = in_front_of(&app, "server.drain_timeout = '200ms'").await;
    let mut running = site.begin("/running").await;
    site.settles("app", 1, 0).await;
    site.terminate();
    assert_eq!(site.exit().await, 0);
    site.says("1 connections did not end in server.drain_timeout").await;
    assert!(running.maybe_answer("GET").await.is_none());
}

#[tokio::test]
async fn a_stop_under_load_loses_nothing() {
    let app = upstream().script(|seen| ok(seen.target())).start().await;
    let mut site =
        in_front_of(&app, "server.drain_timeout = '60s'\nserver.threads = 2\npools.app.concurrency = 4")
            .await;
    let address = site.address();
    let clients: Vec<_> = (0..8)
        .map(|_| {
            tokio::spawn(async move {
                let mut answered = 0;
                // Until connections are refused. A connection that was still in the backlog when the listener closed is reset; its
                // request has not reached the member.
                while let Some(mut client) = try_client(address).await {
                    client.send("GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
                    match client.maybe_answer("GET").await {
                        Some(answer) => drop(answer.assert_ok("/x")),
                        None => return answered,
                    }
                    answered += 1;
                }
                answered
            })
        })
        .collect();
    app.has_seen(200).await;
    site.terminate();
    assert_eq!(site.exit().await, 0);
    let mut answered = 0;
    for client in clients {
        answered += client.await.unwrap();
    }
    assert_eq!(answered, app.requests().len(), "every request that reached the member was answered");
}
