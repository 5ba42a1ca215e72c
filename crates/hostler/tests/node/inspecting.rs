//! `hostler run --inspect`, seen by a debugger: one worker has the inspector, its successor gets it, and a stopped worker is not killed.

use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use hostler_testkit::{client, eventually, held_port};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

use super::proc;
use super::site::source;

const APP: &str = "require('http').createServer((req, res) => res.end(`pid ${process.pid}`)).listen(3000);";

/// A debugger, connected to the only target of the inspector on this port.
struct Debugger(WebSocketStream<TcpStream>);

impl Debugger {
    async fn connect(port: u16) -> Self {
        let at = SocketAddr::from(([127, 0, 0, 1], port));
        let url = eventually("the inspector to open", async || {
            let mut stream = TcpStream::connect(at).await.ok()?;
            stream
                .write_all(format!("GET /json/list HTTP/1.1\r\nHost: {at}\r\n\r\n").as_bytes())
                .await
                .ok()?;
            let mut text = String::new();
            // Node keeps the connection open.
            loop {
                if let Some((_, rest)) = text.split_once("\"webSocketDebuggerUrl\": \"")
                    && let Some((url, _)) = rest.split_once('"')
                {
                    return Some(url.to_owned());
                }
                let mut bytes = [0; 4096];
                let read = stream.read(&mut bytes).await.ok().filter(|&read| read > 0)?;
                text.push_str(&String::from_utf8_lossy(&bytes[..read]));
            }
        })
        .await;
        Self(client_async(url, TcpStream::connect(at).await.unwrap()).await.unwrap().0)
    }

    async fn order(&mut self, method: &str, parameters: Value) {
        let order = json!({ "id": 1, "method": method, "params": parameters });
        self.0.send(Message::text(order.to_string())).await.unwrap();
    }

    /// The first message that fits.
    async fn hears(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        while let Some(Ok(message)) = self.0.next().await {
            let said = serde_json::from_str(message.to_text().unwrap()).unwrap_or_default();
            if fits(&said) {
                return said;
            }
        }
        panic!("the inspector closed the connection before {what}");
    }

    async fn pid(&mut self) -> u64 {
        self.order("Runtime.evaluate", json!({ "expression": "process.pid" })).await;
        let said = self.hears("it evaluates", |said| said["id"] == 1).await;
        said["result"]["result"]["value"].as_u64().unwrap()
    }

    /// Stops the worker at its next statement.
    async fn pause(&mut self) {
        self.order("Debugger.enable", json!({})).await;
        self.hears("it is enabled", |said| said["id"] == 1).await;
        self.order("Debugger.pause", json!({})).await;
    }

    async fn is_paused(&mut self) {
        self.hears("it stops", |said| said["method"] == "Debugger.paused").await;
    }
}

#[tokio::test]
async fn one_worker_opens_the_inspector_and_its_successor_gets_it() {
    let held = held_port();
    let port = held.address().port();
    let site = source(APP).flag(&format!("--inspect={port}")).workers(2).started().await;
    site.logged(&format!("app/1: opens the inspector on 127.0.0.1:{port}")).await;
    let before = site.pids().await;
    let mut debugger = Debugger::connect(port).await;
    assert_eq!(debugger.pid().await, u64::from(before[0]));
    assert_eq!(proc::tcp_ports(&before), [port], "only one worker opens a port");
    drop(debugger);
    site.command(&["restart"]).await.assert_exit(0);
    let after = site.pids().await;
    assert_ne!(before[0], after[0]);
    assert_eq!(Debugger::connect(port).await.pid().await, u64::from(after[0]));
    // A worker that dies gives it to the one that boots in its place.
    proc::kill(after[0]);
    let last = eventually("another worker with the inspector", async || {
        let pid = Debugger::connect(port).await.pid().await;
        (pid != u64::from(after[0])).then_some(pid)
    })
    .await;
    site.is_ready().await;
    assert_eq!(last, u64::from(site.pid_of(1).await));
    site.stop().await;
}

#[tokio::test]
async fn a_worker_that_a_debugger_has_stopped_answers_when_it_goes_on_and_a_change_replaces_it() {
    let held = held_port();
    let port = held.address().port();
    let site = source(APP).flag(&format!("--inspect=127.0.0.1:{port}")).flag("--watch").started().await;
    let pid = site.pid_of(1).await;
    let mut debugger = Debugger::connect(port).await;
    debugger.pause().await;
    let stopped = site.ask("/");
    debugger.is_paused().await;
    site.settles_at(1, 0).await;
    debugger.order("Debugger.resume", json!({})).await;
    assert_eq!(stopped.await.unwrap().assert_status(200).text(), format!("pid {pid}"));

    debugger.pause().await;
    let _stopped = site.ask("/");
    debugger.is_paused().await;
    std::fs::write(site.file("app.cjs"), APP.replace("`pid ", "`new ")).unwrap();
    eventually("the new code", async || {
        let answer = client(site.address()).await.get("/").await;
        answer.text().contains("new").then_some(())
    })
    .await;
    site.logged(&format!("stopped (pid {pid})")).await;
    assert_eq!(Debugger::connect(port).await.pid().await, u64::from(site.pid_of(1).await));
    site.stop().await;
}

#[tokio::test]
async fn an_app_without_the_preload_has_no_inspector() {
    let app = "require('http').createServer((req, res) => res.end('ok')).listen(process.env.PORT);";
    let site = source(app).flag("--inspect=0").option("pools.app.bind=port").started().await;
    site.logged("the inspector does not open: only a Node app with bind = \"socket\" can open it").await;
    site.get("/").await.assert_status(200);
    site.stop().await;
}
