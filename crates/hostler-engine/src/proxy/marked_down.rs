//! When a call gives up its member, because the pool has marked the member down. Knows no requests and no answers.

use std::pin::Pin;
use std::time::Duration;

use hostler_dispatch::Lease;
use tokio::time::sleep;

use super::Endpoint;

/// A member that was marked down while no other one could answer is looked at again after this time.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Ready when the pool marks the member down.
pub(super) type MarkedDown = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Ready when the pool marks the member down. Ready at once if the member has not responded since its last ejection.
pub(super) fn marked_down(lease: &Lease<Endpoint>) -> MarkedDown {
    match lease.was_ejected() {
        true => Box::pin(std::future::ready(())),
        false => Box::pin(lease.marked_down()),
    }
}

/// The same, but not ready before [`LOOK_AGAIN`] has passed.
pub(super) fn marked_down_later(lease: &Lease<Endpoint>) -> MarkedDown {
    let marked_down = marked_down(lease);
    Box::pin(async move {
        sleep(LOOK_AGAIN).await;
        marked_down.await;
    })
}
