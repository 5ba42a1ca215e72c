//! Apps without a process while they have no requests: they wake up for the first one, and nothing is lost.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use hostler_testkit::{Client, client, eventually, within};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;

use super::proc;
use super::site::{Plan, Site, app, configured, source};

const PID: &str = "require('http').createServer((req, res) => res.end(`${process.pid}`)).listen(3000);";

/// Sleeps after this time without a request.
fn sleeper(plan: Plan, shrink_after: &str) -> Plan {
    plan.option("pools.app.workers={ min = 0, max = 2 }")
        .option(&format!("pools.app.shrink_after={shrink_after}"))
        .option("pools.app.queue.timeout=5s")
        .option("server.health_path=/healthz")
}

async fn is_asleep(site: &Site) -> bool {
    let pool = site.pool("app").await;
    pool["asleep"] == true && pool["workers"].as_array().unwrap().is_empty()
}

async fn sleeps(site: &Site) {
    eventually("it to be asleep without a process", async || is_asleep(site).await.then_some(())).await;
}

#[tokio::test]
async fn an_app_without_requests_has_no_process_and_many_first_requests_wake_it_once() {
    let site = sleeper(source(PID), "1h").start().await;
    assert!(is_asleep(&site).await, "no worker is started at the start");
    // Health checks neither fail nor wake it.
    for path in ["/healthz", "/healthz/ready/app", "/healthz/startup"] {
        site.get(path).await.assert_ok("ok\n");
    }
    assert!(is_asleep(&site).await);
    let mut first = JoinSet::new();
    for _ in 0..50 {
        let address = site.address();
        first.spawn(async move { client(address).await.get("/").await.assert_status(200).text() });
    }
    let pids = first.join_all().await;
    assert!(pids.iter().all(|pid| *pid == pids[0]), "{pids:?}");
    let pool = site.pool("app").await;
    assert_eq!((&pool["asleep"], &pool["scaling"]["woken"]), (&false.into(), &1.into()), "{pool}");
    site.logged("app: 1 worker is wanted: a request waits, and the pool is asleep").await;
    site.stop().await;
}

#[tokio::test]
async fn an_app_falls_asleep_and_wakes_up_again_and_again_without_a_lost_request() {
    let site = sleeper(source(PID), "300ms").start().await;
    let mut before = String::new();
    for _ in 0..3 {
        let pid = site.get("/").await.assert_status(200).text();
        assert_ne!(pid, before);
        sleeps(&site).await;
        assert!(!proc::is_alive(pid.parse().unwrap()));
        before = pid;
    }
    let table = site.command(&["status"]).await.stdout;
    assert!(
        table.contains(", asleep") && table.contains("workers wanted: 0 (min 0, max 2); no request for "),
        "{table}"
    );
    site.stop().await;
}

#[tokio::test]
async fn requests_that_come_just_when_the_app_falls_asleep_are_served() {
    let site = sleeper(source(PID), "1ms").start().await;
    let mut kept: Client = site.connect().await;
    let (began, mut pids) = (Instant::now(), std::collections::BTreeSet::new());
    let mut chance = fastrand::Rng::with_seed(11);
    while pids.len() < 6 || began.elapsed() < Duration::from_secs(5) {
        pids.insert(kept.get("/").await.assert_status(200).text());
        // A look at the pool is due every 250 ms. The request after this pause comes before, during or after it.
        let pause = Duration::from_millis(200 + chance.u64(0..120));
        let _ = tokio::time::timeout(pause, std::future::pending::<()>()).await;
    }
    site.stop().await;
}

#[tokio::test]
async fn a_request_for_an_app_that_does_not_get_ready_is_refused_after_the_wake_timeout() {
    let plan = source("setInterval(() => {}, 1000);").option("pools.app.start_timeout=1h");
    let site = sleeper(plan, "1h").option("pools.app.wake_timeout=1s").start().await;
    let asked = Instant::now();
    let refused = site.get("/").await;
    refused.assert_refused(503, "wake_timeout").assert_field("retry-after", "1");
    let waited = asked.elapsed();
    assert!((Duration::from_secs(1)..Duration::from_secs(4)).contains(&waited), "{waited:?}");
    site.stop().await;
}

#[tokio::test]
async fn a_slow_boot_does_not_use_up_the_time_in_the_queue() {
    let slow =
        "setTimeout(() => require('http').createServer((req, res) => res.end('ok')).listen(3000), 2500);";
    let site = sleeper(source(slow), "1h").option("pools.app.queue.timeout=500ms").start().await;
    site.get("/").await.assert_ok("ok");
    site.stop().await;
}

#[tokio::test]
async fn an_app_that_cannot_start_backs_off_and_its_requests_get_the_usual_refusal() {
    let text =
        "if (!require('fs').existsSync(process.env.TEST_FOLDER + '/mended')) throw new Error('no database');";
    let plan = source(&format!("{text} {PID}"));
    let site = sleeper(plan, "1h").option("pools.app.queue.timeout=1s").by_file().start().await;
    for _ in 0..3 {
        site.get("/").await.assert_refused(503, "not_started");
    }
    let [worker] = &site.workers().await[..] else { panic!("one worker") };
    assert!(worker["generation"].as_u64().unwrap() < 12, "requests cause no boots of their own: {worker}");
    assert_eq!(site.get("/healthz").await.status, 503);
    site.touch("mended");
    site.is_ready().await;
    site.get("/").await.assert_status(200);
    site.stop().await;
}

#[tokio::test]
async fn run_does_not_end_when_an_app_that_has_slept_does_not_boot_any_more() {
    let text = "if (require('fs').existsSync(process.env.TEST_FOLDER + '/bad')) process.exit(3);";
    let plan = sleeper(source(&format!("{text} {PID}")), "300ms").option("pools.app.queue.timeout=1h");
    let site = plan.start().await;
    site.get("/").await.assert_status(200);
    sleeps(&site).await;
    site.touch("bad");
    let waiting = site.ask("/");
    site.logged("(crash loop: 3 in a row)").await;
    std::fs::remove_file(site.file("bad")).unwrap();
    waiting.await.unwrap().assert_status(200);
    site.stop().await;
}

#[tokio::test]
async fn an_open_websocket_keeps_the_app_awake() {
    let site = sleeper(app("sockets.cjs"), "300ms").start().await;
    // The handshake wakes the app.
    let stream = TcpStream::connect(site.address()).await.unwrap();
    let (mut socket, _) = within("a handshake", client_async("ws://site.test/", stream)).await.unwrap();
    let pid = within("a greeting", socket.next()).await.unwrap().unwrap().into_text().unwrap();
    for _ in 0..3 {
        // Longer than two looks at the pool.
        let _ = tokio::time::timeout(Duration::from_millis(800), std::future::pending::<()>()).await;
        socket.send(Message::text("hello")).await.unwrap();
        let echo = within("an echo", socket.next()).await.unwrap().unwrap();
        assert_eq!(echo.into_text().unwrap(), "hello");
    }
    assert!(proc::is_alive(pid.parse().unwrap()));
    drop(socket);
    sleeps(&site).await;
    site.stop().await;
}

#[tokio::test]
async fn a_restart_and_a_reload_leave_a_sleeping_app_asleep() {
    let text = |env: &str| {
        format!(
            "[pools.app]\ncommand = ['node', '-e', \"require('http').createServer((req, res) => res.end(process.env.V)).listen(3000)\"]\n\
             workers = {{ min = 0 }}\nenv = {{ V = '{env}' }}\n"
        )
    };
    let site = configured(&text("v1")).start().await;
    let said = site.command(&["restart", "app"]).await.assert_exit(0).stdout.clone();
    assert!(said.contains("pool app: 0 workers replaced"), "{said}");
    site.configure(&text("v2"));
    site.command(&["reload"]).await.assert_exit(0);
    assert!(is_asleep(&site).await);
    site.get("/").await.assert_ok("v2");
    // Awake, a restart replaces the worker.
    let said = site.command(&["restart", "app"]).await.assert_exit(0).stdout.clone();
    assert!(said.contains("pool app: 1 worker replaced"), "{said}");
    site.configure(&text("v3").replace("{ min = 0 }", "1"));
    site.command(&["reload"]).await.assert_exit(0);
    eventually("the new settings", async || (site.get("/").await.text() == "v3").then_some(())).await;
    site.stop().await;
}

#[tokio::test]
async fn an_upgrade_keeps_sleeping_apps_asleep_and_the_others_awake() {
    let pool = |name: &str| {
        format!(
            "[pools.{name}]\ncommand = ['node', '-e', \"require('http').createServer((req, res) => res.end('ok')).listen(3000)\"]\n\
             workers = {{ min = 0 }}\n[[routes]]\nmatch = '/{name}'\npool = '{name}'\n"
        )
    };
    let mut site = configured(&(pool("app") + &pool("idle"))).start().await;
    site.get("/app").await.assert_ok("ok");
    let before = site.status().await["pid"].clone();
    site.command(&["upgrade"]).await.assert_exit(0);
    assert_eq!(site.exit().await, 0);
    let status = eventually("the new one to tell of itself", async || {
        let status = site.status().await;
        (status["pid"] != before).then_some(status)
    })
    .await;
    let asleep = |name: &str| {
        let pools = status["pools"].as_array().unwrap();
        pools.iter().find(|pool| pool["name"] == name).unwrap()["asleep"].clone()
    };
    assert_eq!((asleep("app"), asleep("idle")), (false.into(), true.into()), "{status}");
    site.get("/idle").await.assert_ok("ok");
    // A pool that a reload adds again has nothing to do with the one of the process before.
    for text in [pool("idle"), pool("app") + &pool("idle")] {
        site.configure(&text);
        site.command(&["reload"]).await.assert_exit(0);
    }
    assert_eq!(site.pool("app").await["asleep"], true);
    let pid = u32::try_from(status["pid"].as_u64().unwrap()).unwrap();
    proc::signal(pid, rustix::process::Signal::TERM);
    eventually("the new one to be gone", async || (!proc::is_alive(pid)).then_some(())).await;
}

#[tokio::test]
async fn a_stop_while_an_app_wakes_up_answers_the_request_first() {
    let slow =
        "setTimeout(() => require('http').createServer((req, res) => res.end('ok')).listen(3000), 1000);";
    let site = sleeper(source(slow), "1h").start().await;
    let asked = site.ask("/");
    site.settles_at(0, 1).await;
    let answer = async {
        within("an answer", asked).await.unwrap().assert_ok("ok");
    };
    tokio::join!(site.stop(), answer);
}
