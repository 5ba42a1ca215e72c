//! Rolling restarts, and settings that change while the workers run.

use std::time::Duration;

use hostler_worker::{Bind, RestartError, SettingsChange, Slots, WorkerSettings, WorkerState};
use rustix::process::Signal;
use tokio::time::timeout;

use super::support::*;

/// Its answers name the version; `/hold` answers when there is a file `released`. It knows no signal.
fn version(name: &str) -> String {
    format!(
        "require('http').createServer((req, res) => {{
           if (req.url !== '/hold') return res.end('{name}');
           const look = setInterval(() => require('fs').existsSync('released') && (clearInterval(look), res.end('{name}')), 10);
         }}).listen(3000);"
    )
}

async fn restart(crew: &Crew) -> Result<usize, RestartError> {
    let restarted = timeout(2 * PATIENCE, crew.workers.restart()).await.expect("a restart that ends");
    restarted.map(|restarted| restarted.workers)
}

fn states(crew: &Crew) -> Vec<(usize, u64, WorkerState)> {
    crew.workers.snapshot().iter().map(|worker| (worker.index, worker.generation, worker.state)).collect()
}

#[tokio::test]
async fn a_restart_loses_no_request_and_never_leaves_fewer_workers() {
    let crew = crew(&version("old")).with(|settings| settings.count = 3).started().await;
    let load = crew.under_load(6);
    let before: Vec<u32> = crew.workers.snapshot().iter().filter_map(|worker| worker.pid).collect();
    crew.write("app.js", &version("new"));
    assert_eq!(restart(&crew).await, Ok(3));

    assert_eq!(states(&crew), [1, 2, 3].map(|index| (index, 2, WorkerState::Ready)));
    assert!(!before.iter().any(|&pid| is_alive(pid)), "the old generation has ended");
    assert_eq!(crew.get("/").await, "new");
    let (answers, fewest) = load.end().await;
    assert!(answers.contains(&"old".to_owned()) && answers.contains(&"new".to_owned()));
    assert!(fewest >= 3, "{fewest} workers at the worst moment");
    crew.assert_logged("web 0: restart: 3 workers replaced in ");
    crew.assert_logged(": replaced by a new generation");
    let rollout = crew.workers.rollout();
    assert!(rollout.running.is_none() && rollout.last.unwrap().succeeded);
    assert_eq!((rollout.done, rollout.total), (3, 3));
    crew.stop().await;
}

#[tokio::test]
async fn an_app_that_knows_no_signal_finishes_its_requests_before_it_goes() {
    let crew = crew(&version("old")).started().await;
    let lease = crew.pool.acquire(Default::default()).await.unwrap();
    let held = tokio::spawn(async move { get(&lease, "/hold").await });
    eventually("it has the request", || crew.pool.snapshot().in_use == 1).await;
    crew.write("app.js", &version("new"));
    let restarted = crew.workers.restart();

    eventually("both generations are there", || {
        states(&crew) == [(1, 1, WorkerState::Retiring), (1, 2, WorkerState::Ready)]
    })
    .await;
    assert!(crew.workers.rollout().running.is_some());
    assert_eq!(crew.get("/").await, "new");
    assert!(timeout(PATIENCE, crew.workers.all_ready()).await.unwrap(), "the pool is whole");
    crew.write("released", "");
    assert_eq!(held.await.unwrap().unwrap(), (200, "old".to_owned()));
    assert_eq!(timeout(PATIENCE, restarted).await.unwrap().unwrap().workers, 1);
    assert_eq!(states(&crew), [(1, 2, WorkerState::Ready)]);
    crew.stop().await;
}

#[tokio::test]
async fn a_generation_that_dies_while_it_boots_is_reported_with_its_telling_line_and_the_old_one_stays() {
    let crew = crew(&version("old")).with(|settings| settings.count = 2).started().await;
    let load = crew.under_load(2);
    crew.write("app.js", "require('./gone')");
    let error = restart(&crew).await.unwrap_err();
    let RestartError::Boot { worker: 1, how, replaced: 0, total: 2 } = &error else { panic!("{error:?}") };
    assert!(how.starts_with("exit code 1 before it was ready: Error: Cannot find module './gone'"), "{how}");
    assert_eq!(states(&crew).iter().filter(|state| state.1 == 1).count(), 2, "the old ones stay");
    crew.assert_logged(
        "web 0: restart failed: worker 1 of the new generation did not get ready: exit code 1",
    );
    assert!(!crew.workers.rollout().last.unwrap().succeeded);
    let (answers, fewest) = load.end().await;
    assert!(answers.iter().all(|answer| answer == "old"));
    assert_eq!(fewest, 2);

    crew.write("app.js", &version("new"));
    assert_eq!(restart(&crew).await, Ok(2));
    assert_eq!(crew.get("/").await, "new");
    crew.stop().await;
}

#[tokio::test]
async fn a_generation_that_never_gets_ready_is_given_up_after_its_start_timeout() {
    let crew = crew(&version("old")).started().await;
    let mut impatient = crew.settings.clone();
    impatient.start_timeout = Duration::from_secs(2);
    assert_eq!(crew.workers.update(impatient), SettingsChange::Applied);
    crew.write("app.js", "console.log('thinking'); setInterval(() => {}, 1000)");
    let error = restart(&crew).await.unwrap_err().to_string();
    assert!(error.contains("it has not listened on a TCP port within its start_timeout (2 s)"), "{error}");
    assert!(error.contains("it printed last: thinking"), "{error}");
    assert_eq!(crew.get("/").await, "old");
    assert_eq!(crew.workers.snapshot().len(), 1);
    crew.stop().await;
}

#[tokio::test]
async fn a_generation_that_dies_as_soon_as_it_listens_does_not_take_over() {
    let crew = crew(&version("old")).started().await;
    // Not by a throw: on a busy machine Node may take longer over that than a successor's probation lasts.
    let dies = "require('http').createServer().listen(3000, () => {
        require('fs').writeSync(2, 'Error: no database\\n');
        process.kill(process.pid, 'SIGKILL');
    });";
    crew.write("app.js", dies);
    let error = restart(&crew).await.unwrap_err().to_string();
    assert!(error.contains("Error: no database"), "{error}");
    assert_eq!(crew.get("/").await, "old");
    crew.stop().await;
}

#[tokio::test]
async fn a_restart_whose_future_is_dropped_goes_on_and_a_second_one_joins_it() {
    let crew = crew(&version("old")).with(|settings| settings.count = 2).started().await;
    crew.write("app.js", &version("new"));
    drop(crew.workers.restart());
    let (first, second) = (crew.workers.restart(), crew.workers.restart());
    assert_eq!(timeout(2 * PATIENCE, first).await.unwrap().unwrap().workers, 2);
    assert_eq!(timeout(2 * PATIENCE, second).await.unwrap().unwrap().workers, 2);
    assert_eq!(crew.get("/").await, "new");
    assert!(states(&crew).iter().all(|state| state.1 >= 2 && state.2 == WorkerState::Ready));
    crew.stop().await;
}

#[tokio::test]
async fn a_stop_ends_a_restart_and_nothing_is_left() {
    let crew = crew(&version("old")).with(|settings| settings.count = 2).started().await;
    crew.write("app.js", "setInterval(() => {}, 1000)");
    let restarted = crew.workers.restart();
    eventually("a successor boots", || {
        crew.workers.snapshot().iter().filter(|w| w.pid.is_some()).count() == 3
    })
    .await;
    let pids: Vec<u32> = crew.workers.snapshot().iter().filter_map(|worker| worker.pid).collect();
    crew.stop().await;
    assert_eq!(restarted.await, Err(RestartError::Stopping));
    assert_eq!(crew.workers.restart().await, Err(RestartError::Stopping));
    assert!(!pids.into_iter().any(is_alive));
}

#[tokio::test]
async fn an_old_worker_that_dies_during_its_replacement_is_no_obstacle() {
    let crew = crew(&version("old")).started().await;
    let old = crew.worker().pid.unwrap();
    let slow = format!("const end = Date.now() + 1000; while (Date.now() < end); {}", version("new"));
    crew.write("app.js", &slow);
    let restarted = crew.workers.restart();
    eventually("a successor boots", || {
        crew.workers.snapshot().iter().filter(|w| w.pid.is_some()).count() == 2
    })
    .await;
    signal(old, Signal::KILL);
    assert_eq!(timeout(2 * PATIENCE, restarted).await.unwrap().unwrap().workers, 1);
    eventually("one worker", || crew.workers.snapshot().len() == 1).await;
    crew.is_ready().await;
    assert_eq!(crew.get("/").await, "new");
    crew.stop().await;
}

#[tokio::test]
async fn behind_npm_a_restart_loses_nothing_either() {
    let crew = crew(&version("old"))
        .file("package.json", r#"{"scripts":{"start":"node app.js"}}"#)
        .command(["npm", "start"])
        .started()
        .await;
    let old = crew.worker().pid.unwrap();
    let load = crew.under_load(2);
    crew.write("app.js", &version("new"));
    assert_eq!(restart(&crew).await, Ok(1));
    let (_, fewest) = load.end().await;
    assert!(fewest >= 1 && !is_alive(old));
    assert_eq!(crew.get("/").await, "new");
    crew.stop().await;
}

#[tokio::test]
async fn a_worker_that_hangs_while_it_retires_is_killed_and_not_replaced() {
    let hangs =
        "require('http').createServer((req, res) => { if (req.url === '/') res.end('old'); }).listen(3000);";
    let crew = crew(hangs).started().await;
    let pid = crew.worker().pid.unwrap();
    let member = crew.ask("/hangs").await;
    let restarted = crew.workers.restart();
    eventually("it retires", || states(&crew).iter().any(|state| state.2 == WorkerState::Retiring)).await;
    crew.workers.hung(member);
    assert_eq!(timeout(2 * PATIENCE, restarted).await.unwrap().unwrap().workers, 1);
    assert!(!is_alive(pid));
    crew.assert_logged("hung: a request has taken longer than its hang_timeout");
    assert_eq!(states(&crew), [(1, 2, WorkerState::Ready)]);
    crew.stop().await;
}

#[tokio::test]
async fn a_worker_that_dies_while_it_retires_is_no_obstacle() {
    let crew = crew(&version("old")).started().await;
    let pid = crew.worker().pid.unwrap();
    let lost = crew.pool.acquire(Default::default()).await.unwrap();
    let restarted = crew.workers.restart();
    eventually("it retires", || states(&crew).iter().any(|state| state.2 == WorkerState::Retiring)).await;
    assert_eq!(crew.worker().member, Some(lost.member()));
    signal(pid, Signal::KILL);
    assert_eq!(timeout(2 * PATIENCE, restarted).await.unwrap().unwrap().workers, 1);
    crew.assert_logged("signal 9 (SIGKILL) before it had finished its requests; it does not come back");
    assert_eq!(states(&crew), [(1, 2, WorkerState::Ready)]);
    crew.stop().await;
}

#[tokio::test]
async fn number_and_slots_of_the_workers_change_at_once() {
    let crew = crew(&version("old")).started().await;
    assert_eq!(crew.workers.update(crew.settings.clone()), SettingsChange::None);
    let load = crew.under_load(2);
    let mut settings = crew.settings.clone();
    (settings.count, settings.slots) = (3, Slots::Fixed(4));
    assert_eq!(crew.workers.update(settings.clone()), SettingsChange::Applied);
    eventually("three workers with four slots each", || crew.pool.snapshot().slots == 12).await;
    crew.is_ready().await;

    settings.count = 1;
    assert_eq!(crew.workers.update(settings), SettingsChange::Applied);
    eventually("one worker", || crew.workers.snapshot().len() == 1 && crew.pool.snapshot().slots == 4).await;
    crew.assert_logged(": fewer workers are wanted");
    load.end().await;
    crew.stop().await;
}

#[tokio::test]
async fn another_command_waits_for_a_restart_but_is_what_a_crashed_worker_boots() {
    let crew = crew(&version("old")).file("other.js", &version("other")).started().await;
    for change in [
        |settings: &mut WorkerSettings| settings.bind = Bind::Port,
        |settings: &mut WorkerSettings| settings.port = Some(1),
        |settings: &mut WorkerSettings| drop(settings.env.insert("A".into(), "b".into())),
        |settings: &mut WorkerSettings| settings.command = vec!["node".into(), "other.js".into()],
    ] {
        let mut settings = crew.settings.clone();
        change(&mut settings);
        assert_eq!(crew.workers.update(settings), SettingsChange::NeedsRestart);
    }
    assert_eq!(crew.get("/").await, "old");
    signal(crew.worker().pid.unwrap(), Signal::KILL);
    eventually("replaced", || crew.worker().generation == 2).await;
    crew.is_ready().await;
    assert_eq!(crew.get("/").await, "other");
    assert_eq!(restart(&crew).await, Ok(1));
    assert_eq!(crew.get("/").await, "other");
    crew.stop().await;
}
