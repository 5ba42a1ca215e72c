//! When a call that is late is given up, because its member is. Knows no requests and no answers.

use std::pin::Pin;
use std::time::Duration;

use hostler_dispatch::Lease;
use tokio::time::sleep;

use super::Endpoint;

/// A member that was given up while no other one could answer is looked at again after this time.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Ready when the pool gives the member up.
pub(super) type Forsaken = Pin<Box<dyn Future<Output = ()> + Send>>;

/// At once, if the member has not answered since its last ejection.
pub(super) fn forsaken(lease: &Lease<Endpoint>) -> Forsaken {
    match lease.was_ejected() {
        true => Box::pin(std::future::ready(())),
        false => Box::pin(lease.forsaken()),
    }
}

/// The same, after a while.
pub(super) fn forsaken_later(lease: &Lease<Endpoint>) -> Forsaken {
    let forsaken = forsaken(lease);
    Box::pin(async move {
        sleep(LOOK_AGAIN).await;
        forsaken.await;
    })
}
