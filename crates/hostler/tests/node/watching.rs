//! Which folders `hostler run --watch` watches if the system does not let it watch all of them, or if they come and go.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use hostler_testkit::say_skipped;

use super::site::{Plan, source};

const APP: &str = "require('http').createServer((req, res) => res.end('ok')).listen(3000);";
/// Starts a program that is root of its own namespace, with limits of its own on watches.
const WITH_LIMITS: &str = "unshare --user --map-root-user";
/// Starts a program that is not root, also if root runs the tests. It owns what they have made.
pub const WITHOUT_RIGHTS: &str = "unshare --user --map-user=1000 --map-group=1000";

/// Whether this system allows the command. If not, a line about the skipped test has been printed.
pub fn is_allowed(command: &str) -> bool {
    let tried = Command::new("sh").args(["-c", command]).stderr(Stdio::null()).status();
    let is_allowed = tried.unwrap().success();
    if !is_allowed {
        say_skipped(&format!("this system does not allow {command}"));
    }
    is_allowed
}

/// An app under `--watch`. Hostler is started by a script that ends with this line, where `$0` is Hostler and `$@` its arguments.
fn started_by(unshare: &str, line: &str) -> Plan {
    let plan = source(APP).flag("--watch");
    let (starter, hostler) = (plan.folder().join("starter"), env!("CARGO_BIN_EXE_hostler"));
    std::fs::write(&starter, format!("#!/bin/sh\nexec {unshare} sh -c '{line}' {hostler} \"$@\"\n")).unwrap();
    set_mode(&starter, 0o755);
    plan.called(&starter)
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn a_folder_that_may_not_be_read_is_left_out() {
    if !is_allowed(&format!("{WITHOUT_RIGHTS} true")) {
        return;
    }
    let plan = started_by(WITHOUT_RIGHTS, r#"exec "$0" "$@""#);
    for name in ["database", "src", "zone"] {
        std::fs::create_dir(plan.folder().join(name)).unwrap();
    }
    // As a database in a container makes it.
    set_mode(&plan.folder().join("database"), 0o000);
    let site = plan.started().await;
    for name in ["src/a.js", "zone/b.js"] {
        std::fs::write(site.file(name), "").unwrap();
        site.logged(&format!("watch: {name} has changed")).await;
    }
    set_mode(&site.file("database"), 0o755);
    site.is_ready().await;
    site.stop().await;
}

#[tokio::test]
async fn the_limits_of_the_system_are_named() {
    // In many containers, /proc/sys may not be written.
    if !is_allowed(&format!("{WITH_LIMITS} sh -c 'echo 100 > /proc/sys/user/max_inotify_watches'")) {
        return;
    }
    let limits = |name: &str, limit: u32| {
        started_by(WITH_LIMITS, &format!(r#"echo {limit} > /proc/sys/user/{name}; exec "$0" "$@""#))
    };
    let output = limits("max_inotify_instances", 0).ended().await;
    output.assert_exit(1).assert_complains("raise fs.inotify.max_user_instances");
    let output = limits("max_inotify_watches", 0).ended().await;
    output.assert_exit(1).assert_complains("raise fs.inotify.max_user_watches");
    // Enough for the start, and not for what comes later.
    let site = limits("max_inotify_watches", 30).started().await;
    for number in 0..60 {
        std::fs::create_dir(site.file(&format!("folder{number}"))).unwrap();
    }
    let said = site.logged("watch: cannot watch ").await;
    assert!(said.contains("raise fs.inotify.max_user_watches"), "{said}");
    std::fs::write(site.file("new.js"), "").unwrap();
    site.logged("watch: new.js has changed").await;
    site.is_ready().await;
    site.stop().await;
}

/// A watch ends with its folder, and no event tells when another one has its name.
#[tokio::test]
async fn a_watched_folder_that_a_build_removes_first_is_watched_again() {
    let plan = source(APP).flag("--watch-path").flag("dist");
    std::fs::create_dir(plan.folder().join("dist")).unwrap();
    let site = plan.started().await;
    for name in ["dist/first.js", "dist/second.js"] {
        std::fs::remove_dir_all(site.file("dist")).unwrap();
        std::fs::create_dir(site.file("dist")).unwrap();
        std::fs::write(site.file(name), "").unwrap();
        site.logged(&format!("{name} has changed")).await;
    }
    site.is_ready().await;
    site.stop().await;
}
