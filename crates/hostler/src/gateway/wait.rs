//! The wait for a slot, for as long as queue, request and client have patience. Knows no calls.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

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
    /// For how long the pool was paused while this request waited. Does not count against its patience, up to
    /// `request_timeout`: nobody is held longer than twice that.
    paused: Duration,
}

impl<'a> Visit<'a> {
    pub fn begin(target: &'a PoolTarget, priority: Priority) -> Self {
        Self { target, priority, began: Instant::now(), ticket: None, paused: Duration::ZERO }
    }

    /// When the client's patience for an answer ends.
    pub fn until(&self) -> Instant {
        self.began + self.target.request_timeout + self.paused
    }

    /// Waits for a slot, at the same place in the queue each time.
    pub async fn slot<D: Downstream>(
        &mut self,
        exchange: &mut Exchange,
        client: &mut D,
    ) -> Result<Lease<Endpoint>, Refusal> {
        loop {
            let asked = Instant::now();
            // A request that comes back because its member was lost goes on waiting; it does not begin anew.
            let patience = self.target.queue_timeout + self.paused;
            let until = self.until().min(asked + patience.saturating_sub(exchange.timings.queue_wait));
            let paused = self.paused;
            let outcome = self.wait(exchange, client, until).await;
            exchange.timings.queue_wait += match &outcome {
                Ok(lease) => lease.since().saturating_duration_since(asked),
                Err(_) => asked.elapsed(),
            };
            match outcome {
                Err(Refusal::QueueTimeout) if self.paused > paused => {}
                Err(Refusal::QueueTimeout) => {
                    self.target.meter.note_wait(exchange.timings.queue_wait);
                    return outcome;
                }
                outcome => return outcome,
            }
        }
    }

    async fn wait<D: Downstream>(
        &mut self,
        exchange: &Exchange,
        client: &mut D,
        until: Instant,
    ) -> Result<Lease<Endpoint>, Refusal> {
        exchange.deadline.set_at(until);
        let claim = Claim { ticket: self.ticket, priority: self.priority, deadline: Some(until) };
        let mut acquire = pin!(self.target.pool.acquire(claim));
        self.ticket = Some(acquire.ticket());
        // Asked for only when there is a wait.
        let mut paused_before = None;
        let outcome = poll_fn(|cx| {
            if let Poll::Ready(acquired) = acquire.as_mut().poll(cx) {
                return Poll::Ready(acquired.map_err(Refusal::from));
            }
            if client.poll_left(cx).is_ready() {
                return Poll::Ready(Err(Refusal::ClientLeft));
            }
            paused_before.get_or_insert_with(|| self.target.pool.paused_time());
            exchange.deadline.poll_due(cx).map(|()| Err(Refusal::QueueTimeout))
        })
        .await;
        if let Some(before) = paused_before {
            let paused = self.target.pool.paused_time().saturating_sub(before);
            self.paused = (self.paused + paused).min(self.target.request_timeout);
        }
        outcome
    }
}
