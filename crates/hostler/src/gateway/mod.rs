//! The straight line: what happens to a request, in the order in which it happens. Knows no client protocol.

mod refusal;
mod spool;
mod target;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use arc_swap::ArcSwap;
use hostler_pool::dispatch::{Claim, Lease, Ticket};
use hostler_wire::BodyLength;
use tokio::time::Instant;

use crate::exchange::{Body, BodyError, Counters, Downstream, Exchange};
use crate::proxy::{self, Call, Endpoint, Failure};
use crate::route::Table;

pub use refusal::{Facts, Refusal};
pub use spool::SpoolSettings;
pub use target::{Fixed, PoolTarget, Route, Target};

/// How often a request may be sent whose worker ended without a byte of an answer. A request that kills whatever it meets
/// must not take the whole pool with it.
const MOST_SENDS: u32 = 3;

/// What answers a request.
#[expect(clippy::large_enum_variant, reason = "moved once; a box would be an allocation for each request")]
pub enum Answer {
    /// A member, whose answer's head has come.
    Member(Call),
    /// The route itself.
    Fixed(Arc<Fixed>),
}

/// The routes and what every request needs. One for the whole program.
pub struct Gateway {
    /// The table, swapped whole.
    pub routes: ArcSwap<Table<Arc<Route>>>,
    /// Where bodies go that are read whole.
    pub spool: ArcSwap<SpoolSettings>,
    /// Requests that no route matched, and those that were none.
    pub unrouted: Arc<Counters>,
}

impl Gateway {
    /// Answers one request. Read from top to bottom, this is the life of a request.
    pub async fn answer<D: Downstream>(
        &self,
        exchange: &mut Exchange,
        client: &mut D,
        thread: usize,
    ) -> Result<Answer, Refusal> {
        let route =
            self.routes.load().find(exchange.host(), exchange.path()).cloned().ok_or(Refusal::NoRoute)?;
        exchange.enter(&route.pattern, &route.counters);
        self.take_body(exchange, client, &route).await?;
        match &route.target {
            Target::Fixed(fixed) => Ok(Answer::Fixed(fixed.clone())),
            Target::Pool(target) => {
                self.call_pool(target, exchange, client, thread).await.map(Answer::Member)
            }
        }
    }

    /// Counts an exchange that has ended, where it went.
    pub fn settle(&self, exchange: &Exchange) {
        exchange.counters.as_ref().unwrap_or(&self.unrouted).count(&exchange.trail);
    }

    /// Takes the request's body, whole unless the route streams it: no slot is held while a client sends.
    async fn take_body<D: Downstream>(
        &self,
        exchange: &mut Exchange,
        client: &mut D,
        route: &Route,
    ) -> Result<(), BodyError> {
        client.allow_body(route.max_body);
        match exchange.length {
            BodyLength::Known(0) => return Ok(()),
            BodyLength::Known(length) if length > route.max_body => {
                return Err(BodyError::TooLarge(route.max_body));
            }
            _ if route.streams_body => {
                exchange.body = Body::Streaming;
                return Ok(());
            }
            _ => {}
        }
        (exchange.body, exchange.trail.bytes_in) =
            spool::read_whole(client, exchange.length, &self.spool.load_full()).await?;
        exchange.trailers = client.trailers().cloned();
        Ok(())
    }

    /// A slot, a call; and where that failed and may be tried again, from the start, at the same place in the queue.
    async fn call_pool<D: Downstream>(
        &self,
        target: &PoolTarget,
        exchange: &mut Exchange,
        client: &mut D,
        thread: usize,
    ) -> Result<Call, Refusal> {
        exchange.trail.pool = Some(target.name.clone());
        let until = Instant::now() + target.request_timeout;
        let mut ticket = None;
        let mut last = None;
        let mut sends = 0;
        loop {
            let lease = match wait(target, exchange, client, until, ticket).await {
                Ok(lease) => lease,
                // What kept it from a member says more than that it has waited.
                Err(Refusal::QueueTimeout) => return Err(last.unwrap_or(Refusal::QueueTimeout)),
                Err(refusal) => return Err(refusal),
            };
            target.meter.record_queue_wait(thread, exchange.timings.queue_wait);
            ticket = Some(lease.ticket());
            exchange.trail.attempts += 1;
            exchange.deadline.set_at(until);
            match proxy::forward(exchange, client, lease, &target.call, thread).await {
                Ok(call) => return Ok(call),
                Err(failure @ Failure::Unreachable(_)) => last = Some(failure.into()),
                Err(failure @ Failure::Unanswered(_)) => {
                    sends += 1;
                    if sends == MOST_SENDS || !proxy::is_repeatable(exchange) {
                        return Err(failure.into());
                    }
                }
                Err(failure) => return Err(failure.into()),
            }
        }
    }
}

/// Waits for a slot, for as long as the queue, the request's deadline and the client have patience.
async fn wait<D: Downstream>(
    target: &PoolTarget,
    exchange: &mut Exchange,
    client: &mut D,
    until: Instant,
    ticket: Option<Ticket>,
) -> Result<Lease<Endpoint>, Refusal> {
    let asked = Instant::now();
    // A request that comes back because its member was lost goes on waiting; it does not begin anew.
    let patience = target.queue_timeout.saturating_sub(exchange.timings.queue_wait);
    exchange.deadline.set_at(until.min(asked + patience));
    let deadline = &exchange.deadline;
    let mut acquire = pin!(target.pool.acquire(Claim { ticket, ..Claim::default() }));
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
    outcome
}
