//! Reloads of a changed configuration while requests are under way.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Stdio;

use hostler_testkit::{Site, Upstream, eventually, held_port, no_upstream, try_client, upstream, within};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::metrics::samples;
use crate::{in_front_of, signal, site};

fn pool(upstream: &Upstream) -> String {
    format!("members = ['{}']\nrequest_timeout = '1h'\nqueue.timeout = '1h'\n", upstream.address())
}

async fn reload(site: &Site, config: &str) -> String {
    site.rewrite(config);
    site.command(&["reload"]).await.assert_exit(0).stdout.clone()
}

#[tokio::test]
async fn routes_and_pools_follow_the_file() {
    let (old, new) = (upstream().start().await, upstream().start().await);
    let site = in_front_of(&old, "").await;
    site.get("/").await.assert_ok("ok");
    site.exchanges(1).await;

    let both = format!("[pools.app]\n{}[pools.new]\n{}", pool(&old), pool(&new));
    let routes = "[[routes]]\nmatch = '*'\npool = 'app'\n[[routes]]\nmatch = '/new/*'\npool = 'new'\n";
    let said = reload(&site, &format!("{both}{routes}")).await;
    assert!(said.contains("pool new: added") && said.contains("routes: changed, now 2"), "{said}");
    site.get("/new/1").await.assert_ok("ok");
    site.get("/").await.assert_ok("ok");
    assert_eq!((old.requests().len(), new.requests().len()), (2, 1));
    let status = eventually("counters", async || {
        let status = site.status().await;
        (status["routes"][0]["answers"]["2xx"] == 2).then_some(status)
    })
    .await;
    assert_eq!(status["last_reload"]["ok"], true);
    assert_eq!(status["pools"][0]["counters"]["granted"], 2, "a pool that is equal is the same pool");

    let only_new = "[[routes]]\nmatch = '*'\npool = 'new'\n";
    let said = reload(&site, &format!("[pools.new]\n{}{only_new}", pool(&new))).await;
    assert!(said.contains("pool app: removed"), "{said}");
    site.get("/").await.assert_ok("ok");
    assert_eq!((old.requests().len(), new.requests().len()), (2, 2));
    assert_eq!(site.status().await["pools"].as_array().unwrap().len(), 1);
    let said = reload(&site, &format!("[pools.new]\n{}{only_new}", pool(&new))).await;
    assert!(said.contains("nothing has changed"), "{said}");
}

#[tokio::test]
async fn a_removed_pool_finishes_its_accepted_requests() {
    let old = upstream().holds_requests().start().await;
    let site = in_front_of(&old, "server.drain_timeout = '60s'\npools.app.concurrency = 1").await;
    let mut running = site.begin("/running").await;
    site.settles("app", 1, 0).await;
    let mut waiting = site.begin("/waiting").await;
    site.settles("app", 1, 1).await;
    let mut sending = site.connect().await;
    sending.send("POST /sending HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbo").await;
    // The thread that answers this has read the other request before.
    site.send("GET / HTTP/1.1\r\n\r\n").await.assert_status(400);

    let routes = "[[routes]]\nmatch = '*'\nrespond = { status = 204 }\n";
    reload(&site, &format!("server.drain_timeout = '60s'\n{routes}")).await;
    site.get("/").await.assert_status(204);
    old.release_all();
    running.answer().await.assert_ok("/running");
    waiting.answer().await.assert_ok("/waiting");
    sending.send("dy").await;
    sending.answer().await.assert_ok("/sending");
}

#[tokio::test]
async fn a_removed_pool_waits_for_requests_from_before_an_earlier_reload() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.drain_timeout = '1s'").await;
    let mut sending = site.connect().await;
    sending.send("POST /sending HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbo").await;
    // The thread that answers this has read the other request before.
    site.send("GET / HTTP/1.1\r\n\r\n").await.assert_status(400);

    let other = "server.drain_timeout = '1s'\n[[routes]]\nmatch = '/other'\nrespond = { status = 204 }\n";
    let routes = "[[routes]]\nmatch = '*'\npool = 'app'\n";
    reload(&site, &format!("{other}{routes}[pools.app]\n{}", pool(&app))).await;
    reload(&site, other).await;
    // The pool has known of the request until its time was over.
    site.says("pool app: requests did not end in server.drain_timeout").await;
}

#[tokio::test]
async fn a_bad_file_changes_nothing_and_says_why() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    assert!(!samples(&site).await.contains_key("hostler_last_reload_successful"), "there was no reload");
    site.command(&["reload"]).await.assert_exit(0);
    assert_eq!(samples(&site).await["hostler_last_reload_successful"], 1.0);
    for (text, why) in [
        (
            "[server]\nlisten = '127.0.0.1:1'\n[pools.app]\nmembrs = []\n",
            "hostler.toml:4:1: unknown key \"pools.app.membrs\"",
        ),
        ("[server\n", "hostler.toml:1:"),
    ] {
        site.write_file(text);
        site.command(&["reload"]).await.assert_exit(1).assert_complains(why);
        site.get("/").await.assert_ok("ok");
        let last = site.status().await["last_reload"].clone();
        let names = |line: &serde_json::Value| line.as_str().unwrap().starts_with(why);
        assert!(last["ok"] == false && last["text"].as_array().unwrap().iter().any(names), "{last}");
        assert_eq!(samples(&site).await["hostler_last_reload_successful"], 0.0);
    }
    site.says("reload: hostler.toml:4:1: unknown key").await;
    assert!(site.command(&["status"]).await.stdout.contains("last reload, "));
}

#[tokio::test]
async fn a_reload_names_keys_that_need_an_upgrade_and_applies_the_rest() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let config = format!(
        "server.listen = '127.0.0.1:1'\nserver.threads = 2\nserver.max_header_fields = 9\npools.app.{}",
        pool(&app).replace('\n', "\npools.app.").trim_end_matches("pools.app.")
    );
    let said = reload(&site, &config).await;
    for part in [
        "server.listen: not applied yet; run `hostler upgrade`",
        "server.threads: not applied",
        "server: max_header_fields",
    ] {
        assert!(said.contains(part), "expected {part:?} in {said}");
    }
    let many = "X: 1\r\n".repeat(20);
    let answer = site.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n")).await;
    answer.assert_refused(431, "too_many_fields");
    site.get("/").await.assert_ok("ok");
}

#[tokio::test]
async fn a_signal_reloads_too() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    site.rewrite("[[routes]]\nmatch = '*'\nrespond = { status = 204 }\n");
    site.hang_up();
    site.says("reload: routes: changed, now 1").await;
    site.get("/").await.assert_status(204);
}

/// None while no process reads the named pipe.
fn writer_to(pipe: &Path) -> Option<File> {
    let at_once = OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().write(true).custom_flags(at_once).open(pipe).ok()
}

#[tokio::test]
async fn a_signal_to_reload_that_comes_during_the_start_does_not_end_hostler() {
    let (folder, port) = (tempfile::tempdir().unwrap(), held_port());
    let file = folder.path().join("hostler.toml");
    mknodat(CWD, &file, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let mut hostler = Command::new(env!("CARGO_BIN_EXE_hostler"))
        .arg("start")
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let server = format!("[server]\nlisten = '{}'\nadmin = 'off'\n", port.address());
    let config = format!("{server}[[routes]]\nmatch = '*'\nrespond = {{ status = 204 }}\n");

    let mut pipe = eventually("the configuration to be read", async || writer_to(&file)).await;
    signal(hostler.id().unwrap(), Signal::HUP);
    pipe.write_all(config.as_bytes()).unwrap();
    drop(pipe);
    eventually("it to listen", async || try_client(port.address()).await).await;
    let mut pipe = eventually("the configuration to be read again", async || writer_to(&file)).await;
    pipe.write_all(config.as_bytes()).unwrap();
    drop(pipe);
    let mut lines = BufReader::new(hostler.stdout.take().unwrap()).lines();
    within("the end of the reload", async {
        while !lines.next_line().await.unwrap().unwrap().contains("reload: nothing") {}
    })
    .await;
}

#[tokio::test]
async fn a_reload_whose_files_do_not_answer_fails_in_time_and_holds_up_no_later_one() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.upgrade_timeout = '3s'").await;
    let file = site.folder().join("hostler.toml");
    std::fs::remove_file(&file).unwrap();
    // To open a named pipe waits for its other end, as for a file system that does not answer.
    mknodat(CWD, &file, FileType::Fifo, Mode::RWXU, 0).unwrap();
    site.hang_up();
    site.says("reload: the configuration was not read in 3s (server.upgrade_timeout)").await;
    std::fs::remove_file(&file).unwrap();
    site.rewrite("[[routes]]\nmatch = '*'\nrespond = { status = 204 }\n");
    site.hang_up();
    site.says("reload: routes: changed, now 1").await;
    site.get("/").await.assert_status(204);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn reloads_whose_files_do_not_answer_leave_few_threads() {
    const RELOADS: usize = 60;
    let app = upstream().start().await;
    let site = in_front_of(&app, "server.upgrade_timeout = '10ms'").await;
    let threads = || std::fs::read_dir(format!("/proc/{}/task", site.pid())).unwrap().count();
    let file = site.folder().join("hostler.toml");
    std::fs::remove_file(&file).unwrap();
    mknodat(CWD, &file, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let before = threads();
    for reload in 1..=RELOADS {
        site.hang_up();
        eventually("its end", async || {
            let failed = "reload: the configuration was not read in 10ms";
            (site.lines().iter().filter(|line| line.contains(failed)).count() >= reload).then_some(())
        })
        .await;
    }
    let left = threads().saturating_sub(before);
    assert!(left < RELOADS * 3 / 4, "{left} threads wait for the disk");
}

#[tokio::test]
async fn a_renamed_log_file_does_not_wait_for_an_earlier_reload() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    let config = format!("log.file = 'a.log'\nserver.upgrade_timeout = '1h'\n[pools.app]\n{}", pool(&app));
    reload(&site, &config).await;
    let (file, log) = (site.folder().join("hostler.toml"), site.folder().join("a.log"));
    std::fs::remove_file(&file).unwrap();
    mknodat(CWD, &file, FileType::Fifo, Mode::RWXU, 0).unwrap();
    site.hang_up();
    // This reload waits as long as the pipe is open.
    let _pipe = eventually("the configuration to be read", async || writer_to(&file)).await;
    std::fs::rename(&log, site.folder().join("a.log.1")).unwrap();
    site.hang_up();
    eventually("the log to be opened again", async || log.exists().then_some(())).await;
    site.get("/later").await.assert_ok("ok");
    eventually("a line in the new file", async || {
        std::fs::read_to_string(&log).unwrap().contains("/later").then_some(())
    })
    .await;
}

#[tokio::test]
async fn members_join_and_leave_without_effect_on_the_others() {
    let (first, second) = (upstream().holds_requests().start().await, upstream().start().await);
    let site = in_front_of(&first, "").await;
    let mut held = site.begin("/held").await;
    site.settles("app", 1, 0).await;
    let both = format!(
        "members = ['{}', '{}']\nrequest_timeout = '1h'\nqueue.timeout = '1h'\n",
        first.address(),
        second.address()
    );
    let said = reload(&site, &format!("[pools.app]\n{both}")).await;
    assert!(said.contains("pool app: changed"), "{said}");
    site.get("/second").await.assert_ok("ok");
    reload(&site, &format!("[pools.app]\n{}", pool(&second))).await;
    first.release_all();
    held.answer().await.assert_ok("/held");
    assert_eq!(site.pool("app").await["members"].as_array().unwrap().len(), 1);
    reload(&site, &format!("[pools.app]\nmembers = ['{}']\n", no_upstream())).await;
    site.get("/").await.assert_status(502);
}

#[tokio::test]
async fn a_reload_that_would_end_the_pause_of_a_pool_is_refused() {
    let app = upstream().start().await;
    let site = in_front_of(&app, "").await;
    site.command(&["pause", "app"]).await.assert_exit(0);
    let mut waiting = site.begin("/waiting").await;
    site.settles("app", 0, 1).await;
    // Its connections are useless for the other protocol.
    site.rewrite(&format!("[pools.app]\n{}protocol = 'http2'\n", pool(&app)));
    let output = site.command(&["reload"]).await;
    output.assert_exit(1).assert_complains("pool app is paused and would start anew: resume it first");
    site.rewrite("[[routes]]\nmatch = '*'\nrespond = { status = 204 }\n");
    let output = site.command(&["reload"]).await;
    output.assert_exit(1).assert_complains("pool app is paused and would be removed: resume it first");
    site.settles("app", 0, 1).await;
    assert_eq!(app.requests().len(), 0);
    // What can change under it does.
    let said = reload(&site, &format!("[pools.app]\n{}choice = 'round_robin'\n", pool(&app))).await;
    assert!(said.contains("pool app: changed"), "{said}");
    site.settles("app", 0, 1).await;
    site.command(&["resume", "app"]).await.assert_exit(0);
    waiting.answer().await.assert_ok("ok");
}

#[tokio::test]
async fn a_pool_that_starts_anew_keeps_what_its_requests_have_cost() {
    let app = upstream().start().await;
    for queue in ["order = 'short_first'", "fair = ['header:x-key']"] {
        let pool = format!("[pools.app]\nmembers = ['{}']\nqueue.{queue}\n", app.address());
        let config = format!("{pool}[[routes]]\nmatch = '*'\npool = 'app'\n");
        let site = site(&config).start().await;
        for _ in 0..16 {
            site.get("/").await.assert_ok("ok");
        }
        let known = async || {
            let pool = site.pool("app").await;
            let requests = pool["ledger"]["all"]["requests"]["1d"].clone();
            let learnt = pool["order"]["expected"][0]["requests"].clone();
            (requests, learnt, pool["times"]["slot_hold"]["count"].clone())
        };
        let before = eventually("all costs", async || {
            let known = known().await;
            let is_learnt = known.1 == 16 || queue.starts_with("fair");
            (known.0 == 16 && known.2 == 16 && is_learnt).then_some(known)
        })
        .await;
        // Its connections are useless for the other protocol.
        site.rewrite(&format!("{pool}protocol = 'http2'\n[[routes]]\nmatch = '*'\npool = 'app'\n"));
        site.command(&["reload"]).await.assert_exit(0);
        assert_eq!(known().await, before, "{queue}");
    }
}
