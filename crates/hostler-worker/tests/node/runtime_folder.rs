//! The folder of the workers' sockets is removed while they run, as by a program that does not know that it is in use.

use std::fs;
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;

use super::support::*;

/// A pool in a folder of its own.
fn pool_in(parent: &tempfile::TempDir, workers: usize) -> (TestPool, impl Fn() -> PathBuf) {
    let (context, records) = context_in(parent.path(), None);
    let plan = test_pool(PLAIN).with(|settings| settings.count = workers);
    (plan.start_on(context.clone(), records), move || context.directory())
}

#[tokio::test]
async fn a_removed_folder_is_made_again_and_workers_without_a_socket_are_replaced() {
    let parent = tempfile::tempdir().unwrap();
    let (pool, directory) = pool_in(&parent, 2);
    pool.is_ready().await;
    let before: Vec<_> = pool.workers.snapshot().iter().map(|worker| worker.pid).collect();
    fs::remove_dir_all(directory()).unwrap();
    eventually("both are replaced", || {
        let now: Vec<_> = pool.workers.snapshot().iter().map(|worker| worker.pid).collect();
        now.len() == 2 && now.iter().all(|pid| pid.is_some() && !before.contains(pid))
    })
    .await;
    pool.is_ready().await;
    for _ in 0..2 {
        pool.get("/").await;
    }
    assert_eq!(directory(), pool.runtime_directory, "at its old place");
    pool.assert_logged(&format!("workers' sockets, {}, was removed", directory().display()));
    pool.assert_logged("its socket was removed from the folder of Hostler");
    pool.stop().await;
}

#[tokio::test]
async fn workers_are_replaced_if_another_program_has_made_a_folder_at_the_path() {
    let parent = tempfile::tempdir().unwrap();
    let (pool, directory) = pool_in(&parent, 1);
    pool.is_ready().await;
    let (before, first, aside) = (pool.worker().pid, directory(), parent.path().join("aside"));
    fs::rename(&first, &aside).unwrap();
    fs::create_dir(&first).unwrap();
    // Something is at the path of each socket.
    for entry in fs::read_dir(&aside).unwrap() {
        fs::write(first.join(entry.unwrap().file_name()), "theirs").unwrap();
    }
    eventually("it is replaced", || pool.worker().pid.is_some_and(|pid| Some(pid) != before)).await;
    pool.is_ready().await;
    assert_ne!(directory(), first);
    pool.get("/").await;
    pool.stop().await;
    assert!(fs::read_dir(&first).unwrap().all(|entry| fs::read(entry.unwrap().path()).unwrap() == b"theirs"));
}

/// The process of a cluster that serves dies, and the next one comes when more than two looks have found no socket.
const SLOW_CLUSTER: &str = "const cluster = require('cluster');
    if (cluster.isPrimary) {
      cluster.fork();
      cluster.on('exit', () => setTimeout(() => cluster.fork(), 3500));
    } else require('http').createServer((req, res) => res.end(String(process.pid))).listen(3000);";

#[tokio::test]
async fn a_cluster_may_be_without_a_socket_until_its_next_process_has_booted() {
    let pool = test_pool(SLOW_CLUSTER).started().await;
    let before = pool.worker();
    eventually("it is known as a cluster", || pool.log().contains("with Node's cluster")).await;
    let served: u32 = pool.get("/").await.parse().unwrap();
    signal(served, Signal::KILL);
    eventually("it has the next process", || {
        let children = children_of(before.pid.unwrap());
        children.first().is_some_and(|child| *child != served)
    })
    .await;
    let now = pool.worker();
    assert_eq!((now.pid, now.generation), (before.pid, before.generation), "{}", pool.log());
    assert!(!pool.log().contains("its socket was removed"), "{}", pool.log());
    pool.stop().await;
}

#[tokio::test]
async fn a_worker_that_dies_without_folder_or_preload_boots_again() {
    let parent = tempfile::tempdir().unwrap();
    let (pool, directory) = pool_in(&parent, 1);
    pool.is_ready().await;
    // systemd-tmpfiles spares living sockets, and ages the regular files beside them.
    fs::remove_file(directory().join("preload.cjs")).unwrap();
    dies_and_returns(&pool).await;
    fs::remove_dir_all(directory()).unwrap();
    dies_and_returns(&pool).await;
    // What another program has made there is not used, and stays.
    let first = directory();
    fs::remove_dir_all(&first).unwrap();
    fs::create_dir(&first).unwrap();
    dies_and_returns(&pool).await;
    assert_ne!(directory(), first);
    pool.stop().await;
    assert_eq!(fs::read_dir(&first).unwrap().count(), 0);
}

async fn dies_and_returns(pool: &TestPool) {
    let before = pool.worker();
    signal(before.pid.unwrap(), Signal::KILL);
    eventually("it is back", || pool.worker().generation > before.generation && pool.worker().pid.is_some())
        .await;
    pool.is_ready().await;
    pool.get("/").await;
}

#[tokio::test]
async fn a_folder_in_use_is_locked_against_cleaning_and_a_start_names_what_it_cannot_make() {
    let parent = tempfile::tempdir().unwrap();
    let (pool, directory) = pool_in(&parent, 1);
    pool.is_ready().await;
    let handle = fs::File::open(directory()).unwrap();
    assert!(flock(&handle, FlockOperation::NonBlockingLockExclusive).is_err());
    // Not even its parent is there.
    fs::remove_dir_all(parent.path()).unwrap();
    signal(pool.worker().pid.unwrap(), Signal::KILL);
    let text = format!("{}: No such file or directory", parent.path().display());
    eventually("the log names the folder", || pool.log().contains(&text)).await;
    fs::create_dir(parent.path()).unwrap();
    pool.is_ready().await;
    pool.get("/").await;
    pool.stop().await;
}
