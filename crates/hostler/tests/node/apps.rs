//! Unmodified apps of all kinds, started as their users start them: each answers, sees its visitor's address, and opens no TCP port.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use hostler_testkit::{ReceivedAnswer, eventually, held_port};
use serde_json::{Value, json};

use super::proc;
use super::site::{Plan, Site, fixture, repository};

/// An address of this machine that workers do not use, so that no app can guess it.
const VISITOR: &str = "127.0.0.2";
/// Fields that only a trusted proxy may send.
const CLAIM: &str = "X-Forwarded-For: 8.8.8.8\r\nX-Forwarded-Proto: https\r\n";

/// A request with further field lines.
async fn visit(site: &Site, path: &str, fields: &str) -> ReceivedAnswer {
    let mut client = site.connect_from(VISITOR).await;
    client.send(format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\n{fields}\r\n")).await;
    client.answer().await
}

/// The TCP ports of all processes of workers, without Hostler's own.
async fn tcp_ports(site: &Site) -> Vec<u16> {
    let groups = site.pids().await.into_iter().flat_map(proc::group_of);
    proc::tcp_ports(&groups.collect::<Vec<_>>())
}

/// The app's answer to a visitor with forged forwarding fields. Meanwhile none of its processes listens on TCP.
async fn answer_of(plan: Plan) -> Value {
    let site = plan.option("pools.app.concurrency=1").started().await;
    let answer = visit(&site, "/", CLAIM).await.assert_status(200).json();
    assert_eq!(tcp_ports(&site).await, [0; 0], "a worker listens on TCP");
    site.stop().await;
    answer
}

/// What a framework with `trust proxy: 'loopback'` should see.
fn seen(app: &str) -> Value {
    json!({ "app": app, "ip": "127.0.0.2", "proto": "http", "port": 3000 })
}

#[tokio::test]
async fn express_answers_and_sees_the_clients_address() {
    assert_eq!(answer_of(fixture("express-cjs").runs("node server.cjs")).await, seen("express"));
    assert_eq!(answer_of(fixture("express-esm").runs("node server.mjs")).await, seen("express"));
}

#[tokio::test]
async fn fastify_answers_and_sees_the_clients_address() {
    assert_eq!(answer_of(fixture("fastify-cjs").runs("node server.cjs")).await, seen("fastify"));
    assert_eq!(answer_of(fixture("fastify-esm").runs("node server.mjs")).await, seen("fastify"));
}

#[tokio::test]
async fn koa_hono_and_plain_http_answer() {
    assert_eq!(answer_of(fixture("koa").runs("node server.cjs")).await, seen("koa"));
    let hono = answer_of(fixture("hono").runs("node server.mjs")).await;
    assert_eq!(hono, json!({ "app": "hono", "ip": "127.0.0.1", "port": 3000 }));
    let plain = answer_of(fixture("plain-http").runs("node server.mjs")).await;
    assert_eq!(
        (&plain["ip"], &plain["localPort"], &plain["port"]),
        (&json!("127.0.0.1"), &json!(3000), &json!(3000))
    );
}

#[tokio::test]
async fn a_trusted_proxy_in_front_is_believed() {
    let plan = fixture("express-cjs").runs("node server.cjs").option("server.trusted_proxies=127.0.0.2");
    let site = plan.started().await;
    let answer = visit(&site, "/", CLAIM).await.assert_status(200).json();
    assert_eq!((&answer["ip"], &answer["proto"]), (&json!("8.8.8.8"), &json!("https")));
}

#[tokio::test]
async fn an_app_reaches_itself_at_the_port_that_hostler_has_set() {
    let site = fixture("itself").runs("node server.cjs").started().await;
    for way in ["fetch", "http", "socket"] {
        let answer = site.get(&format!("/?way={way}&url=http://localhost:PORT/own")).await;
        answer.assert_status(200).assert_says("from 127.0.0.1");
    }
    assert_eq!(tcp_ports(&site).await, [0; 0]);
    site.stop().await;
}

#[tokio::test]
async fn an_app_behind_npm_start_answers() {
    let site = fixture("npm-start").runs("npm start").started().await;
    let npm_started = site.pid_of(1).await;
    assert_ne!(
        proc::parent_of(npm_started),
        Some(site.pid()),
        "the worker's pid is that of the app, not of npm"
    );
    assert_eq!(
        visit(&site, "/", "").await.assert_status(200).json(),
        json!({ "app": "pm2", "ip": "127.0.0.1", "port": 3000 })
    );
    assert_eq!(tcp_ports(&site).await, [0; 0]);
    site.stop().await;
}

#[tokio::test]
async fn a_cluster_answers_from_all_its_processes() {
    let site = fixture("cluster").runs("node server.cjs").started().await;
    let mut pids = HashSet::new();
    eventually("both processes of the cluster answer", async || {
        let answer = site.get("/").await.assert_status(200).json();
        assert_eq!((&answer["ip"], &answer["port"]), (&json!("127.0.0.1"), &json!(3000)));
        pids.insert(answer["pid"].as_u64());
        (pids.len() == 2).then_some(())
    })
    .await;
    assert_eq!(tcp_ports(&site).await, [0; 0]);
    site.stop().await;
}

#[tokio::test]
async fn with_its_port_named_an_app_may_open_a_metrics_port_first() {
    let port = held_port();
    let metrics = port.address().port();
    let plan = fixture("metrics-first").runs("node server.mjs").env("METRICS_PORT", &metrics.to_string());
    let site = plan.option("pools.app.port=3000").started().await;
    assert_eq!(visit(&site, "/", "").await.assert_status(200).json()["app"], "metrics-first");
    assert_eq!(tcp_ports(&site).await, [metrics]);
    site.logged(&format!("app/1: the app listens on *:{metrics} directly, not through Hostler, because the pool's port is 3000. Other machines can reach it")).await;
}

#[tokio::test]
async fn an_app_without_the_preload_gets_a_free_port() {
    let plan = fixture("plain-http").runs("node server.mjs env").option("pools.app.bind=port");
    let site = plan.started().await;
    let answer = visit(&site, "/", "").await.assert_status(200).json();
    assert_eq!(tcp_ports(&site).await.as_slice(), [answer["port"].as_u64().unwrap() as u16]);
    site.stop().await;
}

async fn next_answers(command: &str) {
    let site =
        fixture("next").cwd(next_app().clone()).runs(command).env("NODE_ENV", "production").started().await;
    let page = visit(&site, "/", "").await;
    page.assert_status(200).assert_says("Hello from Next.js at ").assert_says("shop.example</h1>");
    let mut route = visit(&site, "/api/who", "").await.assert_status(200).json();
    // Without `-p`, Next takes the PORT that Hostler has set.
    let port = route["port"].take();
    assert!(if command.contains("-p 3000") { port == 3000 } else { port.is_u64() }, "{port}");
    assert_eq!(route, json!({ "app": "next", "ip": "127.0.0.2", "port": null }));
    assert_eq!(tcp_ports(&site).await, [0; 0]);
    site.stop().await;
}

#[tokio::test]
async fn next_answers_through_npx() {
    next_answers("npx next start -p 3000").await;
}

#[tokio::test]
async fn next_answers_through_npm_start() {
    next_answers("npm start").await;
}

#[tokio::test]
async fn next_answers_when_started_from_node_modules() {
    // The app is built five folders below node_modules.
    next_answers("../../../../../node_modules/.bin/next start").await;
}

/// Built by the preload's tests, or else now.
pub(super) fn next_app() -> &'static PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let script = repository().join("packages/worker/test/support/next-app.mjs");
        let output = Command::new("node").arg(script).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().into()
    })
}
