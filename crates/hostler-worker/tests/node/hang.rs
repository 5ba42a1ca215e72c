//! Hung workers: they say where they hang before they are killed.

use std::time::Duration;

use super::support::*;

/// Says each request before it hangs in it.
const HANGS: &str = r#"
function spin() {
  for (;;);
}
const ways = {
  '/infinite': spin,
  '/atomics': function blocked() { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); },
  '/regex': function backtracks() { /^(a+)+$/.test('a'.repeat(60) + 'b'); },
  '/exec': () => require('child_process').execSync('sleep 600'),
  '/await': () => {},
};
function route(req, res, next) { next(); }
require('http').createServer(function handler(req, res) {
  console.log(`asked for ${req.url}`);
  route(req, res, function middleware() { ways[req.url](); });
}).listen(3000);
"#;

/// Hangs in that path until its stack contains the frame: a machine that is very busy may need more than one.
async fn stack_of(crew: &Crew, path: &'static str, frame: &str) -> Vec<String> {
    for _ in 0..5 {
        let said = hang_in(crew, path).await;
        if let Some(stack) = crew.worker().stack {
            assert!(stack.iter().any(|called| called.starts_with(frame)), "{frame} is not in {stack:?}");
            assert!(said.contains(&stack.join(", ")), "{said:?} does not tell {stack:?}");
            return stack;
        }
    }
    panic!("never a stack; log:\n{}", crew.log());
}

/// Hangs in that path until the worker is replaced; what was wrong with it.
async fn hang_in(crew: &Crew, path: &'static str) -> String {
    let generation = crew.worker().generation;
    let asked = crew.log().matches(&format!("asked for {path}")).count();
    let member = crew.ask(path).await;
    eventually("it hangs", || crew.log().matches(&format!("asked for {path}")).count() > asked).await;
    crew.workers.hung(member);
    eventually("replaced", || crew.worker().generation > generation).await;
    crew.is_ready().await;
    assert_ne!(crew.worker().member, Some(member));
    crew.worker().last_error.unwrap()
}

#[tokio::test]
async fn an_endless_loop_in_an_unmodified_app_is_named_with_function_file_and_line() {
    let crew = crew(HANGS).started().await;
    let stack = stack_of(&crew, "/infinite", "spin (").await;
    assert!(stack[0].ends_with("/app.js:3)"), "{stack:?}");
    let apps: Vec<_> = stack.iter().map(|frame| frame.split(' ').next().unwrap()).take(4).collect();
    assert_eq!(apps, ["spin", "middleware", "route", "handler"]);
    assert!(crew.worker().hung_ago.is_some());
    crew.assert_logged("hung: a request has taken longer than its hang_timeout (60 s); it is in spin (");
    crew.stop().await;
}

#[tokio::test]
async fn what_node_prints_of_its_inspector_is_not_the_apps_output() {
    let crew = crew(HANGS).started().await;
    stack_of(&crew, "/infinite", "spin (").await;
    for ours in ["Debugger", "inspector\n", "nodejs.org"] {
        assert!(!crew.log().contains(ours), "{}", crew.log());
    }
    crew.stop().await;
}

#[tokio::test]
async fn a_regular_expression_that_backtracks_for_ever_is_named() {
    let crew = crew(HANGS).started().await;
    stack_of(&crew, "/regex", "backtracks (").await;
    crew.stop().await;
}

#[tokio::test]
async fn a_wait_that_blocks_the_thread_is_named() {
    let crew = crew(HANGS).started().await;
    stack_of(&crew, "/atomics", "blocked (").await;
    crew.stop().await;
}

#[tokio::test]
async fn one_that_is_blocked_in_a_system_call_is_killed_with_its_child() {
    let crew = crew(HANGS).started().await;
    let why = hang_in(&crew, "/exec").await;
    assert!(why.ends_with("it is blocked outside JavaScript, its inspector does not answer"), "{why}");
    assert_eq!(crew.worker().stack, None);
    crew.stop().await;
}

#[tokio::test]
async fn one_that_waits_for_ever_is_said_to_wait() {
    let crew = crew(HANGS).started().await;
    let mut said = Vec::new();
    while !said.iter().any(|why: &String| why.ends_with("it is waiting, not running JavaScript")) {
        assert!(said.len() < 5, "{said:?}");
        said.push(hang_in(&crew, "/await").await);
    }
    crew.stop().await;
}

#[tokio::test]
async fn behind_npm_it_is_the_app_that_is_asked() {
    let crew = crew(HANGS)
        .file("package.json", r#"{"scripts":{"start":"node app.js && true"}}"#)
        .command(["npm", "start"])
        .started()
        .await;
    stack_of(&crew, "/infinite", "spin (").await;
    crew.stop().await;
}

#[tokio::test]
async fn an_operators_own_inspector_keeps_its_port_and_is_asked() {
    let crew = crew(HANGS).command(["node", "--inspect=127.0.0.1:0", "app.js"]).started().await;
    crew.assert_logged("Debugger listening on ws://127.0.0.1:");
    stack_of(&crew, "/infinite", "spin (").await;
    crew.stop().await;
}

#[tokio::test]
async fn an_app_that_keeps_the_signal_for_itself_is_killed_all_the_same() {
    let app = format!("process.on('SIGUSR1', () => {{}}); {HANGS}");
    let crew = crew(&app).started().await;
    let why = hang_in(&crew, "/infinite").await;
    assert!(why.contains("its inspector does not answer"), "{why}");
    crew.stop().await;
}

#[tokio::test]
async fn a_hung_worker_is_killed_with_all_its_group_and_replaced() {
    let app = format!("require('child_process').spawn('sleep', ['600']); {PLAIN}");
    let crew = crew(&app).started().await;
    let before = crew.worker();
    let child = children_of(before.pid.unwrap())[0];
    crew.workers.hung(before.member.unwrap());
    eventually("killed", || !is_alive(before.pid.unwrap()) && !is_alive(child)).await;
    eventually("replaced", || crew.worker().generation == 2).await;
    crew.is_ready().await;
    crew.assert_logged("a request has taken longer than its hang_timeout (60 s); it is ");
    crew.stop().await;
}

#[tokio::test]
async fn one_that_hangs_in_the_middle_of_an_answer_is_found_by_its_silence() {
    // The client still reads, so no request can be said to take too long.
    let app = "require('http').createServer((req, res) => {
        res.write('begun');
        if (req.url === '/hang') setTimeout(function later() { for (;;); }, 2000);
    }).listen(3000);";
    let crew = crew(app).with(|settings| settings.hang_timeout = Duration::from_secs(2)).started().await;
    let first = crew.ask("/hang").await;
    eventually("replaced", || crew.worker().generation == 2).await;
    crew.is_ready().await;
    assert_ne!(crew.worker().member, Some(first));
    crew.assert_logged(
        "hung: with requests at hand it has not turned its event loop for its hang_timeout (2 s); it is ",
    );
    crew.stop().await;
}

#[tokio::test]
async fn a_stream_without_end_is_not_taken_for_hung() {
    lives_with_an_endless_answer("").await;
}

#[tokio::test]
async fn an_app_that_has_closed_its_channel_is_not_judged_by_its_silence() {
    lives_with_an_endless_answer("setTimeout(() => process.disconnect(), 2000);").await;
}

async fn lives_with_an_endless_answer(prelude: &str) {
    let app = format!(
        "{prelude} let beats = 0; setInterval(() => console.log(`beat ${{++beats}}`), 500);
        require('http').createServer((req, res) => res.write('begun')).listen(3000);"
    );
    let crew = crew(&app).with(|settings| settings.hang_timeout = Duration::from_secs(3)).started().await;
    crew.ask("/").await;
    // By its own clock, longer than it may be silent.
    eventually("it lives on", || crew.log().contains("beat 14")).await;
    assert_eq!(crew.worker().generation, 1, "{}", crew.log());
    crew.stop().await;
}
