//! Pools that grow, shrink, sleep and wake up.

use std::sync::Arc;
use std::time::Duration;

use hostler_dispatch::Claim;
use hostler_worker::{Slots, WorkerState};
use tokio::time::{Instant, timeout};

use super::support::*;

/// Sleeps at once. Looks are four times a second.
const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(3600);

fn sleeper(app: &str) -> Plan {
    test_pool(app).with(|settings| {
        (settings.count, settings.least, settings.shrink_after) = (4, Some(0), SHORT);
    })
}

/// The time between two looks at a pool.
const LOOK: Duration = Duration::from_millis(250);

/// Lets time pass in which the pool may fall asleep, or must not.
async fn pass(time: Duration) {
    let _ = timeout(time, std::future::pending::<()>()).await;
}

async fn sleeps(test_pool: &TestPool) {
    eventually("the pool sleeps and no process is left", || {
        test_pool.pool.is_asleep() && test_pool.workers.snapshot().is_empty()
    })
    .await;
}

fn woken(test_pool: &TestPool) -> u64 {
    test_pool.workers.scaling().unwrap().woken
}

#[tokio::test]
async fn a_sleeping_pool_wakes_up_once_for_several_requests_and_sleeps_again() {
    let test_pool = sleeper(PLAIN).with(|settings| settings.shrink_after = LONG).start();
    assert!(test_pool.pool.is_asleep());
    assert_eq!(test_pool.workers.snapshot().len(), 0, "no worker is booted at the start");
    // All four wait for the same worker.
    let (a, b, c, d) =
        tokio::join!(test_pool.get("/"), test_pool.get("/"), test_pool.get("/"), test_pool.get("/"));
    assert!([&b, &c, &d].into_iter().all(|pid| *pid == a), "{a} {b} {c} {d}");
    eventually("it is awake", || !test_pool.pool.is_asleep()).await;
    assert_eq!((woken(&test_pool), test_pool.workers.snapshot().len()), (1, 1));
    test_pool.assert_logged("web 0: 1 worker is wanted: a request waits, and the pool is asleep");

    let settings = hostler_worker::WorkerSettings { shrink_after: SHORT, ..test_pool.settings.clone() };
    test_pool.workers.update(settings);
    sleeps(&test_pool).await;
    test_pool.assert_logged("web 0: falls asleep: no request for ");
    assert!(!is_alive(a.parse().unwrap()));
    assert_ne!(test_pool.get("/").await, a);
    assert_eq!(woken(&test_pool), 2);
    test_pool.stop().await;
}

#[tokio::test]
async fn no_request_is_lost_while_a_pool_falls_asleep_and_wakes_up_again_and_again() {
    // It looks at its requests a quarter of a second after the last one: many come when the worker leaves.
    let test_pool = sleeper(PLAIN).with(|settings| settings.shrink_after = Duration::from_millis(1)).start();
    let until = Instant::now() + Duration::from_secs(10);
    let mut chance = fastrand::Rng::with_seed(3);
    let mut pids = std::collections::BTreeSet::new();
    while Instant::now() < until || pids.len() < 3 {
        pids.insert(test_pool.get("/").await);
        // The pause is what is tested: the pool decides to sleep in it, before it or after it.
        let pause = Duration::from_millis(200 + chance.u64(0..150));
        pass(pause).await;
    }
    let counters = test_pool.pool.snapshot().counters;
    assert_eq!((counters.expired, counters.refused_full, counters.refused_overload), (0, 0, 0));
    test_pool.stop().await;
}

#[tokio::test]
async fn a_request_that_runs_and_a_tunnel_keep_the_pool_awake() {
    let test_pool = sleeper(PLAIN).start();
    let lease = timeout(TIME_LIMIT, test_pool.pool.acquire(Claim::default())).await.unwrap().unwrap();
    for _ in 0..8 {
        pass(LOOK).await;
        assert!(!test_pool.pool.is_asleep() && test_pool.pool.members() == 1);
    }
    let tunnel = lease.tunnel_guard();
    for _ in 0..8 {
        pass(LOOK).await;
        assert_eq!(test_pool.pool.members(), 1);
    }
    drop(tunnel);
    sleeps(&test_pool).await;
    test_pool.stop().await;
}

#[tokio::test]
async fn a_pool_grows_while_requests_wait_and_shrinks_afterwards() {
    let busy =
        "require('http').createServer((req, res) => setTimeout(() => res.end('ok'), 300)).listen(3000);";
    let test_pool = sleeper(busy).with(|settings| settings.shrink_after = Duration::from_secs(2)).start();
    let load = test_pool.under_load(8);
    eventually("it has grown", || {
        test_pool.workers.snapshot().iter().filter(|worker| worker.state == WorkerState::Ready).count() >= 2
    })
    .await;
    load.end().await;
    test_pool.assert_logged(" for a slot");
    sleeps(&test_pool).await;
    let scaling = test_pool.workers.scaling().unwrap();
    assert!(scaling.grown >= 2 && scaling.shrunk >= 1 && scaling.wanted == 0, "{scaling:?}");
    test_pool.stop().await;
}

#[tokio::test]
async fn a_pool_grows_while_the_thread_pools_of_its_workers_are_full() {
    // Opening a pipe blocks a thread until another one opens it for writing.
    let app = "const fs = require('fs');
        if (!fs.existsSync('pipe')) require('child_process').execFileSync('mkfifo', ['pipe']);
        require('http').createServer((req, res) => {
            if (req.url !== '/end') return fs.open('pipe', 'r', () => res.end('ok'));
            fs.openSync('pipe', 'r+');
            res.end('ok');
        }).listen(3000);";
    let test_pool = test_pool(app)
        .with(|settings| {
            (settings.count, settings.least, settings.shrink_after) = (2, Some(1), LONG);
            settings.slots = Slots::Fixed(100);
        })
        .start();
    eventually("one worker", || test_pool.pool.members() == 1).await;
    for _ in 0..4 {
        test_pool.ask("/").await;
    }
    eventually("it has grown", || test_pool.pool.members() == 2).await;
    test_pool.get("/end").await;
    test_pool.stop().await;
}

#[tokio::test]
async fn the_reason_not_to_grow_is_shown_only_while_there_are_too_few_workers() {
    let slow =
        "require('http').createServer((req, res) => setTimeout(() => res.end('ok'), 300)).listen(3000);";
    let (context, records) = context_in(&std::env::temp_dir(), Some(1));
    let test_pool = sleeper(slow).with(|settings| settings.shrink_after = LONG).start_on(context, records);
    let reason = || test_pool.workers.scaling().unwrap().reason.unwrap_or_default();
    let load = test_pool.under_load(8);
    eventually("it does not grow", || reason().starts_with("no growth: ")).await;
    load.end().await;
    eventually("the reason of its last change is back", || {
        reason() == "a request waits, and the pool is asleep"
    })
    .await;
    assert_eq!(test_pool.pool.members(), 1);
    test_pool.stop().await;
}

#[tokio::test]
async fn a_restart_and_new_settings_leave_a_sleeping_pool_asleep() {
    let test_pool = sleeper(PLAIN).start();
    let restarted = timeout(TIME_LIMIT, test_pool.workers.restart()).await.unwrap();
    assert_eq!(restarted.map(|restarted| restarted.workers), Ok(0));
    let mut settings = test_pool.settings.clone();
    settings.slots = Slots::Fixed(2);
    test_pool.workers.update(settings.clone());
    assert!(test_pool.pool.is_asleep() && test_pool.workers.snapshot().is_empty());
    // From now on it always has two workers.
    (settings.count, settings.least) = (2, None);
    test_pool.workers.update(settings);
    eventually("both are ready", || test_pool.pool.members() == 2).await;
    assert!(test_pool.workers.scaling().is_none());
    test_pool.stop().await;
}

#[tokio::test]
async fn an_app_that_cannot_start_backs_off_however_many_requests_come() {
    let test_pool =
        sleeper("throw new Error('no database');").with(|settings| settings.start_timeout = LONG).start();
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let pool = test_pool.pool.clone();
        let deadline = Some(Instant::now() + Duration::from_secs(2));
        requests.spawn(async move { pool.acquire(Claim { deadline, ..Claim::default() }).await.map(drop) });
    }
    eventually("it has failed, and requests wait by the usual rules", || {
        !test_pool.pool.is_asleep()
            && test_pool.workers.snapshot().first().is_some_and(|worker| worker.crashes > 2)
    })
    .await;
    let worker = test_pool.worker();
    assert!(worker.generation < 9, "{} boots", worker.generation);
    assert_eq!(woken(&test_pool), 1);
    // Mended, it boots by itself.
    test_pool.write("app.js", PLAIN);
    eventually("it is ready", || test_pool.pool.members() == 1).await;
    test_pool.stop().await;
}

#[tokio::test]
async fn a_pool_without_room_in_memory_takes_it_from_an_idle_one() {
    // No room for two workers.
    let (context, records) = context_in(&std::env::temp_dir(), Some(1));
    let plan = || sleeper(PLAIN).with(|settings| settings.shrink_after = LONG);
    let first = plan().start_on(context.clone(), Arc::clone(&records));
    let second = plan().start_on(context, records);
    let pid: u32 = first.get("/").await.parse().unwrap();
    assert!(is_alive(pid));
    // It waits until the first one has been idle for a moment and has ended.
    second.get("/").await;
    assert!(!is_alive(pid) && first.pool.is_asleep());
    first.assert_logged("web 0: falls asleep: it has no request, and another pool needs the memory");
    first.stop().await;
    second.stop().await;
}
