//! How workers are stopped.

use std::time::Duration;

use rustix::process::Signal;

use super::support::*;

#[tokio::test]
async fn an_app_that_listens_for_messages_hears_shutdown_and_no_signal() {
    let app = format!(
        "process.on('message', (m) => {{ console.log('heard', m); setTimeout(() => process.exit(0), 50); }});
         process.on('SIGTERM', () => console.log('signalled')); {PLAIN}"
    );
    let crew = crew(&app).started().await;
    eventually("it listens for messages", || crew.worker().pid.is_some()).await;
    crew.stop().await;
    crew.assert_logged("web 1 Stdout: heard shutdown");
    crew.assert_logged("): exit code 0");
    assert!(!crew.log().contains("signalled"));
}

#[tokio::test]
async fn an_app_that_hears_shutdown_but_does_not_stop_gets_sigterm_at_half_time() {
    let app = format!("process.on('message', () => console.log('heard')); {PLAIN}");
    let crew = crew(&app).with(|settings| settings.stop_timeout = Duration::from_secs(1)).started().await;
    crew.stop().await;
    crew.assert_logged("web 1 Stdout: heard");
    crew.assert_logged("): signal 15 (SIGTERM)");
}

#[tokio::test]
async fn an_app_that_ignores_sigterm_is_killed_after_the_stop_timeout() {
    let app = format!("process.on('SIGTERM', () => console.log('no')); {PLAIN}");
    let crew = crew(&app).with(|settings| settings.stop_timeout = Duration::from_secs(1)).started().await;
    crew.stop().await;
    crew.assert_logged("web 1 Stdout: no");
    crew.assert_logged("it has not stopped within its stop_timeout (1 s)");
    crew.assert_logged("): signal 9 (SIGKILL)");
}

#[tokio::test]
async fn an_app_behind_npm_may_finish_although_npm_is_gone_first() {
    let app = format!(
        "process.on('SIGTERM', () => setTimeout(() => {{ console.log('finished'); process.exit(0); }}, 500)); {PLAIN}"
    );
    // Not exec'ed by the shell, so the shell dies of the signal at once.
    let crew = crew(&app).command(["sh", "-c", "node app.js; true"]).started().await;
    let pid = crew.worker().pid.unwrap();
    crew.stop().await;
    crew.assert_logged("web 1 Stdout: finished");
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn helpers_of_an_app_that_has_stopped_are_not_waited_for() {
    let app = format!(
        "require('child_process').spawn('sleep', ['600']); process.on('message', () => process.exit(0)); {PLAIN}"
    );
    let crew = crew(&app).with(|settings| settings.stop_timeout = 10 * PATIENCE).started().await;
    let helper = children_of(crew.worker().pid.unwrap())[0];
    crew.stop().await;
    eventually("the helper is gone", || !is_alive(helper)).await;
}

#[tokio::test]
async fn helpers_of_an_app_behind_another_are_not_waited_for_either() {
    let app = format!("process.on('message', () => process.exit(0)); {PLAIN}");
    let crew = crew(&app)
        .with(|settings| settings.stop_timeout = 10 * PATIENCE)
        .command(["sh", "-c", "sleep 600 & node app.js; true"])
        .started()
        .await;
    crew.stop().await;
}

#[tokio::test]
async fn a_worker_that_boots_can_be_stopped() {
    let crew = crew("setInterval(() => {}, 1000)").start();
    eventually("a process", || crew.worker().pid.is_some()).await;
    let pid = crew.worker().pid.unwrap();
    crew.stop().await;
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn kill_now_ends_a_graceful_stop() {
    let app = format!("process.on('SIGTERM', () => console.log('no')); {PLAIN}");
    let crew = crew(&app).started().await;
    let pid = crew.worker().pid.unwrap();
    let stop = crew.workers.stop();
    tokio::pin!(stop);
    let asked = async { eventually("asked", || crew.log().contains("Stdout: no")).await };
    tokio::select! {
        () = &mut stop => panic!("stopped by itself"),
        () = asked => {}
    }
    crew.workers.kill_now();
    stop.await;
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn nothing_is_left_of_a_crew_that_was_stopped_or_dropped() {
    let crew = crew(PLAIN).with(|settings| settings.count = 2).started().await;
    let directory = crew.runtime_directory.clone();
    let pids: Vec<u32> = crew.workers.snapshot().iter().filter_map(|worker| worker.pid).collect();
    let names = || std::fs::read_dir(&directory).unwrap().flatten().map(|entry| entry.file_name());
    assert!(names().count() > 1);
    signal(pids[0], Signal::KILL);
    eventually("replaced", || crew.worker().generation == 2).await;
    crew.is_ready().await;
    let successor = crew.worker().pid.unwrap();

    drop(crew);
    eventually("all gone", || !pids.iter().chain([&successor]).any(|&pid| is_alive(pid))).await;
    eventually("the directory is gone", || !directory.exists()).await;
}
