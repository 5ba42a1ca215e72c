//! Pipes whose reader does not read: start, requests, stop and upgrade do not wait for the reader of our output.

use std::fs::File;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};

use hostler_testkit::{HeldPort, Upstream, client, eventually, held_port, try_client, upstream, within};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// A Hostler whose standard output and standard error are full pipes.
struct Mute {
    child: Child,
    /// The successor, which is ended with the test.
    others: Vec<u32>,
    out: File,
    _err: File,
    ports: [HeldPort; 2],
    folder: TempDir,
}

/// Both ends of a full pipe.
fn full_pipe() -> (File, File) {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
    let mut write = File::from(write);
    for piece in [&[b'\n'; 4096][..], b"\n"] {
        while write.write(piece).is_ok() {}
    }
    // The flag belongs to this end: Hostler's end is blocking.
    rustix::io::ioctl_fionbio(&write, false).unwrap();
    (File::from(read), write)
}

impl Mute {
    async fn start(member: &Upstream) -> Self {
        let (folder, ports) = (tempfile::tempdir().unwrap(), [held_port(), held_port()]);
        // A pool without a route gives a warning on standard error.
        let config = format!(
            "[server]\nlisten = '{}'\nadmin = '{}'\nthreads = 1\n[pools.app]\nmembers = ['{}']\n[pools.unused]\n\
             members = ['127.0.0.1:1']\n[[routes]]\nmatch = '*'\npool = 'app'\n",
            ports[0].address(),
            ports[1].address(),
            member.address()
        );
        std::fs::write(folder.path().join("hostler.toml"), config).unwrap();
        let ((out, their_out), (err, their_err)) = (full_pipe(), full_pipe());
        let child = Command::new(env!("CARGO_BIN_EXE_hostler"))
            .arg("start")
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(their_out)
            .stderr(their_err)
            .spawn()
            .unwrap();
        let mute = Self { child, others: Vec::new(), out, _err: err, ports, folder };
        eventually("it to listen", async || {
            try_client(mute.admin()).await?;
            try_client(mute.address()).await.map(drop)
        })
        .await;
        mute
    }

    fn address(&self) -> SocketAddr {
        self.ports[0].address()
    }

    fn admin(&self) -> SocketAddr {
        self.ports[1].address()
    }

    async fn status(&self) -> Value {
        let mut client = client(self.admin()).await;
        client.send("GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
        client.answer().await.assert_status(200).json()
    }

    fn terminate(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
    }

    /// Waits until the process has ended. One that waited for the reader would never end, because it reads nothing.
    async fn exits(&mut self) {
        let status = eventually("its end", async || self.child.try_wait().unwrap()).await;
        assert!(status.success(), "{status}");
    }
}

impl Drop for Mute {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for pid in self.others.iter().filter_map(|&pid| Pid::from_raw(pid as i32)) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

#[tokio::test]
async fn a_full_pipe_as_standard_output_holds_up_no_request_and_no_stop() {
    let app = upstream().start().await;
    let mut mute = Mute::start(&app).await;
    for _ in 0..100 {
        client(mute.address()).await.get("/").await.assert_ok("ok");
    }
    let log = eventually("it to notice", async || {
        let log = mute.status().await["log"].clone();
        log["stuck_ms"].is_number().then_some(log)
    })
    .await;
    assert!(log["waiting_bytes"].as_u64() > Some(100), "{log}");
    mute.terminate();
    mute.exits().await;
}

#[tokio::test]
async fn when_the_pipe_is_read_again_no_waiting_line_is_missing() {
    let app = upstream().start().await;
    let mut mute = Mute::start(&app).await;
    for number in 0..50 {
        client(mute.address()).await.get(&format!("/{number}")).await.assert_ok("ok");
    }
    let mut out = mute.out.as_fd().try_clone_to_owned().map(File::from).unwrap();
    rustix::io::ioctl_fionbio(&out, false).unwrap();
    let reading = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).unwrap();
        text
    });
    eventually("all to be written", async || {
        (mute.status().await["log"]["waiting_bytes"] == 0).then_some(())
    })
    .await;
    mute.terminate();
    mute.exits().await;
    let text = within("the end of the log", reading).await.unwrap();
    for part in ["listening on", "\"target\":\"/0\"", "\"target\":\"/49\"", "\"text\":\"stopped\""] {
        assert!(text.contains(part), "{part} is missing in {} bytes", text.len());
    }
    assert!(!text.contains("dropped"));
}

#[tokio::test]
async fn a_reload_moves_the_log_from_a_full_pipe_to_a_file() {
    let app = upstream().start().await;
    let mut mute = Mute::start(&app).await;
    client(mute.address()).await.get("/before").await.assert_ok("ok");
    eventually("it to notice", async || mute.status().await["log"]["stuck_ms"].is_number().then_some(()))
        .await;
    let path = mute.folder.path().join("hostler.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, format!("{config}[log]\nfile = 'hostler.log'\n")).unwrap();
    let mut admin = client(mute.admin()).await;
    admin
        .send("POST /reload HTTP/1.1\r\nHost: localhost\r\nHostler-Command: 1\r\nContent-Length: 0\r\n\r\n")
        .await;
    admin.answer().await.assert_status(200);
    drop(admin);
    client(mute.address()).await.get("/later").await.assert_ok("ok");
    let file = mute.folder.path().join("hostler.log");
    let told = || std::fs::read_to_string(&file).unwrap_or_default();
    eventually("its line in the file", async || told().contains("\"target\":\"/later\"").then_some(())).await;
    assert_eq!(mute.status().await["log"]["stuck_ms"], Value::Null);
    mute.terminate();
    mute.exits().await;
    assert!(
        told().contains("\"text\":\"stopped\"") && told().contains(" log lines were dropped: "),
        "{}",
        told()
    );
}

#[tokio::test]
async fn a_full_pipe_holds_up_no_upgrade_and_the_old_process_ends() {
    let app = upstream().start().await;
    let mut mute = Mute::start(&app).await;
    let mut admin = client(mute.admin()).await;
    let order =
        "POST /upgrade HTTP/1.1\r\nHost: localhost\r\nHostler-Command: 1\r\nContent-Length: 0\r\n\r\n";
    admin.send(order).await;
    admin.answer().await.assert_status(200);
    drop(admin);
    mute.exits().await;
    let successor = mute.status().await["pid"].as_u64().unwrap() as u32;
    mute.others.push(successor);
    assert_ne!(successor, mute.child.id());
    client(mute.address()).await.get("/").await.assert_ok("ok");
    kill_process(Pid::from_raw(successor as i32).unwrap(), Signal::TERM).unwrap();
    eventually("its end", async || try_client(mute.address()).await.is_none().then_some(())).await;
}

#[tokio::test]
async fn a_wrong_configuration_is_refused_although_standard_error_is_full() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hostler.toml"), "server.threads = 'many'\n").unwrap();
    let (_err, their_err) = full_pipe();
    let mut child = tokio::process::Command::new(env!("CARGO_BIN_EXE_hostler"))
        .arg("start")
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stderr(their_err)
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let status = eventually("its end", async || child.try_wait().unwrap()).await;
    assert_eq!(status.code(), Some(2));
}
