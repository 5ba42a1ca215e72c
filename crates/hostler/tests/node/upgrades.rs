//! Upgrades of the program on the same sockets: no client notices, and a broken version changes nothing.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::Duration;

use hostler_testkit::{Client, eventually};
use tokio::time::timeout;

use super::load::Load;
use super::proc;
use super::service_manager::service_manager;
use super::site::{Plan, Site, app, configured, repository, source};

pub const HOSTLER: &str = env!("CARGO_BIN_EXE_hostler");

/// A plan whose program is a symbolic link in the test's own folder, so that another program can replace it.
pub fn linked(plan: Plan) -> (Plan, PathBuf) {
    let link = plan.folder().join("hostler");
    symlink(HOSTLER, &link).unwrap();
    (plan.called(&link), link)
}

/// Replaces the program by a script.
pub fn replace(program: &PathBuf, script: &str) {
    std::fs::remove_file(program).unwrap();
    std::fs::write(program, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
}

pub async fn upgraded(site: &Site) -> u32 {
    let before = site.status().await["pid"].as_u64().unwrap();
    let said = site.command(&["upgrade"]).await.assert_exit(0).stdout.clone();
    assert!(said.contains(&format!("has taken over from pid {before}")), "{said}");
    // A request at this moment may still reach the old process, which answers one more request at most.
    eventually("the new one to tell of itself", async || {
        let mut admin = hostler_testkit::client(site.admin()).await;
        admin.send("GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
        let answer = admin.maybe_answer("GET").await.filter(|answer| answer.status == 200)?;
        answer.json()["pid"].as_u64().filter(|pid| *pid != before)
    })
    .await as u32
}

/// The next answer on a kept connection of the old process is the last one there.
async fn is_led_over(client: &mut Client) {
    client.get("/").await.assert_status(200).assert_field("connection", "close");
    client.assert_closed().await;
}

#[tokio::test]
async fn upgrades_under_load_lose_no_request() {
    let mut site = app("diary.cjs").workers(2).option("server.threads=2").started().await;
    let load = Load::on(site.address());
    let mut kept = site.connect().await;
    kept.get("/").await.assert_status(200);
    let crowd = site.pids().await;
    let first = upgraded(&site).await;
    load.goes_on_for(50).await;
    is_led_over(&mut kept).await;
    assert_eq!(site.exit().await, 0, "the old one has gone when its clients have");
    assert!(!crowd.iter().any(|&pid| proc::is_alive(pid)), "with its workers");
    // The next process is started by the one that the first process has started.
    let second = upgraded(&site).await;
    load.goes_on_for(50).await;
    load.stop().await;
    eventually("the second to be gone", async || (!proc::is_alive(first)).then_some(())).await;
    assert_eq!(site.run_directory().len(), 1, "each has removed its private directory");
    proc::signal(second, rustix::process::Signal::TERM);
    eventually("the last to be gone", async || (!proc::is_alive(second)).then_some(())).await;
    assert_eq!(site.run_directory().len(), 0);
}

#[tokio::test]
async fn the_old_process_finishes_its_accepted_requests() {
    let plan = app("diary.cjs").option("server.drain_timeout=1m").option("pools.app.concurrency=1");
    let mut site = plan.started().await;
    let mut silent = site.connect().await;
    silent.get("/").await.assert_status(200);
    let mut running = site.begin("/wait?until=released").await;
    site.settles_at(1, 0).await;
    let mut waiting = site.begin("/").await;
    site.settles_at(1, 1).await;
    upgraded(&site).await;
    // A connection at this moment may still be accepted by the old process, and waits there.
    let answer = eventually("the new one to answer", async || {
        timeout(Duration::from_secs(1), site.ask("/")).await.ok()
    });
    answer.await.unwrap().assert_status(200);
    site.ask_for_upgrade();
    site.logged("SIGUSR2: ignored").await;
    site.touch("released");
    for client in [&mut running, &mut waiting] {
        client.answer().await.assert_status(200).assert_field("connection", "close");
    }
    // An idle kept connection stays open until its next request, or until the stop is urgent.
    site.terminate();
    silent.assert_closed().await;
    assert_eq!(site.exit().await, 0);
    site.get("/").await.assert_status(200);
}

#[tokio::test]
async fn a_new_program_that_fails_changes_nothing() {
    let (plan, program) = linked(app("diary.cjs"));
    let site = plan.started().await;
    let before = (site.status().await["pid"].clone(), site.pids().await);
    for (script, why) in [("exit 3", "exit status: 3"), ("kill -9 $$", "signal: 9")] {
        replace(&program, script);
        site.command_of(HOSTLER, &["upgrade"]).await.assert_exit(1).assert_complains(why);
    }
    std::fs::remove_file(&program).unwrap();
    let missing = site.command_of(HOSTLER, &["upgrade"]).await;
    missing.assert_exit(1).assert_complains("hostler cannot be started: No such file");
    assert_eq!((site.status().await["pid"].clone(), site.pids().await), before);
    site.get("/").await.assert_status(200);
}

#[tokio::test]
async fn a_new_program_that_is_never_ready_is_ended() {
    let (plan, program) = linked(app("diary.cjs").option("server.upgrade_timeout=1s"));
    let site = plan.started().await;
    replace(&program, "exec sleep 1000");
    let output = site.command_of(HOSTLER, &["upgrade"]).await;
    output.assert_exit(1).assert_complains("was not ready in 1s (server.upgrade_timeout)");
    assert_eq!(sleepers(&site), [0; 0]);
    site.get("/").await.assert_status(200);
}

#[tokio::test]
async fn two_upgrades_at_once_are_refused() {
    let (plan, program) = linked(app("diary.cjs"));
    let site = plan.started().await;
    replace(&program, "exec sleep 1000");
    let first = site.command_of(HOSTLER, &["upgrade"]);
    let second = async {
        let sleeper = eventually("the first", async || sleepers(&site).pop()).await;
        let output = site.command_of(HOSTLER, &["upgrade"]).await;
        output.assert_exit(1).assert_complains("an upgrade is under way");
        proc::kill(sleeper);
    };
    let (first, ()) = tokio::join!(first, second);
    first.assert_exit(1).assert_complains("signal: 9");
}

#[tokio::test]
async fn a_pool_that_is_paused_while_the_new_program_starts_stays_paused() {
    let (plan, program) = linked(app("diary.cjs"));
    let (begun, go) = (plan.folder().join("begun"), plan.folder().join("go"));
    let site = plan.started().await;
    let waits = format!("touch '{}'; until [ -e '{}' ]; do sleep 0.05; done", begun.display(), go.display());
    replace(&program, &format!("{waits}; exec '{HOSTLER}' \"$@\""));
    let upgrade = site.command_of(HOSTLER, &["upgrade"]);
    let pause = async {
        eventually("the new program to start", async || begun.exists().then_some(())).await;
        site.command_of(HOSTLER, &["pause", "app"]).await.assert_exit(0);
        std::fs::write(&go, "").unwrap();
    };
    let (upgrade, ()) = tokio::join!(upgrade, pause);
    upgrade.assert_exit(1).assert_complains("pool app is paused");
    assert_eq!(site.pool("app").await["paused"], true);
    site.command_of(HOSTLER, &["resume", "app"]).await.assert_exit(0);
    site.get("/").await.assert_status(200);
}

/// Scripts in the place of Hostler.
fn sleepers(site: &Site) -> Vec<u32> {
    let mut children = proc::children_of(site.pid());
    children.retain(|&pid| proc::is_alive(pid) && proc::name_of(pid).as_deref() == Some("sleep"));
    children
}

#[tokio::test]
async fn after_a_failed_upgrade_the_next_one_may_succeed() {
    let (plan, program) = linked(app("diary.cjs"));
    let site = plan.started().await;
    replace(&program, "exit 3");
    site.command_of(HOSTLER, &["upgrade"]).await.assert_exit(1).assert_complains("exit status: 3");
    std::fs::remove_file(&program).unwrap();
    symlink(HOSTLER, &program).unwrap();
    upgraded(&site).await;
    site.get("/").await.assert_status(200);
}

#[tokio::test]
async fn a_new_program_that_finds_a_bad_file_or_workers_that_do_not_boot_says_so() {
    let cwd = repository().join("crates/hostler/tests/node/apps");
    let good = format!("[pools.app]\ncommand = 'node diary.cjs'\nworkers = 1\ncwd = '{}'\n", cwd.display());
    let site = configured(&good).started().await;
    site.configure(&good.replace("workers", "wrokers"));
    let output = site.command(&["upgrade"]).await;
    output.assert_exit(1).assert_complains("configured.toml:3:1: unknown key \"pools.app.wrokers\"");
    site.configure(&good.replace("diary.cjs", "nothing.cjs"));
    let output = site.command(&["upgrade"]).await;
    output
        .assert_exit(1)
        .assert_complains("pools.app.command: ")
        .assert_complains("nothing.cjs does not exist");
    site.configure(&good.replace("node diary.cjs", "node -e process.exit(3)"));
    let output = site.command(&["upgrade"]).await;
    output.assert_exit(1).assert_complains("pool app: worker 1: ").assert_complains("exit code 3");
    site.get("/").await.assert_status(200);
    eventually("nothing of the failed ones is left", async || {
        (site.run_directory().len() == 1).then_some(())
    })
    .await;
    site.stop().await;
}

#[tokio::test]
async fn a_pool_that_did_not_work_before_does_not_hold_up_an_upgrade() {
    let cwd = repository().join("crates/hostler/tests/node/apps");
    let text = format!(
        "[pools.app]\ncommand = 'node diary.cjs'\nworkers = 1\ncwd = '{}'\n
        [pools.bad]\ncommand = 'node -e process.exit(3)'\nworkers = 1\n
        [[routes]]\nmatch = '/bad'\npool = 'bad'\n[[routes]]\nmatch = '*'\npool = 'app'\n",
        cwd.display()
    );
    let site = configured(&text).start().await;
    site.get("/").await.assert_status(200);
    site.logged("(crash loop: 3 in a row)").await;
    let said = site.command(&["upgrade"]).await.assert_exit(0).stdout.clone();
    assert!(said.contains("has taken over from pid"), "{said}");
    assert!(said.contains("pool bad: no worker was ready, so the upgrade has not waited for it"), "{said}");
    site.get("/").await.assert_status(200);
}

#[tokio::test]
async fn a_pool_whose_worker_has_crashed_once_is_no_broken_one() {
    let file =
        |code: &str| format!("[pools.app]\ncommand = ['node', '-e', \"\"\"{code}\"\"\"]\nworkers = 1\n");
    let good = "if (require('fs').existsSync(process.env.TEST_FOLDER + '/slow')) setInterval(() => {}, 1000);
        else require('http').createServer((req, res) => res.end()).listen(3000);";
    let site = configured(&file(good)).started().await;
    site.get("/").await.assert_status(200);
    site.touch("slow");
    proc::kill(site.pid_of(1).await);
    eventually("it boots again", async || {
        let worker = site.workers().await.remove(0);
        (worker["crashes"] == 1 && worker["state"] == "booting").then_some(())
    })
    .await;
    site.configure(&file("process.exit(3)"));
    let output = site.command(&["upgrade"]).await;
    output.assert_exit(1).assert_complains("pool app: worker 1: ").assert_complains("exit code 3");
}

#[tokio::test]
async fn a_successor_that_took_over_a_broken_pool_goes_on() {
    let site = source(
        "if (require('fs').existsSync(process.env.TEST_FOLDER + '/broken')) process.exit(3);
        require('http').createServer((req, res) => res.end('mended')).listen(3000);",
    );
    let site = site.started().await;
    site.get("/").await.assert_status(200);
    site.touch("broken");
    proc::kill(site.pid_of(1).await);
    site.logged("(crash loop: 3 in a row)").await;
    upgraded(&site).await;
    eventually("more failed boots than a first start may have", async || {
        site.workers()
            .await
            .first()
            .and_then(|worker| worker["crashes"].as_u64())
            .filter(|crashes| *crashes > 3)
    })
    .await;
    std::fs::remove_file(site.file("broken")).unwrap();
    site.get("/").await.assert_ok("mended");
}

#[tokio::test]
async fn a_signal_upgrades_to_other_threads_and_addresses() {
    let cwd = repository().join("crates/hostler/tests/node/apps");
    let file = |server: &str| {
        format!("{server}\n[pools.app]\ncommand = 'node diary.cjs'\nworkers = 1\ncwd = '{}'\n", cwd.display())
    };
    let mut site = configured(&file("server.threads = 1")).started().await;
    let load = Load::on(site.address());
    for threads in [3, 1] {
        let before = site.status().await["pid"].clone();
        site.configure(&file(&format!("server.threads = {threads}")));
        match threads {
            3 => site.ask_for_upgrade(),
            _ => drop(site.command(&["upgrade"]).await.assert_exit(0).clone()),
        }
        eventually("a successor", async || (site.status().await["pid"] != before).then_some(())).await;
        load.goes_on_for(50).await;
    }
    load.stop().await;
    assert_eq!(site.exit().await, 0);
}

#[tokio::test]
async fn a_new_program_whose_predecessor_dies_ends_too() {
    let text = "if (require('fs').existsSync(process.env.TEST_FOLDER + '/slow')) setInterval(() => {}, 1000);
        else require('http').createServer((req, res) => res.end()).listen(3000);";
    let site = source(text).started().await;
    site.touch("slow");
    site.ask_for_upgrade();
    let booting = eventually("the new one to boot", async || {
        let new: Vec<u32> =
            proc::children_of(site.pid()).into_iter().filter(|&pid| proc::is_hostler(pid)).collect();
        let workers: Vec<u32> = new.iter().flat_map(|&pid| proc::children_of(pid)).collect();
        (workers.len() > 1).then(|| [new, workers].concat())
    })
    .await;
    proc::kill(site.pid());
    eventually("no process to be left", async || {
        (!booting.iter().any(|&pid| proc::is_alive(pid))).then_some(())
    })
    .await;
    eventually("no private directory", async || site.run_directory().is_empty().then_some(())).await;
}

#[tokio::test]
async fn the_service_manager_learns_the_serving_process() {
    let manager = service_manager();
    let mut site = manager.above(app("diary.cjs")).started().await;
    let first = site.pid();
    assert_eq!(manager.told().await, format!("READY=1\nMAINPID={first}"));
    let second = upgraded(&site).await;
    // Both tell it. systemd listens only to the old one until then.
    for _ in 0..2 {
        assert_eq!(manager.told().await, format!("READY=1\nMAINPID={second}"));
    }
    assert_eq!(site.exit().await, 0);
    proc::signal(second, rustix::process::Signal::TERM);
    assert_eq!(manager.told().await, "STOPPING=1");
}

#[tokio::test]
async fn the_service_manager_learns_when_a_reload_by_a_signal_begins_and_ends() {
    let manager = service_manager();
    let plan = source("require('http').createServer((request, response) => response.end()).listen(3000);");
    let site = manager.above(plan.by_file()).started().await;
    assert_eq!(manager.told().await, format!("READY=1\nMAINPID={}", site.pid()));
    for end in ["has changed", "configured.toml:1"] {
        let before = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        site.hang_up();
        let told = manager.told().await;
        let micros = told.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap_or_else(|| panic!("{told}"));
        let since = Duration::from_micros(micros.parse().unwrap());
        assert!(since + Duration::from_millis(1) > Duration::try_from(before).unwrap(), "{told}");
        assert_eq!(manager.told().await, "READY=1");
        site.logged(end).await;
        site.configure("nonsense");
    }
    site.stop().await;
    assert_eq!(manager.told().await, "STOPPING=1");
}

#[tokio::test]
async fn the_service_manager_waits_for_a_ready_worker_and_not_for_one_that_fails() {
    let manager = service_manager();
    let text = "const wait = setInterval(() => {
          if (!require('fs').existsSync(process.env.TEST_FOLDER + '/go')) return;
          clearInterval(wait);
          require('http').createServer((request, response) => response.end()).listen(3000);
        }, 20);";
    let site = manager.above(source(text)).start().await;
    eventually("a booting worker", async || (!site.workers().await.is_empty()).then_some(())).await;
    manager.assert_told_nothing();
    site.touch("go");
    assert_eq!(manager.told().await, format!("READY=1\nMAINPID={}", site.pid()));
    site.stop().await;
    assert_eq!(manager.told().await, "STOPPING=1");
    let broken = configured("[pools.app]\ncommand = \"node -e process.exit(3)\"\n");
    let site = manager.above(broken).start().await;
    assert_eq!(manager.told().await, format!("READY=1\nMAINPID={}", site.pid()));
    site.stop().await;
}
