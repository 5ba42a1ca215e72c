//! How Hostler and its workers end: gracefully, at once, or killed. No process and no file is left.

use std::future::pending;
use std::time::Duration;

use hostler_testkit::{Frame, eventually, frame_client};
use rustix::process::Signal;
use tokio::time::timeout;

use super::proc;
use super::site::{Plan, Site, app, configured, fixture, source};

/// All processes of this Hostler: its guard, and its workers with their children.
async fn crowd(site: &Site) -> Vec<u32> {
    let workers = site.pids().await.into_iter().flat_map(proc::group_of);
    let crowd: Vec<u32> = workers.chain(proc::children_of(site.pid())).collect();
    assert!(crowd.len() > site.pids().await.len(), "at least the guard besides");
    crowd
}

async fn all_gone(crowd: &[u32]) {
    eventually("no process is left", async || (!crowd.iter().any(|&pid| proc::is_alive(pid))).then_some(()))
        .await;
}

#[tokio::test]
async fn a_stop_finishes_accepted_requests_refuses_new_ones_and_leaves_no_process() {
    let mut site = app("diary.cjs").workers(2).option("pools.app.concurrency=1").started().await;
    let crowd = crowd(&site).await;
    let mut idle = site.connect().await;
    let rendering = site.ask("/wait?until=released");
    let waiting: Vec<_> = (0..3).map(|n| site.ask(&format!("/wait?until=released&n={n}"))).collect();
    site.settles_at(2, 2).await;

    site.terminate();
    site.logged("stopping").await;
    idle.assert_closed().await;
    eventually("no new connections", async || tokio::net::TcpStream::connect(site.address()).await.err())
        .await;
    assert_eq!(site.status().await["state"], "draining");
    site.touch("released");
    rendering.await.unwrap().assert_status(200);
    for request in waiting {
        request.await.unwrap().assert_status(200);
    }
    assert_eq!(site.exit().await, 0);
    assert_eq!(
        crowd.iter().copied().filter(|&pid| proc::is_alive(pid)).collect::<Vec<_>>(),
        [0; 0],
        "at its end"
    );
    assert_eq!(site.run_directory().len(), 0, "the private directory is removed");
}

#[tokio::test]
async fn a_drain_that_takes_too_long_is_cut_off() {
    let mut site = app("diary.cjs").option("server.drain_timeout=500ms").started().await;
    let crowd = crowd(&site).await;
    let mut client = site.connect().await;
    client.send("GET /wait?until=never HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let get = [(":method", "GET"), (":scheme", "http"), (":path", "/wait?until=never"), (":authority", "a")];
    let mut http2 = frame_client(site.address()).await;
    http2.send(&[Frame::request(1, &get)]).await;
    site.settles_at(2, 0).await;
    site.terminate();
    assert_eq!(site.exit().await, 0);
    site.logged("did not end in server.drain_timeout").await;
    let cut = site.lines().into_iter().filter(|line| line.contains("\"aborted\":\"stopped\""));
    assert_eq!(cut.count(), 2, "each request that was cut off has its line");
    all_gone(&crowd).await;
}

#[tokio::test]
async fn a_second_signal_stops_at_once() {
    let plan = app("diary.cjs").option("pools.app.stop_timeout=1h").option("server.drain_timeout=1h");
    let mut site = plan.started().await;
    let crowd = crowd(&site).await;
    let _request = site.ask("/spin?until=never");
    site.settles_at(1, 0).await;
    site.interrupt();
    site.logged("stopping").await;
    eventually("it to be told a second time, and not by an echo of the first", async || {
        site.interrupt();
        site.lines().iter().any(|line| line.contains("a second signal")).then_some(())
    })
    .await;
    assert_eq!(site.exit().await, 0);
    all_gone(&crowd).await;
}

#[tokio::test]
async fn the_log_says_that_a_second_signal_kills_workers_that_stop() {
    let plan = fixture("stubborn").runs("node server.mjs").option("pools.app.stop_timeout=1h");
    let mut site = plan.started().await;
    let crowd = crowd(&site).await;
    site.terminate();
    site.printed("SIGTERM, but it stays").await;
    eventually("it to be told a second time, and not by an echo of the first", async || {
        site.terminate();
        site.lines()
            .iter()
            .any(|line| line.contains("Hostler kills the workers that have not ended yet"))
            .then_some(())
    })
    .await;
    assert_eq!(site.exit().await, 0);
    all_gone(&crowd).await;
}

#[tokio::test]
async fn sigquit_stops_without_loss() {
    let mut site = app("diary.cjs").started().await;
    let crowd = crowd(&site).await;
    let running = site.ask("/wait?until=released");
    site.settles_at(1, 0).await;
    proc::signal(site.pid(), Signal::QUIT);
    site.logged("stopping").await;
    site.touch("released");
    running.await.unwrap().assert_status(200);
    assert_eq!(site.exit().await, 0);
    all_gone(&crowd).await;
}

#[tokio::test]
async fn a_stop_during_a_reload_ends_the_workers_of_a_new_pool_in_order() {
    let pool = |name: &str, app: &str| {
        let command = serde_json::to_string(&["node", "-e", app]).unwrap();
        format!("[pools.{name}]\ncommand = {command}\nworkers = 1\n")
    };
    let app = pool("app", "require('http').createServer((req, res) => res.end()).listen(3000)");
    // It does not listen yet, so the reload waits for it.
    let boots = "process.on('SIGTERM', () => { console.log('ends in order'); process.exit(0); });
        setInterval(() => {}, 1000);
        console.log('boots');";
    let routes = "[[routes]]\nmatch = '*'\npool = 'app'\n";
    let mut site = configured(&format!("{app}{routes}")).started().await;
    let more = "[[routes]]\nmatch = '/other'\npool = 'other'\n";
    site.configure(&format!("{app}{}{routes}{more}", pool("other", boots)));
    proc::signal(site.pid(), Signal::HUP);
    site.printed("boots").await;
    let crowd = crowd(&site).await;
    site.terminate();
    assert_eq!(site.exit().await, 0);
    site.printed("ends in order").await;
    site.logged("reload: this Hostler is stopping; nothing has changed").await;
    all_gone(&crowd).await;
}

async fn stops_as_asked(plan: Plan) {
    let mut site = plan.started().await;
    let crowd = crowd(&site).await;
    site.get("/").await.assert_status(200);
    site.terminate();
    assert_eq!(site.exit().await, 0);
    site.printed("stops as asked").await;
    assert!(site.logged("stopped (pid ").await.ends_with("exit code 0"));
    all_gone(&crowd).await;
    assert_eq!(site.run_directory().len(), 0);
}

#[tokio::test]
async fn an_app_written_for_pm2_is_ready_after_its_message_and_gets_shutdown() {
    stops_as_asked(fixture("pm2").runs("node server.cjs")).await;
}

#[tokio::test]
async fn an_app_written_for_pm2_gets_shutdown_behind_npm_too() {
    stops_as_asked(fixture("npm-start").runs("npm start")).await;
}

#[tokio::test]
async fn an_app_that_ignores_sigterm_is_killed_after_the_stop_timeout() {
    let mut site =
        fixture("stubborn").runs("node server.mjs").option("pools.app.stop_timeout=1s").started().await;
    let crowd = crowd(&site).await;
    site.terminate();
    assert_eq!(site.exit().await, 0);
    site.printed("SIGTERM, but it stays").await;
    let killed = site.logged("killed").await;
    assert!(killed.contains("it has not stopped within its stop_timeout (1 s)"), "{killed}");
    all_gone(&crowd).await;
}

#[tokio::test]
async fn an_app_that_closes_its_server_at_sigterm_is_not_cut_off() {
    let text = "const server = require('http').createServer((req, res) => res.end()).listen(3000);
        process.on('SIGTERM', () => server.close(() => { console.log('closed'); process.exit(0); }));";
    let mut site = source(text).option("pools.app.stop_timeout=1h").started().await;
    // The connection between Hostler and the worker stays open. `server.close()` waits for it; in a worker it would wait for ever.
    site.get("/").await.assert_status(200);
    site.terminate();
    assert_eq!(site.exit().await, 0);
    site.printed("closed").await;
}

/// Hostler is killed: all its processes end, and its directory is removed.
async fn nothing_outlives_it(site: Site) {
    let crowd = crowd(&site).await;
    proc::signal(site.pid(), Signal::KILL);
    all_gone(&crowd).await;
    assert_eq!(site.run_directory().len(), 0, "the private directory is removed");
}

#[tokio::test]
async fn no_process_outlives_a_killed_hostler() {
    nothing_outlives_it(app("diary.cjs").workers(2).started().await).await;
}

#[tokio::test]
async fn a_worker_in_an_infinite_loop_does_not_outlive_a_killed_hostler() {
    let site = app("diary.cjs").started().await;
    let _request = site.ask("/spin?until=never");
    site.settles_at(1, 0).await;
    nothing_outlives_it(site).await;
}

/// As `dumb-init` and `setsid` do, a script starts the app in a session of its own. `/spin` never ends.
fn in_a_session_of_its_own() -> Plan {
    source(
        "if (process.argv[2] === 'app') {
            require('http').createServer((req, res) => {
                while (req.url === '/spin');
                res.end(String(process.pid));
            }).listen(process.env.PORT);
        } else {
            require('child_process').spawn(process.execPath, [__filename, 'app'], { stdio: 'inherit', detached: true });
        }",
    )
}

#[tokio::test]
async fn a_hung_app_in_a_session_of_its_own_is_killed_too() {
    let plan = in_a_session_of_its_own().option("pools.app.request_timeout=500ms");
    let site = plan.option("pools.app.hang_timeout=1s").started().await;
    let hung: u32 = site.get("/").await.assert_status(200).text().parse().unwrap();
    site.get("/spin").await.assert_refused(504, "answer_timeout");
    all_gone(&[hung]).await;
    eventually("its successor answers", async || {
        let answer = site.get("/").await;
        (answer.status == 200 && answer.text() != hung.to_string()).then_some(())
    })
    .await;
    site.stop().await;
}

#[tokio::test]
async fn an_app_in_a_session_of_its_own_outlives_neither_a_stop_nor_the_script_that_started_it() {
    let plan = || in_a_session_of_its_own().option("server.drain_timeout=500ms");
    let mut site = plan().started().await;
    let app: u32 = site.get("/").await.assert_status(200).text().parse().unwrap();
    let _request = site.ask("/spin");
    site.settles_at(1, 0).await;
    site.terminate();
    assert_eq!(site.exit().await, 0);
    all_gone(&[app]).await;

    let site = plan().started().await;
    let app: u32 = site.get("/").await.assert_status(200).text().parse().unwrap();
    let _request = site.ask("/spin");
    site.settles_at(1, 0).await;
    proc::kill(proc::parent_of(app).unwrap());
    all_gone(&[app]).await;
    site.stop().await;
}

#[tokio::test]
async fn an_app_in_a_session_of_its_own_does_not_outlive_a_killed_hostler() {
    let site = in_a_session_of_its_own().started().await;
    let _request = site.ask("/spin");
    site.settles_at(1, 0).await;
    nothing_outlives_it(site).await;
}

#[tokio::test]
async fn an_app_behind_npm_does_not_outlive_a_killed_hostler() {
    nothing_outlives_it(fixture("npm-start").runs("npm start").started().await).await;
}

#[tokio::test]
async fn an_app_that_ignores_sigterm_does_not_outlive_a_killed_hostler() {
    nothing_outlives_it(fixture("stubborn").runs("node server.mjs").started().await).await;
}

#[tokio::test]
async fn a_request_that_hangs_in_the_middle_of_its_answer_is_named_in_the_log() {
    let text = "require('http').createServer((request, response) => {
          response.setHeader('cache-control', 'max-age=60');
          response.write('begun');
          setTimeout(() => { for (;;); }, 300);
        }).listen(3000);";
    for route in ["match=\"*\",pool=\"app\"", "match=\"*\",pool=\"app\",cache=\"standard\""] {
        let plan = source(text).option(&format!("routes=[{{{route}}}]"));
        let plan = plan.option("pools.app.request_timeout=1s").option("pools.app.hang_timeout=2s");
        let site = plan.started().await;
        let mut client = site.connect().await;
        client.send("GET /report?token=abc HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
        let why = site.logged("killed").await;
        let name = "unfinished: GET shop.example/report?token=[redacted], for ";
        assert!(why.contains("hung: ") && why.contains(name), "{route}: {why}");
        site.stop().await;
    }
}

#[tokio::test]
async fn a_worker_in_an_infinite_loop_is_replaced_without_effect_on_the_others() {
    let plan = app("diary.cjs").workers(2).option("pools.app.request_timeout=500ms");
    let site = plan.option("pools.app.hang_timeout=1500ms").started().await;
    let hanging = site.ask("/spin?until=never&token=abc");
    let entry = eventually("a worker has it", async || site.diary().pop()).await;
    let (stuck, worker) = (entry["pid"].as_u64().unwrap() as u32, entry["worker"].as_u64().unwrap() as usize);
    let others = async {
        let mut served = 0;
        while proc::is_alive(stuck) {
            site.get("/").await.assert_status(200);
            served += 1;
        }
        served
    };
    let (refused, served) = tokio::join!(hanging, others);
    refused.unwrap().assert_refused(504, "answer_timeout");
    assert!(served > 1, "the other worker served {served}");

    let killed = site.logged(&format!("app/{worker}")).await;
    let why = site.logged("killed").await;
    // Its request and its silence show that at about the same time.
    assert!(why.contains("hung: ") && why.contains("its hang_timeout"), "{killed} {why}");
    assert!(
        why.contains("unfinished: GET ") && why.contains("/spin?until=never&token=[redacted], for "),
        "{why}"
    );
    site.is_ready().await;
    assert_ne!(site.pid_of(worker).await, stuck);
    assert_eq!(site.diary().iter().filter(|entry| entry["url"] == "/spin?until=never&token=abc").count(), 1);
    site.settles_at(0, 0).await;
    site.stop().await;
}

/// As in a container that is paused: the clock goes on, and neither of them runs.
#[tokio::test]
async fn a_worker_that_is_frozen_together_with_hostler_is_not_killed_for_that() {
    let text = "require('http').createServer((request, response) => {
          setTimeout(() => response.end('ok'), request.url === '/slow' ? 700 : 0);
        }).listen(3000);";
    let plan = source(text).option("pools.app.concurrency=1").option("pools.app.request_timeout=1s");
    let site = plan.option("pools.app.hang_timeout=1500ms").started().await;
    let worker = site.pid_of(1).await;
    let asked = site.ask("/slow");
    site.settles_at(1, 0).await;
    proc::freeze(worker);
    proc::freeze(site.pid());
    let _ = timeout(Duration::from_secs(3), pending::<()>()).await;
    proc::wake(site.pid());
    asked.await.unwrap().assert_refused(504, "answer_timeout");
    proc::wake(worker);
    site.get("/").await.assert_ok("ok");
    assert_eq!(site.pid_of(1).await, worker);
    site.stop().await;
}

#[tokio::test]
async fn a_worker_that_is_frozen_together_with_hostler_while_it_stops_has_its_time_again() {
    let text = "require('http').createServer((request, response) => response.end('ok')).listen(3000);
        process.on('SIGTERM', () => {
          console.log('begins to end');
          setTimeout(() => { console.log('has ended'); process.exit(0); }, 700);
        });";
    let mut site = source(text).option("pools.app.stop_timeout=1500ms").started().await;
    let worker = site.pid_of(1).await;
    site.terminate();
    site.printed("begins to end").await;
    proc::freeze(worker);
    proc::freeze(site.pid());
    let _ = timeout(Duration::from_secs(3), pending::<()>()).await;
    proc::wake(site.pid());
    proc::wake(worker);
    assert_eq!(site.exit().await, 0);
    site.printed("has ended").await;
}
