//! A client whose every request has a new URL and hangs or kills its worker: the other clients are served all the same.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hostler_testkit::{client, client_from, request};
use serde_json::Value;
use tokio::time::{MissedTickBehavior, interval};

use super::site::app;

/// How many of a hundred requests of other clients must be answered.
const TARGET: usize = 95;
/// How many workers the attacker may end before its path is kept off: three deaths are needed, and one more request may be on its way.
const MOST_LOST: usize = 4;

/// The attacker's request.
#[derive(Clone, Copy)]
struct Attack {
    requests: usize,
    method: &'static str,
    path: &'static str,
}

/// Sends one request after the other from its own address, each as soon as the last is answered.
async fn attack(address: SocketAddr, attack: Attack) -> Vec<u16> {
    let Attack { requests, method, path } = attack;
    let mut answers = Vec::new();
    for number in 0..requests {
        let mut attacker = client_from("127.0.0.2".parse().unwrap(), address).await;
        attacker.send(request(&format!("{method} {path}k={number}"), "", b"")).await;
        answers.push(attacker.answer().await.status);
    }
    answers
}

/// Sends five requests a second until it is stopped.
async fn others(address: SocketAddr, over: Arc<AtomicBool>) -> Vec<u16> {
    let mut pace = interval(Duration::from_millis(200));
    pace.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut asked = Vec::new();
    while !over.load(Ordering::Relaxed) {
        pace.tick().await;
        let path = format!("/page?n={}", asked.len());
        asked.push(tokio::spawn(async move { client(address).await.get(&path).await.status }));
    }
    let mut answers = Vec::new();
    for answer in asked {
        answers.push(answer.await.unwrap());
    }
    answers
}

async fn others_are_served_beside(time_limit: &str, what: Attack) {
    let plan = app("diary.cjs").workers(2).option("pools.app.queue.timeout=20s");
    let plan = plan.option(&format!("pools.app.request_timeout={time_limit}"));
    let site = plan.option(&format!("pools.app.hang_timeout={time_limit}")).started().await;
    let over = Arc::new(AtomicBool::new(false));
    let asking = tokio::spawn(others(site.address(), over.clone()));
    let attacked = attack(site.address(), what).await;
    over.store(true, Ordering::Relaxed);
    let answers = asking.await.unwrap();
    let good = answers.iter().filter(|status| **status == 200).count();
    let diary = site.diary();
    let is_attack = |entry: &&Value| entry["url"].as_str().is_some_and(|url| url.starts_with(what.path));
    let lost = diary.iter().filter(is_attack).count();
    println!(
        "{good} of {} others were answered beside {attacked:?}, which took {lost} workers",
        answers.len()
    );
    assert!(lost <= MOST_LOST, "{lost} workers were lost: {attacked:?}");
    assert!(good * 100 >= answers.len() * TARGET, "{good} of {}: {answers:?}", answers.len());
    site.stop().await;
}

#[tokio::test]
async fn a_client_with_many_different_hanging_urls_leaves_others_served() {
    let what = Attack { requests: 6, method: "GET", path: "/spin?until=never&" };
    others_are_served_beside("8s", what).await;
}

#[tokio::test]
async fn a_client_with_many_different_crashing_posts_leaves_others_served() {
    others_are_served_beside("20s", Attack { requests: 25, method: "POST", path: "/exit?" }).await;
}

#[tokio::test]
async fn a_client_with_many_different_crashing_gets_leaves_others_served() {
    others_are_served_beside("20s", Attack { requests: 25, method: "GET", path: "/exit?" }).await;
}
