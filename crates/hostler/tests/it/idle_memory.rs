//! Idle connections: they give back the memory of their last request, serve the next one all the same, and leave none when they close.

use hostler_testkit::{Client, Site, authority, eventually, tls_clients, upstream};

use crate::tls::{ONE, started};

const PLAIN: usize = 400;
const SECURE: usize = 20;
const MIB: u64 = 1 << 20;

/// The resident memory of the program in bytes.
async fn memory(site: &Site) -> u64 {
    site.status().await["memory"].as_u64().unwrap()
}

/// A request whose head a connection holds: 400 of them, with their copies and the rest of their state, need more than 4 MiB.
fn long_request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a.test\r\nCookie: {}\r\n\r\n", "abcdefgh".repeat(430))
}

async fn with_one_request_each(site: &Site, trust: &hostler_testkit::Authority) -> Vec<Client> {
    let (mut clients, tls) = (Vec::new(), tls_clients(trust));
    for n in 0..PLAIN + SECURE {
        let mut client = match n < PLAIN {
            true => site.connect().await,
            false => tls.connect("a.test", site.tls_address()).await,
        };
        client.send(long_request("/first")).await;
        client.answer().await.assert_ok("ok");
        clients.push(client);
    }
    clients
}

#[tokio::test]
async fn an_idle_connection_gives_its_memory_back_and_serves_its_next_requests() {
    let (trust, app) = (authority(), upstream().start().await);
    let site = started(&trust, ONE, &app).await;
    drop(with_one_request_each(&site, &trust).await);
    eventually("no connection", async || (site.status().await["connections"]["open"] == 0).then_some(()))
        .await;
    let before = memory(&site).await;
    let mut clients = with_one_request_each(&site, &trust).await;
    eventually("memory to be given back", async || (memory(&site).await < before + 2 * MIB).then_some(()))
        .await;
    for (n, client) in clients.iter_mut().enumerate() {
        let requests = [long_request("/second"), long_request("/third")].concat();
        // Every second client sends an empty line first, and the first head in two pieces.
        let (one, other) = requests.split_at(if n % 2 == 0 { requests.len() } else { 9 });
        if n % 2 == 1 {
            client.send("\r\n").await;
        }
        client.send(one).await;
        client.send(other).await;
        client.answer().await.assert_ok("ok");
        client.answer().await.assert_ok("ok");
    }
    drop(clients);
    eventually("memory as before", async || (memory(&site).await < before + MIB).then_some(())).await;
}
