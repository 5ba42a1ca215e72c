//! Hostler as process 1, as in a container: the kernel gives it the orphans of all others, and ends all others with it.

use std::fs::OpenOptions;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::process::{Command, Stdio};

use hostler_testkit::{eventually, say_skipped, within};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

use super::proc;
use super::site::source;

/// On `/orphan` the app starts a process that leaves its group and loses its parent.
const APP: &str = "const { spawn } = require('child_process');
    const { TEST_FOLDER } = process.env;
    require('http').createServer((request, response) => {
      if (request.url === '/exit') process.exit(3);
      if (request.url === '/orphan') {
        const script = `setsid sh -c 'sleep 0.2; : > ${TEST_FOLDER}/ended' &`;
        spawn('sh', ['-c', script], { stdio: 'ignore', detached: true });
      }
      response.end();
    }).listen(3000);";

/// Runs a program as process 1 of a container.
const UNSHARE: &str = "unshare --user --map-root-user --pid --fork --kill-child --mount-proc";

fn has_containers() -> bool {
    let test = format!("{UNSHARE} true");
    let tried = Command::new("sh").args(["-c", &test]).stderr(Stdio::null()).status().unwrap();
    if !tried.success() {
        say_skipped(&format!("this system does not allow {UNSHARE}"));
    }
    tried.success()
}

#[tokio::test]
async fn as_process_1_hostler_leaves_no_zombie_and_still_learns_how_its_own_children_end() {
    if !has_containers() {
        return;
    }
    let plan = source(APP);
    let container = plan.folder().join("container");
    let hostler = env!("CARGO_BIN_EXE_hostler");
    std::fs::write(&container, format!("#!/bin/sh\nexec {UNSHARE} {hostler} \"$@\"\n")).unwrap();
    std::fs::set_permissions(&container, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut site = plan.called(&container).started().await;
    let process_1 = proc::children_of(site.pid())[0];
    let own = proc::children_of(process_1);
    site.get("/orphan").await.assert_status(200);
    eventually("the orphan to end", async || site.file("ended").exists().then_some(())).await;
    // A zombie is a child until its parent has read its status.
    eventually("the orphan to be no child any more", async || {
        proc::children_of(process_1).iter().all(|child| own.contains(child)).then_some(())
    })
    .await;
    site.get("/exit").await;
    let died = site.logged("app/1: died (pid ").await;
    assert!(died.contains("exit code 3"), "{died}");
    site.is_ready().await;
    site.command_of(hostler, &["upgrade"])
        .await
        .assert_exit(1)
        .assert_complains("process 1 of its container");
    proc::signal(process_1, rustix::process::Signal::TERM);
    assert_eq!(site.exit().await, 0);
}

/// The kernel drops a signal to process 1 that it does not handle yet, and container runtimes do not send it again. The file may be on a disk that
/// does not answer.
#[tokio::test]
async fn as_process_1_hostler_obeys_a_stop_that_comes_while_the_configuration_is_read() {
    if !has_containers() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hostler.toml");
    mknodat(CWD, &file, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let start = format!("exec {UNSHARE} {} start", env!("CARGO_BIN_EXE_hostler"));
    let mut container = tokio::process::Command::new("sh")
        .args(["-c", &start])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let at_once = OFlags::NONBLOCK.bits().cast_signed();
    let _pipe = eventually("the configuration to be read", async || {
        OpenOptions::new().write(true).custom_flags(at_once).open(&file).ok()
    })
    .await;
    proc::signal(proc::children_of(container.id().unwrap())[0], rustix::process::Signal::TERM);
    let status = within("its end", container.wait()).await.unwrap();
    assert_eq!(status.code(), Some(0));
}
