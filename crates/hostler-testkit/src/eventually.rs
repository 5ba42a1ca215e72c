//! Waiting for what a test needs to see, with a deadline instead of a guess. Knows nothing of Hostler.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

/// How long anything may take. Only a failing test waits that long, so it can be generous: the machine is shared.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// How often is looked.
const PAUSE: Duration = Duration::from_millis(5);

/// Looks again and again until `look` finds something.
///
/// # Panics
/// If there is nothing to be seen in [`PATIENCE`].
pub async fn eventually<T>(what: impl Debug, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what:?}");
        sleep(PAUSE).await;
    }
}

/// Awaits something that must come to an end in [`PATIENCE`].
///
/// # Panics
/// If it does not.
pub async fn within<T>(what: impl Debug, future: impl Future<Output = T>) -> T {
    match timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited in vain for {what:?}"),
    }
}

/// A future that never ends: for a part that a test wants to stand still.
pub async fn never_ends() {
    std::future::pending().await
}
