//! Rolling restarts, and settings that change while the workers run.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

use hostler_worker::{
    Bind, CompileCache, Reached, RestartError, SettingsChange, Slots, WorkerSettings, WorkerState,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::process::Signal;
use tokio::time::timeout;

use super::support::*;

/// An app whose answers name the version. `/hold` answers when a file `released` exists. It handles no signal.
fn version(name: &str) -> String {
    format!(
        "require('http').createServer((req, res) => {{
           if (req.url !== '/hold') return res.end('{name}');
           const look = setInterval(() => require('fs').existsSync('released') && (clearInterval(look), res.end('{name}')), 10);
         }}).listen(3000);"
    )
}

async fn restart(test_pool: &TestPool) -> Result<usize, RestartError> {
    let restarted = timeout(2 * TIME_LIMIT, test_pool.workers.restart()).await.expect("a restart that ends");
    restarted.map(|restarted| restarted.workers)
}

fn states(test_pool: &TestPool) -> Vec<(usize, u64, WorkerState)> {
    test_pool
        .workers
        .snapshot()
        .iter()
        .map(|worker| (worker.index, worker.generation, worker.state))
        .collect()
}

#[tokio::test]
async fn a_restart_loses_no_request_and_never_leaves_fewer_workers() {
    let test_pool = test_pool(&version("old")).with(|settings| settings.count = 3).started().await;
    let load = test_pool.under_load(6);
    let before: Vec<u32> = test_pool.workers.snapshot().iter().filter_map(|worker| worker.pid).collect();
    test_pool.write("app.js", &version("new"));
    assert_eq!(restart(&test_pool).await, Ok(3));

    assert_eq!(states(&test_pool), [1, 2, 3].map(|index| (index, 2, WorkerState::Ready)));
    assert!(!before.iter().any(|&pid| is_alive(pid)), "the old generation has ended");
    assert_eq!(test_pool.get("/").await, "new");
    let (answers, fewest) = load.end().await;
    assert!(answers.contains(&"old".to_owned()) && answers.contains(&"new".to_owned()));
    assert!(fewest >= 3, "{fewest} workers at the worst moment");
    test_pool.assert_logged("web 0: restart: 3 workers replaced in ");
    test_pool.assert_logged(": replaced by a restart");
    let rollout = test_pool.workers.rollout();
    assert!(rollout.running.is_none() && rollout.last.unwrap().succeeded);
    assert_eq!((rollout.done, rollout.total), (3, 3));
    test_pool.stop().await;
}

#[tokio::test]
async fn an_app_that_knows_no_signal_finishes_its_requests_before_it_goes() {
    let test_pool = test_pool(&version("old")).started().await;
    let lease = test_pool.pool.acquire(Default::default()).await.unwrap();
    let held = tokio::spawn(async move { get(&lease, "/hold").await });
    eventually("it has the request", || test_pool.pool.snapshot().in_use == 1).await;
    test_pool.write("app.js", &version("new"));
    let restarted = test_pool.workers.restart();

    eventually("both generations are there", || {
        states(&test_pool) == [(1, 1, WorkerState::Retiring), (1, 2, WorkerState::Ready)]
    })
    .await;
    assert!(test_pool.workers.rollout().running.is_some());
    assert_eq!(test_pool.get("/").await, "new");
    assert!(timeout(TIME_LIMIT, test_pool.workers.all_ready()).await.unwrap(), "the pool is whole");
    test_pool.write("released", "");
    assert_eq!(held.await.unwrap().unwrap(), (200, "old".to_owned()));
    assert_eq!(timeout(TIME_LIMIT, restarted).await.unwrap().unwrap().workers, 1);
    assert_eq!(states(&test_pool), [(1, 2, WorkerState::Ready)]);
    test_pool.stop().await;
}

#[tokio::test]
async fn a_generation_that_dies_in_its_boot_is_reported_with_its_error_line_and_the_old_one_stays() {
    let test_pool = test_pool(&version("old")).with(|settings| settings.count = 2).started().await;
    let load = test_pool.under_load(2);
    test_pool.write("app.js", "require('./gone')");
    let error = restart(&test_pool).await.unwrap_err();
    let RestartError::Boot { worker: 1, how, reached: Reached { replaced: 0, total: 2, any_ready: true } } =
        &error
    else {
        panic!("{error:?}")
    };
    assert!(how.starts_with("exit code 1 before it was ready: Error: Cannot find module './gone'"), "{how}");
    assert_eq!(states(&test_pool).iter().filter(|state| state.1 == 1).count(), 2, "the old ones stay");
    test_pool.assert_logged("web 0: restart failed: the new worker 1 did not get ready: exit code 1");
    assert!(!test_pool.workers.rollout().last.unwrap().succeeded);
    let (answers, fewest) = load.end().await;
    assert!(answers.iter().all(|answer| answer == "old"));
    assert_eq!(fewest, 2);

    test_pool.write("app.js", &version("new"));
    assert_eq!(restart(&test_pool).await, Ok(2));
    assert_eq!(test_pool.get("/").await, "new");
    test_pool.stop().await;
}

#[tokio::test]
async fn a_generation_that_never_gets_ready_is_given_up_after_its_start_timeout() {
    let test_pool = test_pool(&version("old")).started().await;
    let mut impatient = test_pool.settings.clone();
    impatient.start_timeout = Duration::from_secs(2);
    assert_eq!(test_pool.workers.update(impatient), SettingsChange::Applied);
    test_pool.write("app.js", "console.log('thinking'); setInterval(() => {}, 1000)");
    let error = restart(&test_pool).await.unwrap_err().to_string();
    assert!(
        error.contains("Hostler found no HTTP server of the app within its start_timeout (2 s)"),
        "{error}"
    );
    assert!(error.contains("it printed last: thinking"), "{error}");
    assert_eq!(test_pool.get("/").await, "old");
    assert_eq!(test_pool.workers.snapshot().len(), 1);
    test_pool.stop().await;
}

#[tokio::test]
async fn a_generation_that_dies_as_soon_as_it_listens_does_not_take_over() {
    let test_pool = test_pool(&version("old")).started().await;
    // It exits instead of throwing: on a busy machine Node may need longer for a throw than the probation lasts.
    let dies = "require('http').createServer().listen(3000, () => {
        require('fs').writeSync(2, 'Error: no database\\n');
        process.kill(process.pid, 'SIGKILL');
    });";
    test_pool.write("app.js", dies);
    let error = restart(&test_pool).await.unwrap_err().to_string();
    assert!(error.contains("Error: no database"), "{error}");
    assert_eq!(test_pool.get("/").await, "old");
    test_pool.stop().await;
}

#[tokio::test]
async fn a_restart_whose_future_is_dropped_goes_on_and_a_second_one_joins_it() {
    let test_pool = test_pool(&version("old")).with(|settings| settings.count = 2).started().await;
    test_pool.write("app.js", &version("new"));
    drop(test_pool.workers.restart());
    let (first, second) = (test_pool.workers.restart(), test_pool.workers.restart());
    assert_eq!(timeout(2 * TIME_LIMIT, first).await.unwrap().unwrap().workers, 2);
    assert_eq!(timeout(2 * TIME_LIMIT, second).await.unwrap().unwrap().workers, 2);
    assert_eq!(test_pool.get("/").await, "new");
    assert!(states(&test_pool).iter().all(|state| state.1 >= 2 && state.2 == WorkerState::Ready));
    test_pool.stop().await;
}

#[tokio::test]
async fn a_stop_ends_a_restart_and_nothing_is_left() {
    let test_pool = test_pool(&version("old")).with(|settings| settings.count = 2).started().await;
    test_pool.write("app.js", "setInterval(() => {}, 1000)");
    let restarted = test_pool.workers.restart();
    eventually("a successor boots", || {
        test_pool.workers.snapshot().iter().filter(|w| w.pid.is_some()).count() == 3
    })
    .await;
    let pids: Vec<u32> = test_pool.workers.snapshot().iter().filter_map(|worker| worker.pid).collect();
    test_pool.stop().await;
    assert_eq!(restarted.await, Err(RestartError::Stopping));
    assert_eq!(test_pool.workers.restart().await, Err(RestartError::Stopping));
    assert!(!pids.into_iter().any(is_alive));
}

#[tokio::test]
async fn an_old_worker_that_dies_during_its_replacement_does_not_stop_the_restart() {
    let test_pool = test_pool(&version("old")).started().await;
    let old = test_pool.worker().pid.unwrap();
    let slow = format!("const end = Date.now() + 1000; while (Date.now() < end); {}", version("new"));
    test_pool.write("app.js", &slow);
    let restarted = test_pool.workers.restart();
    eventually("a successor boots", || {
        test_pool.workers.snapshot().iter().filter(|w| w.pid.is_some()).count() == 2
    })
    .await;
    signal(old, Signal::KILL);
    assert_eq!(timeout(2 * TIME_LIMIT, restarted).await.unwrap().unwrap().workers, 1);
    eventually("one worker", || test_pool.workers.snapshot().len() == 1).await;
    test_pool.is_ready().await;
    assert_eq!(test_pool.get("/").await, "new");
    test_pool.stop().await;
}

#[tokio::test]
async fn an_old_worker_that_boots_during_a_restart_is_checked_by_the_health_path_of_its_own_program() {
    let app = |path: &str| {
        format!(
            "require('http').createServer((req, res) => {{
               res.statusCode = req.url === '{path}' ? 200 : 503;
               res.end();
             }}).listen(3000);"
        )
    };
    // The new program listens when a file `go` exists.
    let new = format!(
        "const look = setInterval(() => {{ if (require('fs').existsSync('go')) {{ clearInterval(look); {} }} }}, 10);",
        app("/new")
    );
    let plan = test_pool(&app("/old")).file("new.js", &new);
    let plan = plan.with(|settings| (settings.count, settings.health) = (2, Some("/old".into())));
    let test_pool = plan.started().await;
    let newer = WorkerSettings {
        command: vec!["node".into(), "new.js".into()],
        health: Some("/new".into()),
        ..test_pool.settings.clone()
    };
    assert_eq!(test_pool.workers.update(newer), SettingsChange::NeedsRestart);
    let restarted = test_pool.workers.restart();
    eventually("a successor boots", || {
        test_pool.workers.snapshot().iter().filter(|w| w.pid.is_some()).count() == 3
    })
    .await;
    let last = |test_pool: &TestPool| test_pool.workers.snapshot().pop().unwrap();
    signal(last(&test_pool).pid.unwrap(), Signal::KILL);
    eventually("the old program is healthy again", || {
        let worker = last(&test_pool);
        (worker.index, worker.generation, worker.state) == (2, 2, WorkerState::Ready)
    })
    .await;
    test_pool.write("go", "");
    assert_eq!(timeout(2 * TIME_LIMIT, restarted).await.unwrap().unwrap().workers, 2);
    test_pool.stop().await;
}

#[tokio::test]
async fn behind_npm_a_restart_loses_nothing_either() {
    let test_pool = test_pool(&version("old"))
        .file("package.json", r#"{"scripts":{"start":"node app.js"}}"#)
        .command(["npm", "start"])
        .started()
        .await;
    let old = test_pool.worker().pid.unwrap();
    let load = test_pool.under_load(2);
    test_pool.write("app.js", &version("new"));
    assert_eq!(restart(&test_pool).await, Ok(1));
    let (_, fewest) = load.end().await;
    assert!(fewest >= 1 && !is_alive(old));
    assert_eq!(test_pool.get("/").await, "new");
    test_pool.stop().await;
}

#[tokio::test]
async fn a_worker_that_hangs_while_it_retires_is_killed_and_not_replaced() {
    let hangs =
        "require('http').createServer((req, res) => { if (req.url === '/') res.end('old'); }).listen(3000);";
    let test_pool = test_pool(hangs).started().await;
    let pid = test_pool.worker().pid.unwrap();
    let member = test_pool.ask("/hangs").await;
    let restarted = test_pool.workers.restart();
    eventually("it retires", || states(&test_pool).iter().any(|state| state.2 == WorkerState::Retiring))
        .await;
    test_pool.workers.hung(member);
    assert_eq!(timeout(2 * TIME_LIMIT, restarted).await.unwrap().unwrap().workers, 1);
    assert!(!is_alive(pid));
    test_pool.assert_logged("hung: a request has taken longer than its hang_timeout");
    assert_eq!(states(&test_pool), [(1, 2, WorkerState::Ready)]);
    test_pool.stop().await;
}

#[tokio::test]
async fn a_worker_that_dies_while_it_retires_does_not_stop_the_restart() {
    let test_pool = test_pool(&version("old")).started().await;
    let pid = test_pool.worker().pid.unwrap();
    let lost = test_pool.pool.acquire(Default::default()).await.unwrap();
    let restarted = test_pool.workers.restart();
    eventually("it retires", || states(&test_pool).iter().any(|state| state.2 == WorkerState::Retiring))
        .await;
    assert_eq!(test_pool.worker().member, Some(lost.member()));
    signal(pid, Signal::KILL);
    assert_eq!(timeout(2 * TIME_LIMIT, restarted).await.unwrap().unwrap().workers, 1);
    test_pool.assert_logged(
        "signal 9 (SIGKILL) before it had finished its requests; Hostler does not start it again",
    );
    assert_eq!(states(&test_pool), [(1, 2, WorkerState::Ready)]);
    test_pool.stop().await;
}

#[tokio::test]
async fn number_and_slots_of_the_workers_change_at_once() {
    let test_pool = test_pool(&version("old")).started().await;
    assert_eq!(test_pool.workers.update(test_pool.settings.clone()), SettingsChange::None);
    let load = test_pool.under_load(2);
    let mut settings = test_pool.settings.clone();
    (settings.count, settings.slots) = (3, Slots::Fixed(4));
    assert_eq!(test_pool.workers.update(settings.clone()), SettingsChange::Applied);
    eventually("three workers with four slots each", || test_pool.pool.snapshot().slots == 12).await;
    test_pool.is_ready().await;

    settings.count = 1;
    assert_eq!(test_pool.workers.update(settings), SettingsChange::Applied);
    eventually("one worker", || {
        test_pool.workers.snapshot().len() == 1 && test_pool.pool.snapshot().slots == 4
    })
    .await;
    test_pool.assert_logged(": fewer workers are wanted");
    load.end().await;
    test_pool.stop().await;
}

#[tokio::test]
async fn a_new_command_waits_for_a_restart_but_a_crashed_worker_boots_with_it() {
    let test_pool = test_pool(&version("old")).file("other.js", &version("other")).started().await;
    for change in [
        |settings: &mut WorkerSettings| settings.bind = Bind::Port,
        |settings: &mut WorkerSettings| settings.port = Some(1),
        |settings: &mut WorkerSettings| drop(settings.env.insert("A".into(), "b".into())),
        |settings: &mut WorkerSettings| settings.command = vec!["node".into(), "other.js".into()],
    ] {
        let mut settings = test_pool.settings.clone();
        change(&mut settings);
        assert!(test_pool.workers.must_restart_for(&settings));
        assert_eq!(test_pool.workers.update(settings), SettingsChange::NeedsRestart);
    }
    assert_eq!(test_pool.get("/").await, "old");
    signal(test_pool.worker().pid.unwrap(), Signal::KILL);
    eventually("replaced", || test_pool.worker().generation == 2).await;
    test_pool.is_ready().await;
    assert_eq!(test_pool.get("/").await, "other");
    assert_eq!(restart(&test_pool).await, Ok(1));
    assert_eq!(test_pool.get("/").await, "other");
    test_pool.stop().await;
}

/// A named pipe in the place of the compile cache: to open it waits for its other end, as for a file system that does not answer. It answers when this
/// value is dropped.
struct SilentCache(PathBuf);

impl Drop for SilentCache {
    fn drop(&mut self) {
        let at_once = OFlags::NONBLOCK.bits().cast_signed();
        let _ = OpenOptions::new().write(true).custom_flags(at_once).open(&self.0);
    }
}

#[tokio::test]
async fn a_restart_whose_files_do_not_answer_ends_and_the_old_workers_stay() {
    let cache = tempfile::tempdir().unwrap();
    let plan = test_pool(&version("old")).with(|settings| {
        settings.compile_cache = CompileCache::Auto;
        for name in
            ["CACHE_DIRECTORY", "NODE_COMPILE_CACHE", "NODE_DISABLE_COMPILE_CACHE", "NODE_V8_COVERAGE"]
        {
            settings.env.remove(name);
        }
        settings.env.insert("XDG_CACHE_HOME".into(), cache.path().to_str().unwrap().into());
    });
    let test_pool = plan.started().await;
    let of_apps = cache.path().join("hostler/compile-cache");
    let folder = fs::read_dir(of_apps).unwrap().next().unwrap().unwrap().path();
    fs::rename(&folder, cache.path().join("aside")).unwrap();
    mknodat(CWD, &folder, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let _silent = SilentCache(folder);
    let impatient = WorkerSettings { start_timeout: Duration::from_millis(1), ..test_pool.settings.clone() };
    assert_eq!(test_pool.workers.update(impatient), SettingsChange::Applied);
    let error = restart(&test_pool).await.unwrap_err().to_string();
    assert!(error.contains("did not get ready: a file system does not answer"), "{error}");
    assert_eq!(test_pool.get("/").await, "old");
    test_pool.stop().await;
}
