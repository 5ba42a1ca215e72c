//! The wait for a slot, for as long as queue, request and client have patience. Knows no calls.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use hostler_pool::dispatch::{Claim, Lease, Priority, Ticket};
use tokio::time::Instant;

use super::{PoolTarget, Refusal};
use crate::exchange::{Downstream, Exchange};
use crate::proxy::Endpoint;

/// A request at its pool: its class, its place, its time.
pub(super) struct Visit<'a> {
    target: &'a PoolTarget,
    priority: Priority,
    began: Instant,
    ticket: Option<Ticket>,
}

impl<'a> Visit<'a> {
    pub fn begin(target: &'a PoolTarget, priority: Priority) -> Self {
        Self { target, priority, began: Instant::now(), ticket: None }
    }

    /// When the client's patience for an answer ends.
    pub fn until(&self) -> Instant {
        self.began + self.target.request_timeout
    }

    /// Waits for a slot, at the same place in the queue each time.
    pub async fn slot<D: Downstream>(
        &mut self,
        exchange: &mut Exchange,
        client: &mut D,
    ) -> Result<Lease<Endpoint>, Refusal> {
        let asked = Instant::now();
        // A request that comes back because its member was lost goes on waiting; it does not begin anew.
        let patience = self.target.queue_timeout.saturating_sub(exchange.timings.queue_wait);
        let until = self.until().min(asked + patience);
        exchange.deadline.set_at(until);
        let deadline = &exchange.deadline;
        let claim = Claim { ticket: self.ticket, priority: self.priority, deadline: Some(until) };
        let mut acquire = pin!(self.target.pool.acquire(claim));
        let outcome = poll_fn(|cx| {
            if let Poll::Ready(acquired) = acquire.as_mut().poll(cx) {
                return Poll::Ready(acquired.map_err(Refusal::from));
            }
            if client.poll_left(cx).is_ready() {
                return Poll::Ready(Err(Refusal::ClientLeft));
            }
            deadline.poll_due(cx).map(|()| Err(Refusal::QueueTimeout))
        })
        .await;
        exchange.timings.queue_wait += match &outcome {
            Ok(lease) => lease.since().saturating_duration_since(asked),
            Err(_) => asked.elapsed(),
        };
        if matches!(outcome, Err(Refusal::QueueTimeout)) {
            self.target.meter.note_wait(exchange.timings.queue_wait);
        }
        self.ticket = outcome.as_ref().map(Lease::ticket).ok().or(self.ticket);
        outcome
    }
}
