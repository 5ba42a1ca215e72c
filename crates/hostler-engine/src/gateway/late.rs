//! Answers that do not begin when they should: looked into long before their clients give up. Knows no refusals.

use std::time::Duration;

use hostler_dispatch::Lease;
use tokio::time::Instant;

use super::target::PoolTarget;
use crate::exchange::{Downstream, Exchange, Look};
use crate::proxy::{self, Call, Endpoint, Failure};

/// An answer is late after this part of the time that its client waits.
const PART: u32 = 4;
/// A member that is to prove itself has so long, before the request is sent to another one as well.
const PROOF: Duration = Duration::from_secs(1);

/// Sets the deadline of an answer, and when it is first looked for; at that moment nothing has been sent yet.
pub(super) fn arrange(exchange: &mut Exchange, lease: &Lease<Endpoint>, target: &PoolTarget, until: Instant) {
    let mut late_after = target.request_timeout / PART;
    if lease.is_wary() && proxy::is_repeatable(exchange) {
        late_after = late_after.min(PROOF);
    }
    let at = lease.since() + late_after;
    exchange.look = (at < until).then_some(Look { at, until });
    exchange.deadline.set_at(at.min(until));
}

/// Goes on waiting: at a member that somebody else runs only for as long as the pool counts on it, if the request can be sent to
/// another one.
pub(super) async fn wait<D: Downstream>(
    mut call: Box<Call>,
    exchange: &mut Exchange,
    client: &mut D,
    target: &PoolTarget,
) -> Result<Box<Call>, Failure> {
    target.poison.watch(exchange, Instant::now() + target.request_timeout);
    if proxy::is_repeatable(exchange) {
        call.may_be_had_elsewhere();
    }
    call.wait_on(exchange, client).await
}
