//! Routes that register themselves over a real NATS server: served at once, gone when silent, kept while NATS is away.

use std::time::Duration;

use async_nats::Client;
use futures_util::StreamExt;
use hostler_testkit::{Answer, Nats, Site, Upstream, eventually, nats, ok, upstream};
use serde_json::{Value, json};

use crate::site;

/// A site that takes registrations.
async fn site_on(nats: &Nats, config: &str) -> Site {
    let url = nats.url();
    let site = site(&format!("[registrar]\nnats = \"{url}\"\nstart_delay = \"0s\"\n{config}")).start().await;
    eventually("the registrar to be connected", async || {
        (site.status().await["registrar"]["connected"] == true).then_some(())
    })
    .await;
    site
}

/// Somebody at the NATS server who can speak and hear.
async fn client(nats: &Nats) -> Client {
    async_nats::connect(nats.url()).await.unwrap()
}

async fn say(client: &Client, subject: &'static str, message: &Value) {
    client.publish(subject, message.to_string().into()).await.unwrap();
    client.flush().await.unwrap();
}

/// A registration of an upstream for URIs.
fn registration(upstream: &Upstream, uris: &[&str]) -> Value {
    let (host, port) = upstream.address().rsplit_once(':').unwrap();
    json!({ "host": host, "port": port.parse::<u16>().unwrap(), "uris": uris })
}

async fn get(site: &Site, host: &str, path: &str) -> Answer {
    site.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")).await
}

async fn answers(site: &Site, host: &str, path: &str, expected: &str) {
    eventually(&format!("{host}{path} to answer {expected:?}"), async || {
        let answer = get(site, host, path).await;
        (answer.status == 200 && answer.body == expected.as_bytes()).then_some(())
    })
    .await;
}

async fn refuses(site: &Site, host: &str, path: &str, status: u16) {
    eventually(&format!("{host}{path} to be refused with {status}"), async || {
        (get(site, host, path).await.status == status).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_route_is_served_from_its_registration_on() {
    let Some(nats) = nats().start().await else { return };
    let app = upstream().script(|seen| ok(seen.target())).start().await;
    let site = site_on(&nats, "").await;
    let client = client(&nats).await;
    get(&site, "app.example.test", "/x").await.assert_refused(404, "no_route");
    let uris = ["App.example.test", "*.wild.example.test", "path.example.test/api"];
    say(&client, "router.register", &registration(&app, &uris)).await;
    answers(&site, "app.example.test:8080", "/x", "/x").await;
    answers(&site, "a.b.wild.example.test", "/", "/").await;
    answers(&site, "path.example.test", "/api/1", "/api/1").await;
    get(&site, "path.example.test", "/apix").await.assert_refused(404, "no_route");
    get(&site, "wild.example.test", "/").await.assert_refused(404, "no_route");
}
