//! How workers are stopped.

use std::time::Duration;

use hostler_worker::Bind;
use rustix::process::Signal;

use super::support::*;

#[tokio::test]
async fn an_app_that_listens_for_messages_hears_shutdown_and_no_signal() {
    let app = format!(
        "process.on('message', (m) => {{ console.log('heard', m); setTimeout(() => process.exit(0), 50); }});
         process.on('SIGTERM', () => console.log('signalled')); {PLAIN}"
    );
    let test_pool = test_pool(&app).started().await;
    test_pool.stop().await;
    test_pool.assert_logged("web 1 Stdout: heard shutdown");
    test_pool.assert_logged("): exit code 0");
    assert!(!test_pool.log().contains("signalled"));
}

#[tokio::test]
async fn an_app_that_hears_shutdown_but_does_not_stop_gets_sigterm_at_half_time() {
    let app = format!("process.on('message', () => console.log('heard')); {PLAIN}");
    let test_pool =
        test_pool(&app).with(|settings| settings.stop_timeout = Duration::from_secs(1)).started().await;
    test_pool.stop().await;
    test_pool.assert_logged("web 1 Stdout: heard");
    test_pool.assert_logged("): signal 15 (SIGTERM)");
}

#[tokio::test]
async fn an_app_that_ignores_sigterm_is_killed_after_the_stop_timeout() {
    let app = format!("process.on('SIGTERM', () => console.log('no')); {PLAIN}");
    let test_pool =
        test_pool(&app).with(|settings| settings.stop_timeout = Duration::from_secs(1)).started().await;
    test_pool.stop().await;
    test_pool.assert_logged("web 1 Stdout: no");
    test_pool.assert_logged("it has not stopped within its stop_timeout (1 s)");
    test_pool.assert_logged("): signal 9 (SIGKILL)");
}

#[tokio::test]
async fn an_app_behind_npm_may_finish_after_npm_has_exited() {
    let app = format!(
        "process.on('SIGTERM', () => setTimeout(() => {{ console.log('finished'); process.exit(0); }}, 500)); {PLAIN}"
    );
    // The shell does not replace itself by node (exec), so it dies of the signal at once.
    let test_pool = test_pool(&app).command(["sh", "-c", "node app.js; true"]).started().await;
    let pid = test_pool.worker().pid.unwrap();
    test_pool.stop().await;
    test_pool.assert_logged("web 1 Stdout: finished");
    assert!(!is_alive(pid));
}

/// A program that starts the app, with this code after that.
fn launcher(then: &str) -> String {
    format!(
        "const child = require('child_process').spawn(process.execPath, ['app.js'], {{ stdio: 'inherit' }}); {then}"
    )
}

#[tokio::test]
async fn an_app_behind_a_program_that_passes_signals_on_gets_only_one() {
    let app = "let signals = 0; process.on('SIGTERM', () => {
            signals += 1;
            if (signals === 1) setTimeout(() => { console.log('signals:', signals); process.exit(0); }, 300);
         });
         require('http').createServer((req, res) => res.end()).listen(process.env.PORT);";
    // As npm does.
    let launcher = launcher(
        "process.on('SIGTERM', () => child.kill('SIGTERM')); child.on('exit', (code) => process.exit(code));",
    );
    for bind in [Bind::Socket, Bind::Port] {
        let test_pool = test_pool(app)
            .with(|settings| {
                settings.port = Some(3000); // then it cannot be a helper
                settings.bind = bind;
            })
            .command(["node", "-e", &launcher])
            .started()
            .await;
        test_pool.stop().await;
        test_pool.assert_logged("web 1 Stdout: signals: 1");
        test_pool.assert_logged("): exit code 0");
    }
}

#[tokio::test]
async fn a_program_that_outlives_the_app_is_told_to_stop_after_it() {
    let app = format!("process.on('SIGTERM', () => {{ console.log('app'); process.exit(0); }}); {PLAIN}");
    let launcher = launcher(
        "process.on('SIGTERM', () => { console.log('launcher', child.exitCode); process.exit(0); }); setInterval(() => {}, 1000);",
    );
    let test_pool = test_pool(&app)
        .with(|settings| {
            settings.port = Some(3000);
            settings.stop_timeout = 10 * TIME_LIMIT;
        })
        .command(["node", "-e", &launcher])
        .started()
        .await;
    test_pool.stop().await;
    test_pool.assert_logged("web 1 Stdout: app");
    test_pool.assert_logged("web 1 Stdout: launcher");
}

#[tokio::test]
async fn helpers_of_an_app_that_has_stopped_are_not_waited_for() {
    let app = format!(
        "require('child_process').spawn('sleep', ['600']); process.on('message', () => process.exit(0)); {PLAIN}"
    );
    let test_pool = test_pool(&app).with(|settings| settings.stop_timeout = 10 * TIME_LIMIT).started().await;
    let helper = children_of(test_pool.worker().pid.unwrap())[0];
    test_pool.stop().await;
    eventually("the helper is gone", || !is_alive(helper)).await;
}

#[tokio::test]
async fn helpers_of_an_app_behind_another_are_not_waited_for_either() {
    let app = format!("process.on('message', () => process.exit(0)); {PLAIN}");
    let test_pool = test_pool(&app)
        .with(|settings| settings.stop_timeout = 10 * TIME_LIMIT)
        .command(["sh", "-c", "sleep 600 & node app.js; true"])
        .started()
        .await;
    test_pool.stop().await;
}

#[tokio::test]
async fn a_worker_that_boots_can_be_stopped() {
    let test_pool = test_pool("setInterval(() => {}, 1000)").start();
    eventually("a process", || test_pool.worker().pid.is_some()).await;
    let pid = test_pool.worker().pid.unwrap();
    test_pool.stop().await;
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn kill_now_ends_a_graceful_stop() {
    let app = format!("process.on('SIGTERM', () => console.log('no')); {PLAIN}");
    let test_pool = test_pool(&app).started().await;
    let pid = test_pool.worker().pid.unwrap();
    let stop = test_pool.workers.stop();
    tokio::pin!(stop);
    let asked = async { eventually("asked", || test_pool.log().contains("Stdout: no")).await };
    tokio::select! {
        () = &mut stop => panic!("stopped by itself"),
        () = asked => {}
    }
    test_pool.workers.kill_now();
    stop.await;
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn a_stopped_or_dropped_pool_leaves_no_process() {
    let test_pool = test_pool(PLAIN).with(|settings| settings.count = 2).started().await;
    let directory = test_pool.runtime_directory.clone();
    let pids: Vec<u32> = test_pool.workers.snapshot().iter().filter_map(|worker| worker.pid).collect();
    let names = || std::fs::read_dir(&directory).unwrap().flatten().map(|entry| entry.file_name());
    assert!(names().count() > 1);
    signal(pids[0], Signal::KILL);
    eventually("replaced", || test_pool.worker().generation == 2).await;
    test_pool.is_ready().await;
    let successor = test_pool.worker().pid.unwrap();

    drop(test_pool);
    eventually("all gone", || !pids.iter().chain([&successor]).any(|&pid| is_alive(pid))).await;
    eventually("the directory is gone", || !directory.exists()).await;
}
