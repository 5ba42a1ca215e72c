//! Deaths and crash loops.

use std::time::Duration;

use hostler_worker::WorkerState;
use rustix::process::Signal;

use super::support::*;

#[tokio::test]
async fn a_killed_worker_is_replaced_at_once_and_its_slot_never_given_out_meanwhile() {
    let crew = crew(PLAIN).with(|settings| settings.count = 2).started().await;
    let victim = crew.worker();
    let pid = victim.pid.unwrap();
    signal(pid, Signal::KILL);
    eventually("out of the pool", || crew.worker().member != victim.member).await;
    crew.is_ready().await;
    let successor = crew.worker();
    assert_ne!(successor.pid, victim.pid);
    assert_eq!((successor.generation, successor.restarts), (2, 1));
    assert_eq!(successor.last_exit.as_deref(), Some("signal 9 (SIGKILL)"));
    crew.assert_logged(&format!("web 1: died (pid {pid}): signal 9 (SIGKILL); restarts at once"));
    for _ in 0..4 {
        assert_ne!(crew.get("/").await, pid.to_string());
    }
    crew.stop().await;
}

#[tokio::test]
async fn an_app_that_dies_behind_npm_is_replaced() {
    let crew = crew(PLAIN)
        .file("package.json", r#"{"scripts":{"start":"node app.js && true"}}"#)
        .command(["npm", "start"])
        .started()
        .await;
    let first: u32 = crew.get("/").await.parse().unwrap();
    signal(first, Signal::KILL);
    eventually("it is noticed", || crew.worker().pid != Some(first)).await;
    crew.is_ready().await;
    let second: u32 = crew.get("/").await.parse().unwrap();
    assert_ne!(first, second);
    crew.stop().await;
    assert!(!is_alive(second));
}

#[tokio::test]
async fn an_app_that_dies_behind_a_shell_which_holds_its_descriptors_is_replaced() {
    let crew = crew(PLAIN).command(["sh", "-c", "node app.js; sleep 600"]).started().await;
    let first: u32 = crew.get("/").await.parse().unwrap();
    signal(first, Signal::KILL);
    eventually("replaced", || crew.worker().generation == 2).await;
    crew.assert_logged(&format!("the app (pid {first}) is gone, though what started it"));
    crew.is_ready().await;
    crew.get("/").await;
    crew.stop().await;
}

#[tokio::test]
async fn a_crash_loop_backs_off_and_says_why() {
    let crew = crew("console.error('no database'); process.exit(3)").start();
    eventually("a rest", || crew.worker().state == WorkerState::BackingOff && crew.worker().crashes > 1)
        .await;
    let worker = crew.worker();
    assert_eq!(worker.last_error.as_deref(), Some("exit code 3 before it was ready: no database"));
    assert!(worker.restarts_in.unwrap() <= Duration::from_secs(30));
    let json = serde_json::to_value(&worker).unwrap();
    assert_eq!(json["state"], "backing off");
    crew.assert_logged("exit code 3 before it was ready; restarts at once");
    crew.assert_logged("(crash loop: 2 in a row)");
    crew.stop().await;
}

#[tokio::test]
async fn a_command_that_does_not_exist_is_named() {
    let crew = crew("").command(["no-such-program"]).start();
    eventually("a rest", || crew.worker().state == WorkerState::BackingOff).await;
    crew.assert_logged("web 1: did not start: there is no program \"no-such-program\"; restarts at once");
    crew.stop().await;
}

#[tokio::test]
async fn a_worker_that_never_listens_is_killed_with_its_last_output_and_a_hint() {
    let crew = crew("console.log('thinking'); setInterval(() => {}, 1000)")
        .with(|settings| settings.start_timeout = Duration::from_secs(1))
        .start();
    eventually("killed", || crew.worker().last_error.is_some()).await;
    crew.assert_logged(
        "it has not listened on a TCP port within its start_timeout (1 s); if it is not a Node program, use bind = \"port\"; \
         it printed last:\nthinking",
    );
    crew.stop().await;
}

#[tokio::test]
async fn a_worker_that_is_never_healthy_is_killed_with_its_last_answer() {
    let app =
        "require('http').createServer((req, res) => { res.statusCode = 503; res.end(); }).listen(3000);";
    let crew = crew(app)
        .with(|settings| {
            settings.health = Some("/healthz".to_owned());
            settings.start_timeout = Duration::from_secs(2);
        })
        .start();
    eventually("killed", || crew.worker().last_error.is_some()).await;
    crew.assert_logged("its health path /healthz has not answered 2xx within its start_timeout (2 s); at last it answered 503");
    crew.stop().await;
}

#[tokio::test]
async fn at_most_two_workers_boot_at_the_same_time() {
    let app = format!("const end = Date.now() + 300; while (Date.now() < end); {PLAIN}");
    let crew = crew(&app).with(|settings| settings.count = 5).start();
    let mut most = 0;
    eventually("all ready", || {
        let workers = crew.workers.snapshot();
        let boots = |worker: &&_| {
            matches!(
                worker,
                &&hostler_worker::WorkerSnapshot { state: WorkerState::Booting, pid: Some(_), .. }
            )
        };
        most = most.max(workers.iter().filter(boots).count());
        workers.iter().all(|worker| worker.state == WorkerState::Ready)
    })
    .await;
    assert_eq!(most, 2);
    crew.stop().await;
}

#[tokio::test]
async fn endless_output_neither_blocks_the_worker_nor_the_supervisor() {
    let app = format!("setInterval(() => console.log('x'.repeat(100_000)), 1); {PLAIN}");
    let crew = crew(&app).started().await;
    for _ in 0..20 {
        crew.get("/").await;
    }
    crew.stop().await;
}

#[tokio::test]
async fn a_worker_that_talks_without_end_does_not_talk_itself_out_of_a_deadline() {
    let app = "setInterval(() => { for (let i = 0; i < 1000; i++) process.send('ready'); }, 0)";
    let crew = crew(app).with(|settings| settings.start_timeout = Duration::from_secs(1)).start();
    eventually("killed", || crew.worker().last_error.is_some()).await;
    crew.stop().await;
}
