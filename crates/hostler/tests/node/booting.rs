//! Workers that boot, and workers that never become ready.

use std::path::Path;

use hostler_testkit::{client, eventually, run};
use serde_json::{Value, json};

use super::proc;
use super::service_manager::service_manager;
use super::site::{app, configured, fixture, source, worker};

const ANSWERS: &str = "require('http').createServer((req, res) => res.end('mended')).listen(3000);";

#[tokio::test]
async fn a_crash_loop_backs_off_refuses_after_the_queue_timeout_and_recovers_when_the_app_is_mended() {
    let plan =
        source("console.error('no database'); process.exit(3);").option("pools.app.queue.timeout=300ms");
    let site = plan.by_file().start().await;
    let resting =
        worker(&site, "backs off", |w| w["state"] == "backing off" && w["crashes"].as_u64() >= Some(3)).await;
    assert!(resting["restarts_in_ms"].as_u64().unwrap() <= 500, "{resting}");
    assert_eq!(resting["last_exit"], "exit code 3");
    assert_eq!(resting["last_error"], "exit code 3 before it was ready: no database");
    site.logged("exit code 3 before it was ready; restarts in ").await;
    assert_eq!(site.printed("no database").await["stream"], "stderr");

    let refused = site.get("/").await;
    refused.assert_refused(503, "not_started").assert_field("retry-after", "1");

    let admin = site.admin().to_string();
    let parts = ["backing off, ", "worker 1: exit code 3 before it was ready: no database", "not_started 1"];
    // It boots between two rests.
    eventually(parts, async || {
        let table = run(env!("CARGO_BIN_EXE_hostler"), &["status", "--admin", &admin], site.folder()).await;
        parts.iter().all(|part| table.stdout.contains(part)).then_some(())
    })
    .await;

    std::fs::write(site.file("app.cjs"), ANSWERS).unwrap();
    site.is_ready().await;
    assert_eq!(site.get("/").await.assert_status(200).text(), "mended");
    site.stop().await;
}

#[tokio::test]
async fn an_app_that_never_listens_is_killed_in_time_and_its_last_output_is_logged() {
    let text = "console.log('connecting to the database'); setInterval(() => {}, 1000);";
    // Enough time for Node to start and for the app to print.
    let plan = source(text).option("pools.app.start_timeout=5s").option("pools.app.queue.timeout=1s");
    let site = plan.start().await;
    let why = site.logged("app/1").await;
    let killed = site.logged("killed").await;
    assert!(killed.contains("no HTTP server of the app within its start_timeout (5 s)"), "{why}{killed}");
    assert!(killed.contains("bind = \"port\""), "the hint: {killed}");
    assert!(killed.contains("connecting to the database"), "the last output: {killed}");
    site.get("/").await.assert_refused(503, "not_started");
    site.stop().await;
}

#[tokio::test]
async fn while_a_new_worker_boots_the_metrics_are_those_of_the_one_that_serves() {
    let text =
        "if (require('fs').existsSync(process.env.TEST_FOLDER + '/broken')) setInterval(() => {}, 1000);
        else require('http').createServer((req, res) => res.end()).listen(3000);";
    let site = source(text).started().await;
    for _ in 0..3 {
        site.get("/").await.assert_status(200);
    }
    site.touch("broken");
    let mut operator = client(site.admin()).await;
    operator.send("POST /restart HTTP/1.1\r\nHost: localhost\r\nHostler-Command: 1\r\n\r\n").await;
    eventually("the new worker boots", async || {
        site.workers().await.iter().any(|worker| worker["generation"] == 2).then_some(())
    })
    .await;
    let metrics = site.ask_admin("/metrics").await.text();
    for (name, value) in [("requests", "3.0"), ("restarts", "0.0")] {
        let line = format!("\nhostler_worker_{name}_total{{pool=\"app\",worker=\"1\"}} {value}\n");
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
    site.stop().await;
}

#[tokio::test]
async fn output_of_workers_is_logged_with_pool_and_worker() {
    let site =
        source("console.log('out'); console.error('err'); require('http').createServer().listen(3000);");
    let site = site.workers(2).started().await;
    for (text, stream) in [("out", "stdout"), ("err", "stderr")] {
        let lines = eventually("both have printed it", async || {
            let lines =
                site.log().into_iter().filter(|line| line["event"] == "worker" && line["text"] == text);
            let lines: Vec<Value> = lines.collect();
            (lines.len() == 2).then_some(lines)
        })
        .await;
        let mut workers: Vec<u64> = lines.iter().map(|line| line["worker"].as_u64().unwrap()).collect();
        workers.sort_unstable();
        assert_eq!(workers, [1, 2], "{lines:?}");
        assert!(lines.iter().all(|line| line["pool"] == "app" && line["stream"] == stream), "{lines:?}");
    }
}

#[tokio::test]
async fn a_worker_with_a_health_path_is_ready_when_it_is_healthy() {
    let text = "const fs = require('fs'); require('http').createServer((req, res) => {
        const isHealthy = fs.existsSync(process.env.TEST_FOLDER + '/healthy');
        res.statusCode = req.url === '/healthz' && !isHealthy ? 503 : 200;
        res.end(String(isHealthy));
    }).listen(3000, () => console.log('it listens'));";
    let site = source(text).option("pools.app.health=/healthz").start().await;
    site.printed("it listens").await;
    let waiting = site.ask("/");
    site.settles_at(0, 1).await;
    assert_eq!(site.workers().await[0]["state"], "booting");
    site.touch("healthy");
    assert_eq!(waiting.await.unwrap().assert_status(200).text(), "true");
    site.stop().await;
}

#[tokio::test]
async fn an_app_that_sends_its_visitors_to_https_is_asked_as_by_one_of_those() {
    let text = "const seen = []; require('http').createServer((req, res) => {
        if (req.url !== '/seen' && req.headers['x-forwarded-proto'] !== 'https') {
            res.writeHead(301, { Location: 'https://' + req.headers.host + req.url });
            return res.end();
        }
        seen.push(req.url);
        res.end(seen.join());
    }).listen(3000);";
    let plan = source(text).option("pools.app.health=/healthz").option("pools.app.warmup=[\"/a\"]");
    let site = plan.start().await;
    site.get("/seen").await.assert_ok("/healthz,/a,/seen");
    assert_eq!(site.workers().await[0]["restarts"], 0);
    site.stop().await;
}

#[tokio::test]
async fn the_error_of_an_earlier_boot_is_not_told_of_a_later_death() {
    let site = source(
        "const fs = require('fs'), tried = process.env.TEST_FOLDER + '/tried';
        if (!fs.existsSync(tried)) { fs.writeFileSync(tried, ''); throw new Error('no database'); }
        require('http').createServer((req, res) => res.end()).listen(3000);",
    );
    let site = site.started().await;
    let error = site.workers().await[0]["last_error"].clone();
    assert!(error.as_str().is_some_and(|error| error.contains("no database")), "{error}");
    proc::kill(site.pid_of(1).await);
    let worker = eventually("its death", async || {
        let worker = site.workers().await[0].clone();
        worker["last_exit"].as_str()?.starts_with("signal 9").then_some(worker)
    })
    .await;
    assert!(worker["last_error"].is_null(), "{worker}");
    site.stop().await;
}

#[tokio::test]
async fn the_health_path_is_asked_of_the_server_that_gets_the_requests() {
    let app = "http.createServer((req, res) => res.end(req.url === '/healthz' ? 'fine' : 'app')).listen(process.env.PORT);";
    for (other, before) in [
        // Metrics on a port of their own.
        ("404", "setTimeout(serve, 300);"),
        // A server that answers until the app is ready.
        ("503", "setTimeout(() => other.close(serve), 300);"),
    ] {
        let text = format!(
            "const http = require('http'); const serve = () => {app}
            const other = http.createServer((req, res) => {{ res.statusCode = {other}; res.end('other'); }});
            other.listen(Number(process.env.OTHER), '127.0.0.1', () => {{ {before} }});"
        );
        let port = hostler_testkit::held_port();
        let plan = source(&text).env("OTHER", &port.address().port().to_string());
        let site = plan.option("pools.app.health=/healthz").start().await;
        site.get("/").await.assert_ok("app");
        assert_eq!(site.workers().await[0]["restarts"], 0);
        site.stop().await;
    }
}

#[tokio::test]
async fn each_worker_renders_the_warm_up_paths_before_it_gets_requests() {
    let plan = app("diary.cjs").workers(2).option("pools.app.warmup=[\"/a\", \"/wait?until=warm\"]");
    let site = plan.start().await;
    let early: Vec<_> = (0..4).map(|n| site.ask(&format!("/client/{n}"))).collect();
    eventually("both workers warm up", async || (site.diary().len() == 4).then_some(())).await;
    assert!(site.workers().await.iter().all(|worker| worker["state"] == "warming"));
    site.settles_at(0, 4).await;
    site.touch("warm");
    for request in early {
        request.await.unwrap().assert_status(200);
    }
    for number in [1, 2] {
        let urls: Vec<Value> =
            site.diary().into_iter().filter(|e| e["worker"] == number).map(|mut e| e["url"].take()).collect();
        assert_eq!(urls[..2], [json!("/a"), json!("/wait?until=warm")], "worker {number}");
    }
    site.stop().await;
}

#[tokio::test]
async fn warm_up_requests_run_as_many_at_once_as_the_worker_has_slots() {
    let plan = app("diary.cjs").option("pools.app.concurrency=2");
    let paths = (1..=5).map(|n| format!("/wait?until=warm{n}"));
    let site = plan.option(&format!("pools.app.warmup={}", json!(paths.collect::<Vec<_>>()))).start().await;
    for asked in 2..=5 {
        eventually("the next is asked for", async || (site.diary().len() == asked).then_some(())).await;
        assert_eq!(site.workers().await[0]["state"], "warming");
        site.touch(&format!("warm{}", asked - 1));
    }
    let urls: Vec<Value> = site.diary().into_iter().map(|mut entry| entry["url"].take()).collect();
    assert_eq!(urls[4], "/wait?until=warm5");
    site.touch("warm5");
    site.get("/").await.assert_status(200);
    site.stop().await;
}

#[tokio::test]
async fn no_more_workers_that_compute_boot_at_once_than_there_are_cores() {
    let text = format!("const end = Date.now() + 500; while (Date.now() < end); {ANSWERS}");
    let site = source(&text).workers(4).start().await;
    let mut most = 0;
    eventually("all are ready", async || {
        let workers = site.workers().await;
        let booting = workers.iter().filter(|w| w["state"] == "booting" && w["pid"].is_u64()).count();
        most = most.max(booting);
        workers.iter().all(|worker| worker["state"] == "ready").then_some(())
    })
    .await;
    let cores = std::thread::available_parallelism().unwrap().get();
    assert!((1..=cores).contains(&most), "{most} on {cores} cores");
}

#[tokio::test]
async fn with_bind_port_ready_means_that_the_port_answers() {
    let site =
        fixture("plain-http").runs("node server.mjs env").option("pools.app.bind=port").started().await;
    let pid = site.pid_of(1).await;
    proc::kill(pid);
    let answer = site.get("/").await.assert_status(200).json();
    assert_ne!(answer["pid"], pid, "its successor answers, on another port or the same");
    site.stop().await;
}

#[tokio::test]
async fn a_directory_that_does_not_exist_stops_the_start() {
    let output = source("").option("pools.app.cwd=nowhere").ended().await;
    output.assert_exit(2).assert_complains("pools.app.cwd").assert_complains("nowhere does not exist");
}

#[tokio::test]
async fn a_program_that_does_not_exist_stops_the_start_and_is_named() {
    let output = source("").runs("nodejs-of-tomorrow server.js").ended().await;
    output.assert_exit(2).assert_complains("there is no program \"nodejs-of-tomorrow\" in PATH");
}

#[tokio::test]
async fn a_program_that_has_gone_is_named_and_clients_get_a_refusal() {
    let plan = source("").option("pools.app.queue.timeout=200ms");
    let program = plan.folder().join("short-lived");
    // It is there at the start. It removes itself, so the next boot does not find it.
    std::fs::write(&program, "#!/bin/sh\nrm \"$0\"\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let site = plan.runs(&format!("{} x", program.display())).by_file().start().await;
    worker(&site, "backs off", |w| {
        w["state"] == "backing off" && w["last_error"].to_string().contains("there is no program")
    })
    .await;
    site.get("/").await.assert_refused(503, "not_started");
    site.stop().await;
}

#[tokio::test]
async fn a_pool_that_fails_at_once_does_not_tell_the_service_manager_that_the_others_are_ready() {
    let manager = service_manager();
    let pool = |name: &str, app: &str| {
        let command = serde_json::to_string(&["node", "-e", app]).unwrap();
        format!("[pools.{name}]\ncommand = {command}\nworkers = 1\n")
    };
    let boots = "const wait = setInterval(() => {
          if (!require('fs').existsSync(process.env.TEST_FOLDER + '/go')) return;
          clearInterval(wait);
          require('http').createServer((request, response) => response.end()).listen(3000);
        }, 20);";
    let routes = "[[routes]]\nmatch = '*'\npool = 'app'\n[[routes]]\nmatch = '/broken'\npool = 'broken'\n";
    let text = pool("app", boots) + &pool("broken", "process.exit(3)") + routes;
    let site = manager.above(configured(&text)).start().await;
    eventually("the broken one to be tried again", async || {
        let broken = site.pool("broken").await;
        (broken["workers"][0]["crashes"].as_u64() >= Some(3)).then_some(())
    })
    .await;
    manager.assert_told_nothing();
    site.touch("go");
    assert_eq!(manager.told().await, format!("READY=1\nMAINPID={}", site.pid()));
}

#[tokio::test]
async fn workers_boot_in_the_temp_dir_of_the_last_reload_when_the_one_before_is_gone() {
    let (before, after) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let text = |temp_dir: &Path| {
        format!(
            "[server]\ntemp_dir = {temp_dir:?}\n[pools.app]\nworkers = 1\nqueue.timeout = '1h'\n\
             command = ['node', '-e', \"require('http').createServer((req, res) => res.end('served')).listen(3000)\"]\n"
        )
    };
    // An empty variable counts as none.
    let site = configured(&text(before.path())).env("XDG_RUNTIME_DIR", "").started().await;
    site.configure(&text(after.path()));
    site.command(&["reload"]).await.assert_exit(0);
    let served = site.pid_of(1).await;
    std::fs::remove_dir_all(before.path()).unwrap();
    proc::kill(served);
    site.get("/").await.assert_ok("served");
    site.stop().await;
}
