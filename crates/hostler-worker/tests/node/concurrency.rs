//! Slots that follow from what the event loops of real workers report.

use hostler_dispatch::Claim;
use hostler_worker::{Bind, Slots};
use tokio::task::JoinSet;

use super::support::*;

/// Clients that ask again and again, so that somebody always waits for a slot.
fn clients(crew: &Crew, count: usize) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    for _ in 0..count {
        let pool = crew.pool.clone();
        clients.spawn(async move {
            while let Ok(lease) = pool.acquire(Claim::default()).await {
                get(&lease, "/").await.unwrap();
            }
        });
    }
    clients
}

fn slots(crew: &Crew) -> usize {
    crew.pool.snapshot().members[0].figures.slots
}

#[tokio::test]
async fn an_app_that_waits_gets_as_many_slots_as_there_may_be() {
    let app =
        "require('http').createServer((req, res) => setTimeout(() => res.end('ok'), 500)).listen(3000);";
    let crew = crew(app).with(|settings| settings.slots = Slots::Auto).started().await;
    assert_eq!(slots(&crew), 1);
    let _clients = clients(&crew, 90);
    eventually("all slots", || slots(&crew) == 64).await;
    let worker = crew.worker();
    assert!(worker.utilisation.is_some(), "{worker:?}");
    let reason = worker.slots_reason.unwrap();
    assert!(reason.starts_with("event loop ") && reason.ends_with(" requests: 64 slots"), "{reason}");
    crew.stop().await;
}

#[tokio::test]
async fn an_app_that_works_all_the_time_is_given_no_more_than_it_can_do() {
    let app = "require('http').createServer((req, res) => {
        const end = performance.now() + 100;
        while (performance.now() < end);
        res.end('ok');
    }).listen(3000);";
    let crew = crew(app).with(|settings| settings.slots = Slots::Auto).started().await;
    let _clients = clients(&crew, 8);
    eventually("many requests", || {
        // Two, where somebody else takes the processor from those who bring the requests.
        assert!(slots(&crew) <= 2, "{:?}", crew.worker().slots_reason);
        crew.pool.snapshot().counters.granted > 50
    })
    .await;
    let reason = crew.worker().slots_reason.unwrap();
    assert!(reason.starts_with("event loop "), "{reason}");
    crew.stop().await;
}

#[tokio::test]
async fn an_app_that_cannot_be_asked_stays_at_one_and_the_reason_says_why() {
    let app = "require('http').createServer((req, res) => res.end('ok')).listen(process.env.PORT);";
    let crew = crew(app)
        .with(|settings| (settings.slots, settings.bind) = (Slots::Auto, Bind::Port))
        .started()
        .await;
    assert_eq!(
        crew.worker().slots_reason.unwrap(),
        "with bind = \"port\" its event loop cannot be asked: 1 slot"
    );
    assert_eq!(slots(&crew), 1);
    crew.stop().await;
}

#[tokio::test]
async fn slots_that_somebody_has_set_need_no_reason() {
    let crew = crew(PLAIN).started().await;
    assert_eq!(crew.worker().slots_reason, None);
    crew.stop().await;
}
