//! Waits for the workers of pools that were started. Does not know why they were started.

use std::time::Duration;

use hostler_worker::{NeverReady, WorkerSnapshot};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::pools::RunningPool;

/// A worker that has failed to boot so often in a row does not boot. `hostler run` ends then, if none has ever worked. One failure may be
/// chance.
const TRIES: u32 = 3;
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Waits until each pool has a ready worker. Fails as soon as a worker has crashed.
pub(super) async fn first_ready(pools: &[&RunningPool]) -> Result<(), String> {
    let ready = async {
        for supervisor in pools.iter().filter_map(|pool| pool.supervisor.as_ref()) {
            supervisor.ready().await;
        }
    };
    unless_one_fails(pools, ready).await
}

/// Waits until each pool has a ready worker, or has a worker that has crashed.
pub(super) async fn each_tried(pools: &[RunningPool]) {
    for pool in pools {
        // A pool that fails does not hold up the others. The loop still waits for those.
        let _ = first_ready(&[pool]).await;
    }
}

/// Waits until a pool has failed: after some tries no worker of it has ever worked. If that does not happen, it waits for ever. It keeps no pool
/// meanwhile: the members of one that a reload removes leave with its last copy.
pub(super) fn never_ready(pools: &[RunningPool]) -> impl Future<Output = NeverReady> + use<> {
    let supervisors: Vec<_> = pools.iter().filter_map(|pool| pool.supervisor.clone()).collect();
    async move {
        let mut waiting = JoinSet::new();
        for supervisor in supervisors {
            waiting.spawn(async move { supervisor.never_ready(TRIES).await });
        }
        match waiting.join_next().await {
            Some(Ok(never_ready)) => never_ready,
            _ => std::future::pending().await,
        }
    }
}

/// Waits until every worker of every pool is ready.
pub(super) async fn all_ready(pools: &[&RunningPool]) -> Result<(), String> {
    let ready = async {
        for supervisor in pools.iter().filter_map(|pool| pool.supervisor.as_ref()) {
            supervisor.all_ready().await;
        }
    };
    unless_one_fails(pools, ready).await
}

/// The pools whose workers do not boot, after some tries: nothing that is new can make them worse. A pool that waits for a crashed worker is
/// none of them, because its next boot may succeed.
pub(super) fn broken(pools: &[RunningPool]) -> Vec<String> {
    let is_broken = |pool: &&RunningPool| {
        pool.supervisor.as_ref().is_some_and(|supervisor| supervisor.does_not_boot(TRIES))
    };
    pools.iter().filter(is_broken).map(|pool| pool.name.to_string()).collect()
}

/// A crashed worker boots again and may succeed then. The caller gets the error at once instead of waiting for that.
async fn unless_one_fails(pools: &[&RunningPool], ready: impl Future<Output = ()>) -> Result<(), String> {
    let failure = async {
        loop {
            if let Some(why) = pools.iter().find_map(|pool| failure(pool)) {
                return why;
            }
            sleep(POLL_INTERVAL).await;
        }
    };
    tokio::select! {
        () = ready => Ok(()),
        why = failure => Err(why),
    }
}

fn failure(pool: &RunningPool) -> Option<String> {
    let workers = pool.supervisor.as_ref()?.snapshot();
    let crashed = workers.into_iter().find(|worker: &WorkerSnapshot| worker.crashes > 0)?;
    let how = crashed.last_error.or(crashed.last_exit).unwrap_or_default();
    Some(format!("pool {}: worker {}: {how}", pool.name, crashed.index))
}
