//! A pool with fair queues and real workers: crawlers that ask for everything, and people beside them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hostler_testkit::{client, eventually};
use tokio::task::JoinSet;

use super::site::{Site, app};

/// A crawler from many addresses of one network.
const CRAWLER: &str = "User-Agent: Mozilla/5.0 (compatible; ExampleBot/1.0)\r\n";

async fn keys(site: &Site) -> Vec<(String, f64)> {
    let status = site.status().await;
    let keys = status["pools"][0]["fair"]["keys"].as_array().unwrap().clone();
    keys.iter()
        .map(|key| (key["key"].as_str().unwrap().into(), key["share_percent"].as_f64().unwrap()))
        .collect()
}

#[tokio::test]
async fn people_are_served_beside_a_crawler_and_the_status_names_it() {
    let site = app("memory.cjs")
        .workers(2)
        .option("pools.app.concurrency=1")
        .option("pools.app.queue.limit=20")
        .option("pools.app.queue.fair=[\"crawler\", \"client\"]")
        .option("server.trusted_proxies=127.0.0.1")
        .started()
        .await;
    let is_over = Arc::new(AtomicBool::new(false));
    let mut crawlers = JoinSet::new();
    let address = site.address();
    for number in 0..48 {
        let is_over = is_over.clone();
        crawlers.spawn(async move {
            let mut refused = 0;
            let mut client = client(address).await;
            while !is_over.load(Ordering::Relaxed) {
                let from = format!("X-Forwarded-For: 198.51.{number}.7\r\n");
                client.send(format!("GET /spin?ms=20 HTTP/1.1\r\nHost: a\r\n{CRAWLER}{from}\r\n")).await;
                refused += usize::from(client.answer().await.status != 200);
            }
            refused
        });
    }
    let is_full = async || {
        (site.status().await["pools"][0]["counters"]["refused_full"].as_u64() > Some(0)).then_some(())
    };
    eventually("a full queue", is_full).await;
    for person in 0..20 {
        let request =
            format!("GET /spin?ms=5 HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.{person}.9\r\n\r\n");
        site.send(&request).await.assert_status(200);
    }
    let seen = keys(&site).await;
    assert!(seen[0].0 == "crawler ExampleBot" && seen[0].1 > 50.0, "{seen:?}");
    assert!(seen.iter().any(|(key, _)| key.starts_with("client 203.0.")), "{seen:?}");
    for key in ["crawler ExampleBot", "client 203.0.7.0/24"] {
        let is_logged = async || site.access_lines().iter().any(|line| line["fair_key"] == key).then_some(());
        eventually(format!("{key} in the log"), is_logged).await;
    }
    is_over.store(true, Ordering::Relaxed);
    let refused: usize = crawlers.join_all().await.into_iter().sum();
    assert!(refused > 0, "the crawler is refused what is too much");
    site.stop().await;
}
