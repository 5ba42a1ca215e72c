//! What Hostler lets through passes the limits of Node and of the app's server too, and a burst of requests leaves few connections to the worker.

use hostler_testkit::{ReceivedAnswer, eventually};

use super::site::{Site, app, source};

const COOKIE_LENGTH: &str =
    "require('http').createServer((req, res) => res.end(`${req.headers.cookie.length}`)).listen(3000);";

async fn with_cookie(site: &Site, length: usize) -> ReceivedAnswer {
    site.send(format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: {}\r\n\r\n", "c".repeat(length))).await
}

#[tokio::test]
async fn a_head_as_large_as_allowed_reaches_the_worker() {
    for bind in ["socket", "port"] {
        let app = COOKIE_LENGTH.replace("3000", "process.env.PORT ?? 3000");
        let site = source(&app).option(&format!("pools.app.bind={bind}")).started().await;
        for length in [30 << 10, (64 << 10) - 256] {
            with_cookie(&site, length).await.assert_ok(&length.to_string());
        }
        with_cookie(&site, 64 << 10).await.assert_refused(431, "header_too_large");
    }
}

#[tokio::test]
async fn a_body_as_large_as_allowed_reaches_the_worker_whole() {
    let site = app("diary.cjs").started().await;
    for size in [1, 200 << 10, 10 << 20] {
        let answer = site.post("/", vec![b'x'; size]).await;
        assert_eq!(answer.assert_status(200).json()["received"], size);
    }
    site.post("/", vec![b'x'; (10 << 20) + 1]).await.assert_refused(413, "body_too_large");
    assert_eq!(site.diary().len(), 3);
}

#[tokio::test]
async fn a_changed_head_limit_of_hostler_applies_to_its_workers() {
    let site = source(COOKIE_LENGTH).option("server.max_header_size=256 KiB").started().await;
    with_cookie(&site, 200 << 10).await.assert_status(200);
}

#[tokio::test]
async fn a_limit_that_the_operator_has_set_for_node_stays() {
    let site = source(COOKIE_LENGTH).env("NODE_OPTIONS", "--max-http-header-size=20000").started().await;
    // The worker's own answer.
    with_cookie(&site, 30 << 10).await.assert_status(431).assert_no_field("hostler-refusal");
}

/// As if Hostler had been held up, and had set the limit for other programs only after Node had raised its own.
#[tokio::test]
async fn a_worker_whose_limit_on_open_files_was_set_too_late_gets_that_of_node_again() {
    for bind in ["socket", "port"] {
        let app = COOKIE_LENGTH.replace("3000", "process.env.PORT ?? 3000");
        let plan = source(&app).option(&format!("pools.app.bind={bind}"));
        let late =
            "require('child_process').execFileSync('prlimit', ['--pid', `${process.pid}`, '--nofile=64:']);";
        std::fs::write(plan.folder().join("late.cjs"), late).unwrap();
        let site = plan.env("NODE_OPTIONS", "--require ./late.cjs").started().await;
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", site.pid_of(1).await)).unwrap();
        let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(words[3], words[4], "{bind}: {line}");
    }
}

#[tokio::test]
async fn a_limit_of_connections_in_the_app_closes_no_connection_of_hostler() {
    let app = "const waiting = [];
        const server = require('http').createServer((req, res) => {
            waiting.push(res);
            if (waiting.length === 6) for (const res of waiting) res.end('all are here');
        });
        server.maxConnections = 2;
        server.listen(3000);";
    let site = source(app).option("pools.app.concurrency=6").started().await;
    let requests: Vec<_> = (0..6).map(|_| site.ask("/")).collect();
    for request in requests {
        request.await.unwrap().assert_ok("all are here");
    }
    site.logged("app/1: server.maxConnections = 2 of the app has no effect").await;
    site.stop().await;
}

#[tokio::test]
async fn connections_that_a_burst_of_requests_has_opened_to_a_worker_are_closed() {
    const BURST: usize = 200;
    let app = format!(
        "const held = [];
        require('http').createServer((req, res) => {{
            held.push(res);
            if (held.length === {BURST}) held.forEach((res) => res.end('ok'));
        }}).listen(3000);"
    );
    let options = ["server.threads=1", "pools.app.concurrency=auto"];
    let site = options.iter().fold(source(&app), |plan, option| plan.option(option)).started().await;
    let descriptors = || std::fs::read_dir(format!("/proc/{}/fd", site.pid())).unwrap().count();
    let before = descriptors();
    let asked: Vec<_> = (0..BURST).map(|_| site.ask("/")).collect();
    for answer in asked {
        answer.await.unwrap().assert_ok("ok");
    }
    assert!(descriptors() > before + BURST / 2, "{before}, then {}", descriptors());
    eventually("most connections to be closed", async || (descriptors() < before + 40).then_some(())).await;
}
