//! Workers that print while the reader of Hostler's output does not read: their lines are dropped, and they go on.

use std::fs::File;
use std::io::Read;
use std::process::Stdio;

use hostler_testkit::{client, eventually, held_port, try_client, within};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;
use tokio::process::Command;

use super::proc;

/// Each request prints a megabyte to each stream. Node waits until a pipe has taken all of it.
const APP: &str = "
const line = 'x'.repeat(1023) + '\\n';
require('node:http').createServer((request, response) => {
    for (let count = 0; count < 1024; count++) {
        process.stdout.write(line);
        process.stderr.write(line);
    }
    response.end('printed');
}).listen(3000);
";

#[tokio::test]
async fn workers_do_not_wait_for_a_log_reader_and_dropped_lines_are_counted_and_reported() {
    let (folder, listen, admin) = (tempfile::tempdir().unwrap(), held_port(), held_port());
    std::fs::write(folder.path().join("app.cjs"), APP).unwrap();
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_hostler"))
        .args(["run", "--listen", &listen.address().to_string(), "--admin", &admin.address().to_string()])
        .args(["--", "node", "app.cjs"])
        .current_dir(folder.path())
        .env("NODE_OPTIONS", "")
        .stdin(Stdio::null())
        .stdout(write)
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    eventually("it to listen", async || try_client(listen.address()).await.map(drop)).await;
    for _ in 0..12 {
        client(listen.address()).await.get("/").await.assert_ok("printed");
    }
    let log = async || {
        let mut asking = client(admin.address()).await;
        asking.send("GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
        asking.answer().await.assert_status(200).json()["log"].clone()
    };
    let dropped = eventually("lines to be dropped", async || {
        log().await["dropped"].as_u64().filter(|&dropped| dropped > 1000)
    })
    .await;
    let log_then = log().await;
    assert!(log_then["waiting_bytes"].as_u64().unwrap() < 10 << 20, "{log_then}");
    let reading = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        File::from(read).read_to_string(&mut text).unwrap();
        text
    });
    eventually("all to be written", async || (log().await["waiting_bytes"] == 0).then_some(())).await;
    proc::signal(child.id().unwrap(), Signal::TERM);
    let status = eventually("its end", async || child.try_wait().unwrap()).await;
    assert!(status.success(), "{status}");
    let text = within("the end of the log", reading).await.unwrap();
    assert!(text.contains(" log lines were dropped"), "{dropped}");
}
