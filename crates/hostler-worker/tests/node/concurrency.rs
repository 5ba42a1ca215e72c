//! How many requests real workers get at once.

use hostler_dispatch::{Claim, Lease};
use hostler_worker::{Bind, Slots, WorkerAddress};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinSet;

use super::support::*;

const AUTO: Slots = Slots::Auto { most: 1_000 };

/// Answers after half a second, as an app that waits for a database.
const WAITS: &str = "require('http').createServer((req, res) => setTimeout(() => res.end('ok'), 500)).listen(process.env.PORT || 3000);";
/// Computes for 50 ms, as a page that is rendered.
const COMPUTES: &str = "require('http').createServer((req, res) => {
        const end = performance.now() + 50;
        while (performance.now() < end);
        res.end('ok');
    }).listen(3000);";

/// One request, as Hostler's proxy makes it: it tells the pool when the request has been sent.
async fn request(lease: &Lease<WorkerAddress>) {
    match &**lease {
        WorkerAddress::Unix(path) => exchange(UnixStream::connect(path).await.unwrap(), lease).await,
        WorkerAddress::Tcp(address) => exchange(TcpStream::connect(address).await.unwrap(), lease).await,
    }
}

async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, lease: &Lease<WorkerAddress>) {
    stream.write_all(b"GET / HTTP/1.0\r\nhost: test\r\n\r\n").await.unwrap();
    lease.sent();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("ok"), "{answer}");
}

/// Clients that send requests without pause.
fn clients(test_pool: &TestPool, count: usize) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    for _ in 0..count {
        let pool = test_pool.pool.clone();
        clients.spawn(async move {
            while let Ok(lease) = pool.acquire(Claim::default()).await {
                request(&lease).await;
            }
        });
    }
    clients
}

/// The requests at the first worker.
fn in_use(test_pool: &TestPool) -> usize {
    test_pool.pool.snapshot().members[0].figures.in_use
}

#[tokio::test]
async fn an_app_that_waits_gets_all_requests_that_come() {
    let test_pool = test_pool(WAITS).with(|settings| settings.slots = AUTO).started().await;
    let _clients = clients(&test_pool, 90);
    eventually("all 90 at the worker", || in_use(&test_pool) == 90).await;
    eventually("the reason", || {
        let reason = test_pool.worker().slots_reason.unwrap();
        reason.starts_with("by the event loop (") && reason.ends_with(" % busy), 1000 at most")
    })
    .await;
    test_pool.stop().await;
}

#[tokio::test]
async fn an_app_that_computes_gets_one_request_at_a_time() {
    let test_pool = test_pool(COMPUTES).with(|settings| settings.slots = AUTO).started().await;
    let _clients = clients(&test_pool, 8);
    let mut most = 0;
    eventually("many requests", || {
        most = most.max(in_use(&test_pool));
        test_pool.pool.snapshot().counters.granted > 50
    })
    .await;
    // Two for a moment: the worker has answered, and the client has not read the answer yet.
    assert!(most <= 2, "{most}");
    test_pool.stop().await;
}

#[tokio::test]
async fn max_concurrency_limits_the_requests_at_a_worker() {
    let most = Slots::Auto { most: 7 };
    let test_pool = test_pool(WAITS).with(|settings| settings.slots = most).started().await;
    let _clients = clients(&test_pool, 20);
    eventually("two rounds of answers", || {
        assert!(in_use(&test_pool) <= 7);
        test_pool.pool.snapshot().counters.granted > 14
    })
    .await;
    test_pool.stop().await;
}

#[tokio::test]
async fn the_event_loop_behind_a_port_and_a_shell_is_observed_too() {
    let test_pool = test_pool(WAITS)
        .with(|settings| {
            (settings.slots, settings.bind) = (AUTO, Bind::Port);
            // The shell stays, because another command follows.
            let app = settings.command.join(" ");
            settings.command = vec!["sh".into(), "-c".into(), format!("{app}; exit 0")];
        })
        .started()
        .await;
    let _clients = clients(&test_pool, 30);
    eventually("all 30 at the worker", || in_use(&test_pool) == 30).await;
    eventually("the share of time that it computes", || test_pool.worker().utilisation.is_some()).await;
    test_pool.stop().await;
}

#[tokio::test]
async fn a_program_whose_main_thread_serves_nothing_gets_many_requests_at_once() {
    // As a program with threads, such as one in Java.
    let app = "const { Worker } = require('worker_threads');
        new Worker(`require('http').createServer((req, res) => setTimeout(() => res.end('ok'), 500)).listen(process.env.PORT);`, { eval: true });
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);";
    let test_pool =
        test_pool(app).with(|settings| (settings.slots, settings.bind) = (AUTO, Bind::Port)).started().await;
    let _clients = clients(&test_pool, 30);
    eventually("all 30 at the worker", || in_use(&test_pool) == 30).await;
    let reason = test_pool.worker().slots_reason.unwrap();
    assert_eq!(reason, "with bind = \"port\" its event loop cannot be measured: 64 slots");
    test_pool.stop().await;
}

#[tokio::test]
async fn a_full_thread_pool_lowers_the_limit() {
    let app = "const { pbkdf2 } = require('crypto');
        require('http').createServer((req, res) => pbkdf2('', '', 200_000, 64, 'sha512', () => res.end('ok'))).listen(3000);";
    let test_pool = test_pool(app).with(|settings| settings.slots = AUTO).started().await;
    let limit = || test_pool.pool.snapshot().members[0].figures.slots;
    let many = clients(&test_pool, 40);
    eventually("a few requests for each thread", || (1..=12).contains(&limit())).await;
    drop(many);
    eventually("the limit of before, because the worker has no requests", || limit() == 1_000).await;
    test_pool.stop().await;
}

#[tokio::test]
async fn a_thread_pool_whose_threads_are_blocked_lowers_the_limit() {
    // Opening a pipe blocks until another process opens its other end.
    let app = "const fs = require('fs');
        const pipe = `${process.cwd()}/pipe-${process.pid}`;
        require('child_process').execFileSync('mkfifo', [pipe]);
        require('http').createServer((req, res) => fs.open(pipe, 'r', () => res.end('ok'))).listen(3000);";
    let test_pool = test_pool(app).with(|settings| settings.slots = AUTO).started().await;
    let mut all = Vec::new();
    eventually("a lower limit", || {
        all.push(clients(&test_pool, 1));
        test_pool.pool.snapshot().members[0].figures.slots < 1000
    })
    .await;
    test_pool.stop().await;
}

#[tokio::test]
async fn too_few_slots_are_told_once() {
    let test_pool = test_pool(WAITS).with(|settings| settings.slots = Slots::Fixed(1)).started().await;
    assert_eq!(test_pool.worker().slots_reason, None);
    let _clients = clients(&test_pool, 3);
    eventually("advice", || {
        let reason = test_pool.worker().slots_reason.unwrap_or_default();
        reason.starts_with("requests wait for one of 1 slots, which are held for 5")
    })
    .await;
    test_pool.stop().await;
}
