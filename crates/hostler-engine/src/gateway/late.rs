//! Answers that are late: decides long before the client gives up whether another member gets the request. Knows no refusals.

use std::time::Duration;

use hostler_dispatch::Lease;
use tokio::time::Instant;

use super::target::PoolTarget;
use crate::exchange::{Downstream, Exchange, Look};
use crate::proxy::{self, Call, Endpoint, Failure};

/// An answer is late after this part (a quarter) of the time that the client waits.
const LATE_PART: u32 = 4;
/// A member that has not answered since its ejection has this long, before the request is sent to another member as well.
const WARY_TIME: Duration = Duration::from_secs(1);

/// Sets the deadline of the answer, and the moment from which it is late. Nothing has been sent yet.
pub(super) fn set_deadline(
    exchange: &mut Exchange,
    lease: &Lease<Endpoint>,
    target: &PoolTarget,
    until: Instant,
) {
    let mut late_after = target.request_timeout / LATE_PART;
    if lease.is_wary() && proxy::is_repeatable(exchange) {
        late_after = late_after.min(WARY_TIME);
    }
    let at = lease.since() + late_after;
    exchange.look = (at < until).then_some(Look { at, until });
    exchange.deadline.set_at(at.min(until));
}

/// Waits on. At a member that is not a worker of ours, waits only as long as the pool has not ejected it, if the request may be sent to
/// another member.
pub(super) async fn wait<D: Downstream>(
    mut call: Box<Call>,
    exchange: &mut Exchange,
    client: &mut D,
    target: &PoolTarget,
) -> Result<Box<Call>, Failure> {
    target.poison.watch(exchange, Instant::now() + target.request_timeout);
    if proxy::is_repeatable(exchange) {
        call.watch_ejection();
    }
    call.wait_on(exchange, client).await
}
