//! Slots computed from the event loops of real workers.

use hostler_dispatch::Claim;
use hostler_worker::{Bind, Slots};
use tokio::task::JoinSet;

use super::support::*;

/// Clients that send requests without pause, so that a request always waits for a slot.
fn clients(test_pool: &TestPool, count: usize) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    for _ in 0..count {
        let pool = test_pool.pool.clone();
        clients.spawn(async move {
            while let Ok(lease) = pool.acquire(Claim::default()).await {
                get(&lease, "/").await.unwrap();
            }
        });
    }
    clients
}

fn slots(test_pool: &TestPool) -> usize {
    test_pool.pool.snapshot().members[0].figures.slots
}

#[tokio::test]
async fn a_waiting_app_gets_the_maximum_of_slots() {
    let app =
        "require('http').createServer((req, res) => setTimeout(() => res.end('ok'), 500)).listen(3000);";
    let test_pool = test_pool(app).with(|settings| settings.slots = Slots::Auto).started().await;
    assert_eq!(slots(&test_pool), 1);
    let _clients = clients(&test_pool, 90);
    eventually("all slots", || slots(&test_pool) == 64).await;
    let worker = test_pool.worker();
    assert!(worker.utilisation.is_some(), "{worker:?}");
    let reason = worker.slots_reason.unwrap();
    assert!(reason.starts_with("event loop ") && reason.ends_with(" requests: 64 slots"), "{reason}");
    test_pool.stop().await;
}

#[tokio::test]
async fn a_busy_app_gets_no_more_slots_than_it_can_use() {
    let app = "require('http').createServer((req, res) => {
        const end = performance.now() + 100;
        while (performance.now() < end);
        res.end('ok');
    }).listen(3000);";
    let test_pool = test_pool(app).with(|settings| settings.slots = Slots::Auto).started().await;
    let _clients = clients(&test_pool, 8);
    eventually("many requests", || {
        // Two slots if other processes take the CPU from the clients.
        assert!(slots(&test_pool) <= 2, "{:?}", test_pool.worker().slots_reason);
        test_pool.pool.snapshot().counters.granted > 50
    })
    .await;
    let reason = test_pool.worker().slots_reason.unwrap();
    assert!(reason.starts_with("event loop "), "{reason}");
    test_pool.stop().await;
}

#[tokio::test]
async fn an_app_without_a_control_channel_stays_at_one_slot_with_the_reason() {
    let app = "require('http').createServer((req, res) => res.end('ok')).listen(process.env.PORT);";
    let test_pool = test_pool(app)
        .with(|settings| (settings.slots, settings.bind) = (Slots::Auto, Bind::Port))
        .started()
        .await;
    assert_eq!(
        test_pool.worker().slots_reason.unwrap(),
        "with bind = \"port\" its event loop cannot be measured: 1 slot"
    );
    assert_eq!(slots(&test_pool), 1);
    test_pool.stop().await;
}

#[tokio::test]
async fn configured_slots_have_no_reason() {
    let test_pool = test_pool(PLAIN).started().await;
    assert_eq!(test_pool.worker().slots_reason, None);
    test_pool.stop().await;
}
