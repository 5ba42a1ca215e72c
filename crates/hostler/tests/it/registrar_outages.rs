//! NATS is away, hangs or rejects Hostler: registered routes stay, and the log says why.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use hostler_testkit::{Site, eventually, nats, upstream};
use rustix::process::Signal;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::Instant;

use crate::registrar::{answers, client, get, lists, registration, say, site_on};
use crate::{signal, site};

/// The status of the answer to the health check of a balancer.
async fn health(site: &Site) -> u16 {
    site.send("GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: HTTP-Monitor/1.1\r\n\r\n").await.status
}

#[tokio::test]
async fn a_nats_server_that_hangs_removes_no_route() {
    let Some(nats) = nats().start().await else { return };
    let app = upstream().start().await;
    let config = "register_interval = \"1s\"\nstale_threshold = \"9s\"\nprune_interval = \"50ms\"";
    let site = site_on(&nats, config).await;
    let client = client(&nats).await;
    say(&client, "router.register", &registration(&app, &["a.test"])).await;
    answers(&site, "a.test", "/", "ok").await;
    signal(nats.pid(), Signal::STOP);
    eventually("the outage to be noticed", async || {
        let registrar = &site.status().await["registrar"];
        assert_eq!(registrar["pruned"], 0, "{registrar}");
        (registrar["pruning_suspended"] == true).then_some(())
    })
    .await;
    answers(&site, "a.test", "/", "ok").await;
}

#[tokio::test]
async fn a_member_with_tls_that_fails_while_nats_is_away_stays_until_nats_is_back() {
    let Some(mut nats) = nats().start().await else { return };
    // The port is taken, and nothing listens there.
    let refusing = TcpSocket::new_v4().unwrap();
    refusing.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let port = refusing.local_addr().unwrap().port();
    let site = site_on(&nats, "queue = { timeout = \"200ms\" }").await;
    let member = json!({ "host": "127.0.0.1", "tls_port": port, "uris": ["a.test"] });
    say(&client(&nats).await, "router.register", &member).await;
    lists(&site, "the member", |routes| routes["a.test"][0].is_object()).await;
    let is_connected = async || site.status().await["registrar"]["connected"] == true;
    nats.stop();
    eventually("the outage to be noticed", async || (!is_connected().await).then_some(())).await;
    for _ in 0..3 {
        get(&site, "a.test", "/").await.assert_status(502);
    }
    nats.start_again().await;
    eventually("NATS to be back", async || is_connected().await.then_some(())).await;
    // Now its client can register it again.
    eventually("it to leave", async || (get(&site, "a.test", "/").await.status == 503).then_some(())).await;
}

#[tokio::test]
async fn the_log_says_why_there_is_no_connection_again() {
    let password = |password: &str| format!("authorization {{ user: edge, password: {password} }}");
    let plan = nats().config(&password("first"));
    let file = plan.folder().join("nats.conf");
    let Some(mut nats) = plan.start().await else { return };
    let login = "user = \"edge\"\npassword = \"first\"";
    let site =
        site(&format!("[registrar]\nnats = \"{}\"\nstart_delay = \"0s\"\n{login}", nats.url())).start().await;
    site.says("nats: connected").await;
    nats.stop();
    std::fs::write(file, password("second")).unwrap();
    nats.start_again().await;
    site.says(": authorization violation; trying again").await;
}

#[tokio::test]
async fn a_router_that_has_not_reached_nats_is_not_ready_without_routes_of_its_own() {
    let Some(mut nats) = nats().start().await else { return };
    nats.stop();
    let app = upstream().start().await;
    let registrar = format!("[registrar]\nnats = \"{}\"\nstart_delay = \"0s\"\n", nats.url());
    let routes = format!(
        "routes = [{{ match = \"*\", pool = \"app\" }}]\npools.app.members = [\"{}\"]\n",
        app.address()
    );
    let (alone, beside) =
        (site(&registrar).start().await, site(&format!("{routes}{registrar}")).start().await);
    assert_eq!((health(&alone).await, health(&beside).await), (503, 200));
    let why = &alone.status().await["health"]["why"];
    assert_eq!(*why, json!(["starting: no program could register a route yet"]));
    nats.start_again().await;
    eventually("it to be ready", async || (health(&alone).await == 200).then_some(())).await;
}

#[tokio::test]
async fn programs_have_the_whole_start_delay_to_register_although_nats_comes_during_the_start() {
    let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("nats://{}", server.local_addr().unwrap());
    let nats = tokio::spawn(async move {
        let mut first = None;
        loop {
            let (mut client, _) = server.accept().await.unwrap();
            // The start waits for NATS for five seconds. Until then, each connection is closed at once.
            if first.get_or_insert_with(Instant::now).elapsed() < Duration::from_secs(6) {
                continue;
            }
            let reached = Instant::now();
            client.write_all(b"INFO {}\r\nPONG\r\n").await.unwrap();
            return (reached, client);
        }
    });
    let site = site(&format!("[registrar]\nnats = \"{url}\"\nstart_delay = \"4s\"\n")).start().await;
    eventually("it to be ready", async || (health(&site).await == 200).then_some(())).await;
    let (reached, _connection) = nats.await.unwrap();
    assert!(reached.elapsed() >= Duration::from_secs(4), "{:?}", reached.elapsed());
}
