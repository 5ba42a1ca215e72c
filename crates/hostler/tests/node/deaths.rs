//! Workers that die under load: a request that may be sent twice is answered, and no other request is sent twice.

use std::collections::HashSet;
use std::process::Stdio;
use std::time::Duration;

use hostler_testkit::{ReceivedAnswer, client, eventually};
use tokio::process::Command;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, interval_at};

use super::proc;
use super::site::{Plan, Site, app, source};

fn workers(count: usize) -> Plan {
    app("diary.cjs").workers(count).option("pools.app.concurrency=1")
}

/// A worker that dies before it is ready is another case: its rests become longer and longer.
async fn ready_pids(site: &Site) -> Vec<u32> {
    let workers = site.workers().await.into_iter().filter(|worker| worker["state"] == "ready");
    workers.filter_map(|worker| Some(worker["pid"].as_u64()? as u32)).collect()
}

/// Runs `ab` while a worker is killed every second. Returns its report and the number of kills.
async fn bombarded(site: &Site, options: &[&str]) -> (String, usize) {
    // All answers have the same length, because ab counts any other length as a failure.
    let url = format!("http://{}/wait?ms=2&size=100", site.address());
    let mut ab = Command::new("ab");
    ab.args(["-q", "-n", "10000", "-c", "20"]).args(options).arg(url).stdin(Stdio::null()).kill_on_drop(true);
    let running = ab.output();
    tokio::pin!(running);
    let second = Duration::from_secs(1);
    let mut seconds = interval_at(Instant::now() + second, second);
    // After a second without progress, a death may not be noticed yet: no worker is killed twice.
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut killed = HashSet::new();
    loop {
        tokio::select! {
            output = &mut running => {
                let output = output.expect("ab is installed (apache2-utils)");
                let report = String::from_utf8_lossy(&output.stdout).into_owned();
                assert!(output.status.success(), "{report}{}", String::from_utf8_lossy(&output.stderr));
                return (report, killed.len());
            }
            _ = seconds.tick() => {
                let pids = ready_pids(site).await;
                // If workers boot slowly, one is left to serve meanwhile.
                let next = (pids.len() > 1).then(|| pids[killed.len() % pids.len()]);
                if let Some(pid) = next.filter(|pid| !killed.contains(pid)) {
                    proc::kill(pid);
                    killed.insert(pid);
                }
            }
        }
    }
}

fn figure<'a>(report: &'a str, name: &str) -> Option<&'a str> {
    let line = report.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim_start_matches(':').split_whitespace().next()
}

async fn no_client_notices(options: &[&str]) {
    let site = workers(3).started().await;
    let (report, killed) = bombarded(&site, options).await;
    assert_eq!(figure(&report, "Complete requests"), Some("10000"), "{report}");
    let refusals = site.status().await["routes"][0]["refusals"].clone();
    assert_eq!(figure(&report, "Failed requests"), Some("0"), "{refusals} {report}");
    assert_eq!(figure(&report, "Non-2xx responses"), None, "{report}");
    assert!(killed >= 3, "only {killed} killed:\n{report}");
    // Hostler may not have noticed the last death yet.
    let restarts = eventually(format!("{killed} workers to be replaced"), async || {
        let restarts: u64 =
            site.workers().await.iter().map(|worker| worker["restarts"].as_u64().unwrap()).sum();
        (restarts >= killed as u64).then_some(restarts)
    })
    .await;
    assert_eq!(restarts, killed as u64, "each was replaced, and no other");
    site.is_ready().await;
    site.stop().await;
}

#[tokio::test]
async fn a_worker_killed_every_second_loses_no_get() {
    no_client_notices(&[]).await;
}

#[tokio::test]
async fn a_worker_killed_every_second_loses_no_get_on_kept_connections() {
    no_client_notices(&["-k"]).await;
}

#[tokio::test]
async fn a_post_whose_worker_is_killed_is_answered_502_and_never_sent_twice() {
    let site = workers(2).started().await;
    let killer = async {
        let entry = eventually("the worker has the request", async || site.diary().pop()).await;
        proc::kill(entry["pid"].as_u64().unwrap() as u32);
    };
    let (answer, ()) = tokio::join!(site.post("/wait?until=never", "once"), killer);
    answer.assert_refused(502, "worker_lost");

    site.is_ready().await;
    site.get("/").await.assert_status(200);
    let posts = site.diary().iter().filter(|entry| entry["method"] == "POST").count();
    assert_eq!(posts, 1);
    let line = site.access("/wait?until=never").await;
    assert_eq!(
        (&line["status"], &line["refusal"], &line["attempts"]),
        (&502.into(), &"worker_lost".into(), &1.into())
    );
    site.stop().await;
}

#[tokio::test]
async fn no_post_reaches_two_workers_while_workers_are_killed() {
    let site = workers(3).option("pools.app.queue.timeout=30s").started().await;
    let posts = async {
        let mut answered = 0;
        for wave in 0..20 {
            let posts: Vec<_> =
                (0..20).map(|n| post_in_background(&site, format!("/wait?ms=5&post={wave}-{n}"))).collect();
            for post in posts {
                let answer = post.await.unwrap();
                assert!(
                    answer.status == 200 || answer.field("hostler-refusal").as_deref() == Some("worker_lost"),
                    "{answer:?}"
                );
                answered += usize::from(answer.status == 200);
            }
        }
        answered
    };
    let answered = tokio::select! {
        answered = posts => answered,
        () = kills(&site) => unreachable!("it never ends"),
    };
    let urls: Vec<String> =
        site.diary().iter().map(|entry| entry["url"].as_str().unwrap().to_owned()).collect();
    let different: HashSet<&String> = urls.iter().collect();
    assert_eq!(urls.len(), different.len(), "none was sent twice");
    assert!(urls.len() >= answered && answered > 100, "{answered} of 400 answered, {} arrived", urls.len());
    site.is_ready().await;
    site.settles_at(0, 0).await;
    site.stop().await;
}

fn post_in_background(site: &Site, path: String) -> JoinHandle<ReceivedAnswer> {
    let address = site.address();
    tokio::spawn(async move { client(address).await.post(&path, "once").await })
}

/// Kills a worker four times a second, whatever it does.
async fn kills(site: &Site) {
    let mut quarters = interval(Duration::from_millis(250));
    for turn in 0.. {
        quarters.tick().await;
        let pids = ready_pids(site).await;
        if let Some(&pid) = pids.get(turn % pids.len().max(1)) {
            proc::kill(pid);
        }
    }
}

#[tokio::test]
async fn a_get_that_kills_every_worker_does_not_end_the_whole_pool() {
    let site = workers(4).started().await;
    let killer = async {
        // A kill from outside may be an accident, so a third one is needed.
        for met in 0..3 {
            let entry = eventually("the next worker has it", async || site.diary().get(met).cloned()).await;
            proc::kill(entry["pid"].as_u64().unwrap() as u32);
        }
    };
    let (answer, ()) = tokio::join!(site.get("/wait?until=never"), killer);
    answer.assert_refused(502, "poison");
    let diary = site.diary();
    let met: HashSet<_> = diary.iter().map(|entry| entry["pid"].as_u64()).collect();
    assert_eq!((diary.len(), met.len()), (3, 3), "three sends, each to another process: {diary:?}");
    site.stop().await;
}

#[tokio::test]
async fn workers_that_requests_crash_are_replaced_at_once_every_time() {
    // Nothing is kept off: each request has its own URL and client.
    let site = workers(2).option("pools.app.poison.kills=0").started().await;
    for round in 0..12 {
        let other = site.ask("/wait?ms=5");
        site.post(&format!("/exit?n={round}"), "x").await.assert_refused(502, "worker_lost");
        other.await.unwrap().assert_status(200);
    }
    site.is_ready().await;
    let rests: Vec<_> = site.lines().into_iter().filter(|line| line.contains("restarts in")).collect();
    assert_eq!(rests, [""; 0], "no worker rests");
    site.logged("is started as a spare").await;
    site.logged("a worker is missing").await;
    // The last boot of the spare may still be under way.
    let boots = eventually("all boots are counted", async || {
        let boots = site.pool("app").await["boots"].clone();
        (boots["after_deaths"].as_u64() >= Some(12)).then_some(boots)
    });
    assert_eq!(boots.await["held_up"], 0);
    site.stop().await;
}

#[tokio::test]
async fn a_request_whose_worker_ended_is_sent_again_after_waiting_requests() {
    let site = workers(1).started().await;
    let mut first = site.begin("/wait?until=released").await;
    site.settles_at(1, 0).await;
    let exit = site.ask("/exit");
    site.settles_at(1, 1).await;
    let others: Vec<_> = (0..3).map(|number| site.ask(&format!("/wait?number={number}"))).collect();
    site.settles_at(1, 4).await;
    site.touch("released");
    first.answer().await.assert_status(200);
    for other in others {
        other.await.unwrap().assert_status(200);
    }
    exit.await.unwrap().assert_refused(502, "poison");
    let urls: Vec<_> = site.diary().iter().map(|entry| entry["url"].as_str().unwrap().to_owned()).collect();
    assert_eq!((urls[1].as_str(), urls[5].as_str(), urls.len()), ("/exit", "/exit", 6), "{urls:?}");
    site.stop().await;
}

#[tokio::test]
async fn a_request_waits_in_the_queue_while_the_only_worker_is_replaced() {
    let site = workers(1).started().await;
    let killer = async {
        let entry = eventually("the worker has the request", async || site.diary().pop()).await;
        proc::kill(entry["pid"].as_u64().unwrap() as u32);
        eventually("its successor has it", async || (site.diary().len() == 2).then_some(())).await;
        site.touch("released");
    };
    let (answer, ()) = tokio::join!(site.get("/wait?until=released"), killer);
    assert_eq!(answer.assert_status(200).json()["pid"], site.pid_of(1).await);
    let line = site.access("/wait?until=released").await;
    assert!(line["attempts"].as_u64().unwrap() <= 5, "no tight loop while it boots: {line}");
    site.stop().await;
}

#[tokio::test]
async fn a_post_that_a_worker_has_not_read_before_its_end_goes_to_another() {
    let app = "const fs = require('fs');
        const file = (name) => `${process.env.TEST_FOLDER}/${name}`;
        require('http').createServer((req, res) => {
            if (req.url === '/exit') {
                fs.writeFileSync(file('held'), '');
                while (!fs.existsSync(file('go')));
                process.exit(1);
            }
            fs.appendFileSync(file('seen'), req.url);
            req.resume().on('end', () => res.end('ok'));
        }).listen(3000);";
    let site = source(app).option("pools.app.concurrency=4").started().await;
    let post = |path: String| {
        let address = site.address();
        tokio::spawn(async move { client(address).await.post(&path, "x=1").await })
    };
    let exit = post("/exit".into());
    eventually("the worker is busy", async || site.file("held").exists().then_some(())).await;
    let others: Vec<_> = (0..3).map(|number| post(format!("/{number}"))).collect();
    site.settles_at(4, 0).await;
    site.touch("go");
    exit.await.unwrap().assert_refused(502, "worker_lost");
    for other in others {
        other.await.unwrap().assert_ok("ok");
    }
    let seen = std::fs::read_to_string(site.file("seen")).unwrap();
    assert_eq!(seen.len(), "/0/1/2".len(), "each once: {seen}");
    site.stop().await;
}

#[tokio::test]
async fn a_refusal_does_not_wait_a_second_for_the_death_of_a_worker_that_lives() {
    let app = r"require('http').createServer((req, res) => {
            if (req.url === '/close') req.socket.destroy();
            else req.socket.write('HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n');
        }).listen(3000);";
    let site = source(app).started().await;
    for (path, refusal) in [("/close", "worker_lost"), ("/malformed", "bad_answer")] {
        eventually("a refusal within a second", async || {
            client(site.address()).await.post(path, "x=1").await.assert_refused(502, refusal);
            let total = site.access_lines().pop()?["total_ms"].as_f64()?;
            (total < 1000.0).then_some(())
        })
        .await;
    }
    site.stop().await;
}

#[tokio::test]
async fn an_app_that_closes_each_connection_after_its_response_loses_no_post() {
    let app = "require('http').createServer((req, res) => {
            res.on('finish', () => req.socket.destroy());
            req.resume().on('end', () => res.end('ok'));
        }).listen(3000);";
    let site = source(app).option("pools.app.concurrency=1").started().await;
    let posts = || {
        let address = site.address();
        tokio::spawn(async move {
            let mut client = client(address).await;
            for _ in 0..50 {
                client.post("/", "x=1").await.assert_ok("ok");
            }
        })
    };
    // While some wait, each one gets the connection of the last one, which the app is about to close.
    let clients: Vec<_> = (0..8).map(|_| posts()).collect();
    for client in clients {
        client.await.unwrap();
    }
    site.stop().await;
}
