//! Hung workers: Hostler finds out where they hang before it kills them.

use std::time::Duration;

use hostler_worker::{Rotation, WorkerState};
use rustix::process::Signal;

use super::support::*;

/// An app that prints each request and then hangs in it.
const HANGS: &str = r#"
function spin() {
  for (;;);
}
const ways = {
  '/infinite': spin,
  '/atomics': function blocked() { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); },
  '/regex': function backtracks() { /^(a+)+$/.test('a'.repeat(60) + 'b'); },
  '/exec': () => require('child_process').execSync('sleep 600'),
  // `Debugger.pause` would end the process here (nodejs/node#58632).
  '/switch': function chooses() { let one = 1; switch (spin()) { default: let two = 2; ways.last = () => one + two; } },
  '/await': () => {},
};
function route(req, res, next) { next(); }
require('http').createServer(function handler(req, res) {
  console.log(`asked for ${req.url}`);
  route(req, res, function middleware() { ways[req.url](); });
}).listen(3000);
"#;

/// Hangs in this path until the reported stack contains the frame. On a busy machine this may take more than one attempt.
async fn stack_of(test_pool: &TestPool, path: &'static str, frame: &str) -> Vec<String> {
    for _ in 0..5 {
        let said = hang_in(test_pool, path).await;
        if let Some(stack) = test_pool.worker().stack {
            assert!(stack.iter().any(|called| called.starts_with(frame)), "{frame} is not in {stack:?}");
            assert!(said.contains(&stack.join(", ")), "{said:?} does not tell {stack:?}");
            return stack;
        }
    }
    panic!("never a stack; log:\n{}", test_pool.log());
}

/// Hangs in this path until the worker is replaced. Returns the last error of the worker.
async fn hang_in(test_pool: &TestPool, path: &'static str) -> String {
    let generation = test_pool.worker().generation;
    let asked = test_pool.log().matches(&format!("asked for {path}")).count();
    let member = test_pool.ask(path).await;
    eventually("it hangs", || test_pool.log().matches(&format!("asked for {path}")).count() > asked).await;
    test_pool.workers.hung(member);
    eventually("replaced", || test_pool.worker().generation > generation).await;
    test_pool.is_ready().await;
    assert_ne!(test_pool.worker().member, Some(member));
    test_pool.worker().last_error.unwrap()
}

#[tokio::test]
async fn an_endless_loop_in_an_unmodified_app_is_named_with_function_file_and_line() {
    let test_pool = test_pool(HANGS).started().await;
    let stack = stack_of(&test_pool, "/infinite", "spin (").await;
    assert!(stack[0].ends_with("/app.js:3)"), "{stack:?}");
    let apps: Vec<_> = stack.iter().map(|frame| frame.split(' ').next().unwrap()).take(4).collect();
    assert_eq!(apps, ["spin", "middleware", "route", "handler"]);
    assert!(test_pool.worker().hung_ago.is_some());
    test_pool.assert_logged("hung: a request has taken longer than its hang_timeout (60 s); it is in spin (");
    test_pool.stop().await;
}

#[tokio::test]
async fn nodes_output_about_its_inspector_is_not_logged_as_the_apps() {
    let test_pool = test_pool(HANGS).started().await;
    stack_of(&test_pool, "/infinite", "spin (").await;
    for ours in ["Debugger", "inspector\n", "nodejs.org"] {
        assert!(!test_pool.log().contains(ours), "{}", test_pool.log());
    }
    test_pool.stop().await;
}

#[tokio::test]
async fn a_regular_expression_that_backtracks_for_ever_is_named() {
    let test_pool = test_pool(HANGS).started().await;
    stack_of(&test_pool, "/regex", "backtracks (").await;
    test_pool.stop().await;
}

#[tokio::test]
async fn a_wait_that_blocks_the_thread_is_named() {
    let test_pool = test_pool(HANGS).started().await;
    stack_of(&test_pool, "/atomics", "blocked (").await;
    test_pool.stop().await;
}

#[tokio::test]
async fn asking_for_the_stack_does_not_crash_node_in_a_switch() {
    let test_pool = test_pool(HANGS).started().await;
    let stack = stack_of(&test_pool, "/switch", "chooses (").await;
    assert!(stack[0].starts_with("spin ("), "{stack:?}");
    let log = test_pool.log();
    assert!(!log.contains("Fatal error"), "{log}");
    test_pool.stop().await;
}

#[tokio::test]
async fn a_worker_blocked_in_a_system_call_is_killed_with_its_child() {
    let test_pool = test_pool(HANGS).started().await;
    let why = hang_in(&test_pool, "/exec").await;
    assert!(why.ends_with("it is blocked outside JavaScript (its inspector does not answer)"), "{why}");
    assert_eq!(test_pool.worker().stack, None);
    test_pool.stop().await;
}

#[tokio::test]
async fn a_worker_that_waits_for_ever_is_reported_as_waiting() {
    let test_pool = test_pool(HANGS).started().await;
    let mut said = Vec::new();
    while !said.iter().any(|why: &String| why.ends_with("it is waiting, not running JavaScript")) {
        assert!(said.len() < 5, "{said:?}");
        said.push(hang_in(&test_pool, "/await").await);
    }
    test_pool.stop().await;
}

#[tokio::test]
async fn behind_npm_the_app_is_asked_for_its_stack() {
    let test_pool = test_pool(HANGS)
        .file("package.json", r#"{"scripts":{"start":"node app.js && true"}}"#)
        .command(["npm", "start"])
        .started()
        .await;
    stack_of(&test_pool, "/infinite", "spin (").await;
    test_pool.stop().await;
}

#[tokio::test]
async fn an_inspector_opened_by_the_operator_keeps_its_port_and_is_asked() {
    let test_pool = test_pool(HANGS).command(["node", "--inspect=127.0.0.1:0", "app.js"]).started().await;
    test_pool.assert_logged("Debugger listening on ws://127.0.0.1:");
    stack_of(&test_pool, "/infinite", "spin (").await;
    test_pool.stop().await;
}

#[tokio::test]
async fn an_app_that_handles_the_inspector_signal_is_killed_too() {
    let app = format!("process.on('SIGUSR1', () => {{}}); {HANGS}");
    let test_pool = test_pool(&app).started().await;
    let why = hang_in(&test_pool, "/infinite").await;
    assert!(why.contains("its inspector does not answer"), "{why}");
    test_pool.stop().await;
}

#[tokio::test]
async fn a_hung_worker_is_killed_with_all_its_group_and_replaced() {
    let app = format!("require('child_process').spawn('sleep', ['600']); {PLAIN}");
    let test_pool = test_pool(&app).started().await;
    let before = test_pool.worker();
    let child = children_of(before.pid.unwrap())[0];
    test_pool.workers.hung(before.member.unwrap());
    eventually("killed", || !is_alive(before.pid.unwrap()) && !is_alive(child)).await;
    eventually("replaced", || test_pool.worker().generation == 2).await;
    test_pool.is_ready().await;
    test_pool.assert_logged("a request has taken longer than its hang_timeout (60 s); it is ");
    test_pool.stop().await;
}

#[tokio::test]
async fn a_hung_worker_is_killed_with_processes_in_sessions_of_their_own() {
    // As Puppeteer starts its browser, which starts processes itself.
    let app = format!(
        "require('child_process').spawn('sh', ['-c', 'sleep 600 & wait'], {{ detached: true, stdio: 'ignore' }}); {PLAIN}"
    );
    let test_pool = test_pool(&app).started().await;
    let before = test_pool.worker();
    let browser = children_of(before.pid.unwrap())[0];
    let mut pages = vec![];
    eventually("the browser has a page", || {
        pages = children_of(browser);
        !pages.is_empty()
    })
    .await;
    test_pool.workers.hung(before.member.unwrap());
    eventually("killed", || !is_alive(before.pid.unwrap()) && !is_alive(browser) && !is_alive(pages[0]))
        .await;
    test_pool.is_ready().await;
    test_pool.stop().await;
}

#[tokio::test]
async fn a_worker_that_hangs_in_the_middle_of_an_answer_is_found_by_its_silence() {
    // The client still reads, so the request does not count as too long.
    let app = "require('http').createServer((req, res) => {
        res.write('begun');
        if (req.url === '/hang') setTimeout(function later() { for (;;); }, 2000);
    }).listen(3000);";
    let test_pool =
        test_pool(app).with(|settings| settings.hang_timeout = Duration::from_secs(2)).started().await;
    let first = test_pool.ask("/hang").await;
    eventually("replaced", || test_pool.worker().generation == 2).await;
    test_pool.is_ready().await;
    assert_ne!(test_pool.worker().member, Some(first));
    test_pool.assert_logged(
        "hung: it has requests, and its event loop has not turned for its hang_timeout (2 s); it is ",
    );
    test_pool.stop().await;
}

#[tokio::test]
async fn a_worker_that_hangs_in_its_first_answer_is_found_by_its_silence() {
    let app = "require('http').createServer((req, res) => {
        res.write('begun', () => setTimeout(function later() { for (;;); }, 5));
    }).listen(3000);";
    let test_pool =
        test_pool(app).with(|settings| settings.hang_timeout = Duration::from_secs(2)).started().await;
    test_pool.ask("/").await;
    eventually("replaced", || test_pool.worker().generation == 2).await;
    test_pool.assert_logged("its event loop has not turned for its hang_timeout (2 s); it is ");
    test_pool.stop().await;
}

#[tokio::test]
async fn a_stream_without_end_is_not_taken_for_hung() {
    lives_with_an_endless_answer("", "exec node app.js").await;
}

#[tokio::test]
async fn an_app_that_closed_its_channel_is_not_killed_for_silence() {
    lives_with_an_endless_answer(DISCONNECTS, "exec node app.js").await;
}

#[tokio::test]
async fn an_app_behind_a_shell_that_closed_its_channel_is_not_killed_for_silence() {
    // The shell stays, and has the channel, too.
    lives_with_an_endless_answer(DISCONNECTS, "node app.js; exit 0").await;
}

#[tokio::test]
async fn a_worker_that_comes_back_into_rotation_with_an_old_request_is_not_taken_for_hung() {
    let app = "let beats = 0; setInterval(() => console.log(`beat ${++beats}`), 500);
        require('http').createServer((req, res) => res.write('begun')).listen(3000);";
    let test_pool =
        test_pool(app).with(|settings| settings.hang_timeout = Duration::from_secs(3)).started().await;
    let old = test_pool.ask("/").await;
    test_pool.workers.rotate(1, Rotation::Out { length: None, force: true }).await.unwrap();
    eventually("drained", || test_pool.worker().state == WorkerState::OutOfRotation).await;
    test_pool.workers.rotate(1, Rotation::In).await.unwrap();
    eventually("back", || test_pool.worker().state == WorkerState::Ready).await;
    assert_ne!(test_pool.worker().member, Some(old));
    // By its own clock, this is longer than `hang_timeout` after it is back.
    eventually("it lives on", || test_pool.log().contains("beat 20")).await;
    assert_eq!(test_pool.worker().generation, 1, "{}", test_pool.log());
    test_pool.stop().await;
}

#[tokio::test]
async fn a_blocked_worker_is_shown_each_time_and_logged_once_a_minute() {
    let app = "require('http').createServer((req, res) => res.write('begun')).listen(3000);";
    let test_pool =
        test_pool(app).with(|settings| settings.hang_timeout = Duration::from_secs(3600)).started().await;
    test_pool.ask("/").await;
    let pid = test_pool.worker().pid.unwrap();
    for _ in 0..2 {
        signal(pid, Signal::STOP);
        eventually("blocked", || test_pool.worker().blocked >= Some(Duration::from_secs(3))).await;
        signal(pid, Signal::CONT);
        eventually("it goes on", || test_pool.worker().blocked.is_none()).await;
    }
    let told = test_pool.log().matches("is blocked (pid").count();
    assert_eq!(told, 1, "{}", test_pool.log());
    test_pool.stop().await;
}

const DISCONNECTS: &str = "setTimeout(() => process.disconnect(), 2000);";

async fn lives_with_an_endless_answer(prelude: &str, command: &str) {
    let app = format!(
        "{prelude} let beats = 0; setInterval(() => console.log(`beat ${{++beats}}`), 500);
        require('http').createServer((req, res) => res.write('begun')).listen(3000);"
    );
    let plan = test_pool(&app).command(["sh", "-c", command]);
    let test_pool = plan.with(|settings| settings.hang_timeout = Duration::from_secs(3)).started().await;
    test_pool.ask("/").await;
    // By its own clock, this is longer than `hang_timeout`.
    eventually("it lives on", || test_pool.log().contains("beat 14")).await;
    assert_eq!(test_pool.worker().generation, 1, "{}", test_pool.log());
    test_pool.stop().await;
}
