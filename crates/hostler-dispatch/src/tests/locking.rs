//! No foreign code runs under the pool's lock: each of these tests would deadlock if it did.

use std::sync::Mutex;

use super::*;

/// An endpoint that looks at its pool when it is dropped.
struct SnapshotOnDrop(Pool<SnapshotOnDrop>);

impl Drop for SnapshotOnDrop {
    fn drop(&mut self) {
        self.0.snapshot();
    }
}

#[test]
fn an_endpoint_is_dropped_outside_the_lock() {
    let pool = Pool::new("test", PoolSettings::default());
    let member = pool.join(SnapshotOnDrop(pool.clone()), 1);
    drop(member);

    let member = pool.join(SnapshotOnDrop(pool.clone()), 1);
    let running = lease(&pool);
    drop(member);
    drop(running);

    let member = pool.join(SnapshotOnDrop(pool.clone()), 1);
    let running = lease(&pool);
    let request = waiting(&pool);
    drop(running);
    drop(member);
    drop(request);
    assert!(pool.snapshot().members.is_empty());
}

/// A waker that owns what it wakes, as the waker of a task does. Dropping it drops the task's future.
#[expect(dead_code, reason = "held only to be dropped")]
struct Task(Mutex<Option<Acquire<&'static str>>>);

impl Wake for Task {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_waker_may_own_the_future_it_wakes() {
    let pool = pool(9);
    let waker = || Waker::from(Arc::new(Task(Mutex::new(Some(pool.acquire(Claim::default()))))));
    let mut request = request(&pool);
    let acquire = request.acquire.as_mut().unwrap();
    for waker in [waker(), waker()] {
        assert!(Pin::new(&mut *acquire).poll(&mut Context::from_waker(&waker)).is_pending());
    }
    drop(request);
    assert_eq!(pool.snapshot().queue_length, 0);
}
