//! Deaths and crash loops.

use std::time::Duration;

use hostler_worker::{
    FailedBoot, InspectionEvent, InspectionKind, Rotation, SettingsChange, WorkerSettings, WorkerState,
};
use rustix::process::Signal;
use tokio::time::timeout;

use super::support::*;

#[tokio::test]
async fn a_killed_worker_is_replaced_at_once_and_its_slot_never_given_out_meanwhile() {
    let test_pool = test_pool(PLAIN).with(|settings| settings.count = 2).started().await;
    let victim = test_pool.worker();
    let pid = victim.pid.unwrap();
    signal(pid, Signal::KILL);
    eventually("out of the pool", || test_pool.worker().member != victim.member).await;
    test_pool.is_ready().await;
    let successor = test_pool.worker();
    assert_ne!(successor.pid, victim.pid);
    assert_eq!((successor.generation, successor.restarts), (2, 1));
    assert_eq!(successor.last_exit.as_deref(), Some("signal 9 (SIGKILL)"));
    test_pool.assert_logged(&format!("web 1: died (pid {pid}): signal 9 (SIGKILL); restarts at once"));
    for _ in 0..4 {
        assert_ne!(test_pool.get("/").await, pid.to_string());
    }
    test_pool.stop().await;
}

#[tokio::test]
async fn two_orders_at_once_do_not_take_both_workers_out() {
    let test_pool = test_pool(PLAIN).with(|settings| settings.count = 2).started().await;
    let drain = |worker| test_pool.workers.rotate(worker, Rotation::Out { length: None, force: false });
    let (one, other) = (drain(1), drain(2));
    one.await.unwrap();
    let why = other.await.unwrap_err();
    assert!(why.contains("is the only worker of pool"), "{why}");
    test_pool.get("/").await;
    test_pool.workers.rotate(1, Rotation::In).await.unwrap();
    test_pool.is_ready().await;

    let heap = InspectionKind::Heap { wait: Duration::from_secs(30), force: false };
    let (mut one, mut other) =
        (test_pool.workers.inspect(Some(1), heap), test_pool.workers.inspect(Some(2), heap));
    assert!(matches!(one.recv().await, Some(InspectionEvent::Began { worker: 1, .. })));
    assert!(matches!(other.recv().await, Some(InspectionEvent::Refused(_))));
    drop(one);
    test_pool.stop().await;
}

#[tokio::test]
async fn an_app_that_dies_behind_npm_is_replaced() {
    let test_pool = test_pool(PLAIN)
        .file("package.json", r#"{"scripts":{"start":"node app.js && true"}}"#)
        .command(["npm", "start"])
        .started()
        .await;
    let first: u32 = test_pool.get("/").await.parse().unwrap();
    signal(first, Signal::KILL);
    eventually("it is noticed", || test_pool.worker().pid != Some(first)).await;
    test_pool.is_ready().await;
    let second: u32 = test_pool.get("/").await.parse().unwrap();
    assert_ne!(first, second);
    test_pool.stop().await;
    assert!(!is_alive(second));
}

#[tokio::test]
async fn an_app_that_dies_behind_a_shell_which_holds_its_descriptors_is_replaced() {
    let test_pool = test_pool(PLAIN).command(["sh", "-c", "node app.js; sleep 600"]).started().await;
    let first: u32 = test_pool.get("/").await.parse().unwrap();
    signal(first, Signal::KILL);
    eventually("replaced", || test_pool.worker().generation == 2).await;
    test_pool.assert_logged(&format!("the app (pid {first}) is gone, but the process that started it"));
    test_pool.is_ready().await;
    test_pool.get("/").await;
    test_pool.stop().await;
}

#[tokio::test]
async fn a_program_that_ends_soon_after_its_app_tells_how_the_app_has_ended() {
    // On a busy machine npm takes as long.
    let command = ["sh", "-c", "node app.js; sleep 0.1; exit 3"];
    let test_pool = test_pool(PLAIN).command(command).started().await;
    let app: u32 = test_pool.get("/").await.parse().unwrap();
    signal(app, Signal::KILL);
    eventually("replaced", || test_pool.worker().generation == 2).await;
    assert_eq!(test_pool.worker().last_exit.as_deref(), Some("exit code 3"));
    test_pool.assert_logged(&format!("web 1: died (pid {app}): exit code 3; restarts at once"));
    test_pool.is_ready().await;
    test_pool.stop().await;
}

#[tokio::test]
async fn an_app_that_dies_behind_a_shell_as_soon_as_it_listens_does_not_start() {
    // Not before Hostler knows that it listens.
    let app = format!(
        "{PLAIN} const end = () => {{ console.error('no database'); process.exit(1); }};
        setImmediate(() => setImmediate(() => setTimeout(end, 20)));"
    );
    let test_pool = test_pool(&app).command(["sh", "-c", "node app.js; sleep 600"]).start();
    let never_ready = timeout(TIME_LIMIT, test_pool.workers.never_ready(3)).await.expect("it is given up");
    let FailedBoot { how, error, .. } = &*never_ready.last;
    assert!(how.contains("is gone, but the process that started it"), "{how}");
    assert_eq!(error.as_deref(), Some("no database"));
    test_pool.stop().await;
}

#[tokio::test]
async fn a_crash_loop_backs_off_and_says_why() {
    let test_pool = test_pool("console.error('no database'); process.exit(3)").start();
    eventually("a rest", || {
        test_pool.worker().state == WorkerState::BackingOff && test_pool.worker().crashes > 1
    })
    .await;
    let worker = test_pool.worker();
    assert_eq!(worker.last_error.as_deref(), Some("exit code 3 before it was ready: no database"));
    assert!(worker.restarts_in.unwrap() <= Duration::from_secs(30));
    let json = serde_json::to_value(&worker).unwrap();
    assert_eq!(json["state"], "backing off");
    test_pool.assert_logged("exit code 3 before it was ready; restarts at once");
    test_pool.assert_logged("(crash loop: 2 in a row)");
    test_pool.stop().await;
}

#[tokio::test]
async fn a_command_that_does_not_exist_is_named() {
    let test_pool = test_pool("").command(["no-such-program"]).start();
    eventually("a rest", || test_pool.worker().state == WorkerState::BackingOff).await;
    test_pool
        .assert_logged("web 1: did not start: there is no program \"no-such-program\"; restarts at once");
    test_pool.stop().await;
}

#[tokio::test]
async fn a_worker_that_never_listens_is_killed_with_its_last_output_and_a_hint() {
    // The second one waits for an answer within its line.
    for (prints, last) in
        [("console.log('thinking')", "thinking"), ("process.stdout.write('Port? ')", "Port? ")]
    {
        let test_pool = test_pool(&format!("{prints}; setInterval(() => {{}}, 1000)"))
            .with(|settings| settings.start_timeout = Duration::from_secs(1))
            .start();
        eventually("killed", || test_pool.worker().last_error.is_some()).await;
        test_pool.assert_logged(&format!(
            "Hostler found no HTTP server of the app within its start_timeout (1 s); if it needs longer, for example for a migration of its \
             database, raise start_timeout; if it is not a Node program, use bind = \"port\"; it printed last:\n{last}",
        ));
        test_pool.stop().await;
    }
}

#[tokio::test]
async fn a_boot_that_computes_until_its_start_timeout_is_charged() {
    let test_pool =
        test_pool("for (;;);").with(|settings| settings.start_timeout = Duration::from_secs(1)).start();
    // The first boot follows no death.
    eventually("killed twice", || test_pool.worker().generation == 3).await;
    let boots = test_pool.workers.boots();
    assert!(boots.after_deaths > 0 && !boots.cpu.is_zero(), "{boots:?}");
    test_pool.stop().await;
}

#[tokio::test]
async fn a_worker_that_is_never_healthy_is_killed_with_its_last_answer() {
    let app =
        "require('http').createServer((req, res) => { res.statusCode = 503; res.end(); }).listen(3000);";
    let test_pool = test_pool(app)
        .with(|settings| {
            settings.health = Some("/healthz".to_owned());
            settings.start_timeout = Duration::from_secs(2);
        })
        .start();
    eventually("killed", || test_pool.worker().last_error.is_some()).await;
    test_pool.assert_logged("its health path /healthz has not answered 2xx within its start_timeout (2 s); its last result: answered 503");
    test_pool.stop().await;
}

#[tokio::test]
async fn a_last_line_without_an_end_is_logged_also_if_another_process_holds_the_pipe() {
    let app = format!(
        "if (process.env.HOSTLER_GENERATION === '1') {{
            require('child_process').spawn('sleep', ['5'], {{ detached: true, stdio: 'inherit' }});
            process.stdout.write('no end of this line');
            process.exit(1);
        }}
        {PLAIN}"
    );
    let test_pool = test_pool(&app).started().await;
    assert_eq!(test_pool.log().matches("no end of this line").count(), 1, "{}", test_pool.log());
    test_pool.stop().await;
}

#[tokio::test]
async fn a_booting_worker_is_asked_for_the_health_path_of_a_reload() {
    for health in [Some("/right".to_owned()), None] {
        let app = "require('http').createServer((req, res) => {
            console.log(`asked for ${req.url}`);
            res.statusCode = req.url === '/right' ? 200 : 503;
            res.end();
        }).listen(3000);";
        let test_pool = test_pool(app).with(|settings| settings.health = Some("/wrong".to_owned())).start();
        eventually("asked", || test_pool.log().contains("asked for /wrong")).await;
        let settings = WorkerSettings { health, ..test_pool.settings.clone() };
        assert_eq!(test_pool.workers.update(settings), SettingsChange::Applied);
        test_pool.is_ready().await;
        assert_eq!(test_pool.worker().generation, 1);
        test_pool.stop().await;
    }
}

#[tokio::test]
async fn at_most_as_many_workers_compute_in_their_boots_as_there_are_cores() {
    let app = format!("const end = Date.now() + 300; while (Date.now() < end); {PLAIN}");
    let test_pool = test_pool(&app).with(|settings| settings.count = 5).start();
    let mut most = 0;
    eventually("all ready", || {
        let workers = test_pool.workers.snapshot();
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
    assert!((1..=2).contains(&most), "{most}");
    test_pool.stop().await;
}

#[tokio::test]
async fn workers_that_only_wait_in_their_boots_boot_beside_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("database");
    let app = format!(
        "const timer = setInterval(() => {{ if (!require('fs').existsSync({database:?})) return; clearInterval(timer); {PLAIN} }}, 20);"
    );
    let test_pool = test_pool(&app).with(|settings| settings.count = 6).start();
    eventually("all wait for the database", || {
        let workers = test_pool.workers.snapshot();
        workers.iter().all(|worker| worker.state == WorkerState::Booting && worker.pid.is_some())
    })
    .await;
    std::fs::write(&database, "").unwrap();
    eventually("all ready", || {
        test_pool.workers.snapshot().iter().all(|worker| worker.state == WorkerState::Ready)
    })
    .await;
    test_pool.stop().await;
}

#[tokio::test]
async fn endless_output_neither_blocks_the_worker_nor_the_supervisor() {
    let app = format!("setInterval(() => console.log('x'.repeat(100_000)), 1); {PLAIN}");
    let test_pool = test_pool(&app).started().await;
    for _ in 0..20 {
        test_pool.get("/").await;
    }
    test_pool.stop().await;
}

#[tokio::test]
async fn endless_messages_do_not_extend_a_workers_deadline() {
    let app = "setInterval(() => { for (let i = 0; i < 1000; i++) process.send('ready'); }, 0)";
    let test_pool = test_pool(app).with(|settings| settings.start_timeout = Duration::from_secs(1)).start();
    eventually("killed", || test_pool.worker().last_error.is_some()).await;
    test_pool.stop().await;
}
