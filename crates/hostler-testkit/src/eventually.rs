//! Waiting for what a test needs to see, with a deadline instead of a guess. Knows nothing of Hostler.

use std::fmt::Debug;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

/// How long anything may take. Only a failing test waits that long, so it can be generous: the machine is shared, and what takes
/// seconds of a core when it is idle takes many times that when all tests run at once.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// How often is looked.
const PAUSE: Duration = Duration::from_millis(5);
/// A machine that stands still for a minute (a snapshot, a suspended guest) has lost a second of our patience, no more.
const MOST_AT_ONCE: Duration = Duration::from_secs(1);

/// Looks again and again until `look` finds something.
///
/// # Panics
/// If there is nothing to be seen in [`PATIENCE`].
pub async fn eventually<T>(what: impl Debug, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let mut left = PATIENCE;
    loop {
        let began = Instant::now();
        if let Some(seen) = look().await {
            return seen;
        }
        sleep(PAUSE).await;
        left = left.saturating_sub(began.elapsed().min(MOST_AT_ONCE));
        assert!(!left.is_zero(), "waited in vain for {what:?}");
    }
}

/// Awaits something that must come to an end in [`PATIENCE`].
///
/// # Panics
/// If it does not.
pub async fn within<T>(what: impl Debug, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    for _ in 0..PATIENCE.as_secs() / MOST_AT_ONCE.as_secs() {
        if let Ok(value) = timeout(MOST_AT_ONCE, &mut future).await {
            return value;
        }
    }
    panic!("waited in vain for {what:?}")
}
