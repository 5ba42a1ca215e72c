//! A call that may become two: if the answer does not begin in the usual time, another member is asked as well. Knows no client protocol.

use std::pin::Pin;

use hostler_dispatch::{Claim, Lease, WorkKind};
use tokio::time::{Instant, sleep};

use super::hedging::Hedge;
use super::target::{PoolTarget, Route};
use super::{stream, wait};
use crate::exchange::{Downstream, Exchange};
use crate::proxy::{self, CallBox, Endpoint, Failure, FirstHead, SecondTry};

/// Where a call with second tries goes.
#[derive(Clone, Copy)]
pub(super) struct HedgedCall<'a> {
    pub route: &'a Route,
    pub target: &'a PoolTarget,
    /// If both tries fail, the request may be sent to a third member.
    pub moves: bool,
    pub thread: usize,
}

/// As [`proxy::forward`], with a second try at another member. Boxed, because few pools have second tries.
pub(super) fn forward<'a, D: Downstream>(
    hedge: &'a Hedge,
    at: HedgedCall<'a>,
    lease: Lease<Endpoint>,
    exchange: &'a mut Exchange,
    client: &'a mut D,
) -> Pin<Box<impl Future<Output = Result<CallBox, Failure>>>> {
    Box::pin(forward_unboxed(hedge, at, lease, exchange, client))
}

async fn forward_unboxed<D: Downstream>(
    hedge: &Hedge,
    at: HedgedCall<'_>,
    lease: Lease<Endpoint>,
    exchange: &mut Exchange,
    client: &mut D,
) -> Result<CallBox, Failure> {
    let HedgedCall { target, thread, .. } = at;
    // Counted at the first attempt only: this function runs again for each further attempt.
    if exchange.log_facts.attempts == 1 {
        hedge.earn();
    }
    let (began, may_be_sent_twice) = (Instant::now(), may_be_sent_twice(exchange));
    let after = if may_be_sent_twice { hedge.after() } else { None };
    // A timer of its own, because a `Deadline` may be up to 40 ms late, and most responses have begun by then.
    exchange.patience = after.map(|after| Box::pin(sleep(after)));
    let answered = proxy::forward(exchange, client, lease, &target.call, thread).await;
    let answered = match answered {
        // The response is late, because a quarter of the client's time is over, but the time for a second try has not come yet.
        Ok(call) if call.is_late() && exchange.patience.is_some() => {
            wait::for_late_answer(call, at.moves, exchange, client, target).await
        }
        answered => answered,
    };
    let is_impatient = after.is_some() && exchange.patience.take().is_none();
    let answered = match answered {
        Ok(call) if is_impatient && call.is_late() => {
            let claim = claim(at.route, target, exchange);
            match hedge.spend(|| target.pool.acquire_elsewhere(&claim, call.member())) {
                Some(mut lease) => {
                    wait::charge(&mut lease, target, exchange);
                    race(hedge, at, call, lease, exchange, client).await
                }
                None => call.wait_on(exchange, client).await,
            }
        }
        answered => answered,
    };
    if may_be_sent_twice && answered.is_ok() {
        // If the second member was first, the first one would have taken longer than this.
        hedge.record(began.elapsed());
    }
    answered
}

/// Asks the member of this lease as well, and waits for the first head.
async fn race<D: Downstream>(
    hedge: &Hedge,
    at: HedgedCall<'_>,
    call: CallBox,
    lease: Lease<Endpoint>,
    exchange: &mut Exchange,
    client: &mut D,
) -> Result<CallBox, Failure> {
    exchange.log_facts.attempts += 1;
    exchange.log_facts.hedge = Some("lost");
    let second = SecondTry::begin(exchange, lease, &at.target.call, at.thread);
    match call.race(second, at.moves, exchange, client).await? {
        FirstHead::First(call) => Ok(call),
        FirstHead::Second(call) => {
            exchange.log_facts.hedge = Some("won");
            hedge.won();
            Ok(call)
        }
    }
}

/// GET and HEAD without a body, which ask for an answer with an end.
fn may_be_sent_twice(exchange: &Exchange) -> bool {
    matches!(exchange.head.method(), b"GET" | b"HEAD")
        && exchange.body.is_none()
        && stream::expected(exchange).is_none()
}

fn claim(route: &Route, target: &PoolTarget, exchange: &mut Exchange) -> Claim {
    Claim {
        priority: route.priority,
        kind: exchange.log_facts.route.as_deref().map(WorkKind::named),
        fair: target.fair.as_ref().map(|fair| fair.of(exchange)),
        ..Claim::default()
    }
}
