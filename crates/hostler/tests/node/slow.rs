//! Slow clients, and a single worker that does not wait for them.

use std::pin::pin;
use std::time::Duration;

use hostler_testkit::{Client, client_with_window, eventually};
use serde_json::Value;
use tokio::time::interval;

use super::site::{Site, app};

/// Much longer than the app needs on a busy machine, and much shorter than the slow clients take.
const QUICK_MS: f64 = 1000.0;
const SECONDS: usize = 4;

/// 1 KiB a second.
async fn send_slowly(client: &mut Client, bytes: &[u8]) {
    let mut seconds = interval(Duration::from_secs(1));
    for piece in bytes.chunks(1024) {
        seconds.tick().await;
        client.send(piece).await;
    }
}

/// 1 KiB a second as long as `others` take, and some seconds at least.
async fn read_slowly(client: &mut Client, others: impl Future<Output = ()>) -> String {
    let mut seconds = interval(Duration::from_secs(1));
    let mut read = Vec::new();
    let mut others = pin!(others);
    let mut others_go_on = true;
    for n in 0.. {
        tokio::select! {
            () = &mut others, if others_go_on => others_go_on = false,
            _ = seconds.tick() => read.extend(client.read_exactly(1024).await),
        }
        if n >= SECONDS && !others_go_on {
            break;
        }
    }
    String::from_utf8(read).unwrap()
}

async fn one_worker() -> Site {
    app("diary.cjs").option("pools.app.concurrency=1").started().await
}

/// Another client is served by the only worker without waiting.
async fn serves_others(site: &Site) {
    site.get("/other").await.assert_status(200);
    let line = site.access("/other").await;
    assert!(line["queue_wait_ms"].as_f64().unwrap() < QUICK_MS, "{line}");
}

fn assert_short_hold(line: &Value) {
    let (total, hold) = (line["total_ms"].as_f64().unwrap(), line["slot_hold_ms"].as_f64().unwrap());
    assert!(total > (SECONDS as f64 - 1.5) * 1000.0, "it was to be slow: {line}");
    assert!(hold < total * 0.7, "it held the slot: {line}");
}

#[tokio::test]
async fn a_slow_upload_holds_no_slot() {
    let site = one_worker().await;
    let size = SECONDS * 1024;
    let mut client = site.connect().await;
    client.send(format!("POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n")).await;
    let body = vec![b'x'; size];
    let others = async {
        serves_others(&site).await;
        site.settles_at(0, 0).await;
        assert!(site.diary().iter().all(|entry| entry["url"] != "/slow"), "the body is still on its way");
    };
    tokio::join!(send_slowly(&mut client, &body), others);

    let answer = client.read_until(&format!("\"received\":{size}")).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_short_hold(&site.access("/slow").await);
}

/// Returns the access line of a download that is slow at first.
async fn downloads_slowly(site: &Site, size: usize, check: impl FnOnce(&str)) -> Value {
    let target = format!("/slow?size={size}");
    let mut client = client_with_window(4096, site.address()).await;
    client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")).await;
    let others = async {
        let is_asked = async || site.diary().iter().any(|entry| entry["url"] == target).then_some(());
        eventually("the app to be asked", is_asked).await;
        site.settles_at(0, 0).await;
        serves_others(site).await;
        check(&target);
    };
    let mut got = read_slowly(&mut client, others).await;

    got.push_str(&client.rest().await.0);
    let body = got.split('\n').next_back().unwrap();
    assert!(body.len() == size && body.bytes().all(|byte| byte == b'x'), "{} bytes", body.len());
    site.access(&target).await
}

#[tokio::test]
async fn a_slow_download_holds_no_slot_once_it_is_rendered() {
    let site = one_worker().await;
    downloads_slowly(&site, 1000 << 10, |_| ()).await;
}

/// For a client that does not read, the kernel's buffer hides our own, so this answer is larger.
#[tokio::test]
async fn an_answer_that_fits_into_its_buffer_waits_there_for_its_client() {
    let plan = app("diary.cjs").option("server.answer_buffer=32 MiB").option("pools.app.concurrency=1");
    let site = plan.started().await;
    let is_going_on = |target: &str| {
        assert!(site.log().iter().all(|line| line["target"] != target), "the download is still going on");
    };
    assert_short_hold(&downloads_slowly(&site, 24 << 20, is_going_on).await);
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_disconnected_and_its_worker_goes_on() {
    // More than the answer's buffer and the kernel's buffer together.
    let plan = app("diary.cjs").option("server.send_timeout=2s").option("server.answer_buffer=64 KiB");
    let site = plan.option("pools.app.concurrency=1").started().await;
    let target = format!("/slow?size={}", 32 << 20);
    let mut client = client_with_window(4096, site.address()).await;
    client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    let line = site.access(&target).await;
    assert_eq!(line["aborted"], "client stalled", "{line}");
    site.get("/other").await.assert_status(200);
    site.settles_at(0, 0).await;
}
