//! A pool that serves short requests first, with real workers: short pages overtake long ones of the same route, and no long one
//! waits for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hostler_testkit::{client, eventually};
use serde_json::Value;
use tokio::task::JoinSet;

use super::site::{Site, source};

const APP: &str = "
    const { existsSync } = require('fs');
    const pages = { '/short': 3, '/long': 300 };
    const go = process.env.TEST_FOLDER + '/go';
    require('http').createServer((request, response) => {
        if (request.url === '/hold') {
            const timer = setInterval(() => existsSync(go) && (clearInterval(timer), response.end('held')), 5);
            return;
        }
        const end = performance.now() + (pages[request.url] ?? 0);
        while (performance.now() < end);
        response.end('page');
    }).listen(process.env.PORT ?? 3000);
";

/// A site that knows the costs of both pages, and how many requests it had for that.
async fn learnt(max_delay: &str) -> (Site, usize) {
    let site = source(APP)
        .workers(2)
        .option("pools.app.concurrency=1")
        .option("pools.app.queue.order=short_first")
        .option(&format!("pools.app.queue.max_delay={max_delay}"))
        .started()
        .await;
    let mut requests = 0;
    let knows = async || {
        requests += 2;
        // As many of both, because a busy machine makes some short pages slow.
        site.get("/short").await.assert_status(200);
        site.get("/long").await.assert_status(200);
        let status = site.status().await;
        let expected = status["pools"][0]["order"]["expected"].as_array()?.clone();
        let of = |shape: &str| expected.iter().find(|one| one["shape"] == shape)?["expected_ms"].as_f64();
        let (short, long) = (of("GET /short")?, of("GET /long")?);
        (short < 100.0 && long > 200.0).then_some(())
    };
    eventually("costs by path", knows).await;
    (site, requests)
}

#[tokio::test]
async fn short_pages_overtake_long_ones_and_the_log_says_what_was_expected() {
    let (site, before) = learnt("20s").await;
    // The log is written after the answer.
    site.exchanges(before).await;
    let mut asked = Vec::new();
    for (path, in_use, waiting) in
        [("/hold", 1, 0), ("/hold", 2, 0), ("/long", 2, 1), ("/long", 2, 2), ("/long", 2, 3)]
    {
        asked.push(site.ask(path));
        site.settles_at(in_use, waiting).await;
    }
    asked.extend((0..10).map(|_| site.ask("/short")));
    site.settles_at(2, 13).await;
    site.touch("go");
    for answer in asked {
        answer.await.unwrap().assert_status(200);
    }
    let lines: Vec<Value> = site.exchanges(before + 15).await;
    let burst: Vec<_> = lines[before..].iter().filter(|line| line["target"] != "/hold").collect();
    let order: Vec<_> = burst.iter().map(|line| line["target"].as_str().unwrap()).collect();
    assert_eq!(order, [["/short"; 10].as_slice(), &["/long"; 3]].concat());
    for line in burst {
        let expected = line["expected_ms"].as_f64().unwrap();
        assert_eq!(line["target"] == "/long", expected > 100.0, "{line}");
    }
    site.stop().await;
}

#[tokio::test]
async fn a_long_page_is_served_beside_a_flood_of_short_ones() {
    let (site, _) = learnt("300ms").await;
    let is_over = Arc::new(AtomicBool::new(false));
    let mut flood = JoinSet::new();
    let address = site.address();
    for _ in 0..12 {
        let is_over = is_over.clone();
        flood.spawn(async move {
            let mut client = client(address).await;
            while !is_over.load(Ordering::Relaxed) {
                client.send("GET /short HTTP/1.1\r\nHost: a\r\n\r\n").await;
                client.answer().await.assert_status(200);
            }
        });
    }
    let waits = async || {
        let status = site.status().await;
        (status["pools"][0]["queue_length"].as_u64() > Some(3)).then_some(())
    };
    eventually("a queue of short pages", waits).await;
    // It ends although the flood does not.
    site.get("/long").await.assert_status(200);
    is_over.store(true, Ordering::Relaxed);
    flood.join_all().await;
    site.stop().await;
}
