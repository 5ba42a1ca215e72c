//! Waits for a condition, with a deadline instead of a guessed time. Knows nothing of Hostler.

use std::fmt::Debug;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

/// The time limit of every wait. Only a failing test waits this long, so it is generous: when all tests run at once on a
/// shared machine, everything takes many times as long.
pub const WAIT_LIMIT: Duration = Duration::from_secs(120);
/// The time between two looks.
const PAUSE: Duration = Duration::from_millis(5);
/// If the machine stands still for a minute (a snapshot, a suspended guest), only one second of the time limit counts.
const MOST_AT_ONCE: Duration = Duration::from_secs(1);

/// Calls `look` again and again until it returns a value.
///
/// # Panics
/// If it returns none within [`WAIT_LIMIT`].
pub async fn eventually<T>(what: impl Debug, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let mut left = WAIT_LIMIT;
    loop {
        let began = Instant::now();
        if let Some(seen) = look().await {
            return seen;
        }
        sleep(PAUSE).await;
        left = left.saturating_sub(began.elapsed().min(MOST_AT_ONCE));
        assert!(!left.is_zero(), "waited too long for {what:?}");
    }
}

/// Awaits a future that must end within [`WAIT_LIMIT`].
///
/// # Panics
/// If it does not end in time.
pub async fn within<T>(what: impl Debug, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    for _ in 0..WAIT_LIMIT.as_secs() / MOST_AT_ONCE.as_secs() {
        if let Ok(value) = timeout(MOST_AT_ONCE, &mut future).await {
            return value;
        }
    }
    panic!("waited too long for {what:?}")
}
