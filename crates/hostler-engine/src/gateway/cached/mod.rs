//! The cache in the straight line: what is answered from memory, and what somebody is asked for. Knows no client protocol.

mod arrival;
mod fetch;
mod lookup;
mod refresh;
mod request;
mod show;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};

use hostler_cache::{
    CacheStatus, FlightRole, FlightWait, Forward, Landed, Method, Moment, RequestDirectives,
    may_serve_on_error,
};

use super::answer::Answer;
use super::refusal::Refusal;
use super::target::{PoolTarget, Route};
use super::wait::WaitBudget;
use crate::cache::{Caching, FetchOutcome};
use crate::exchange::{Downstream, Exchange, Whole};
use lookup::{CacheLookup, hear, look, serve};

pub(super) use fetch::Fetch;

/// What the cache says to a request.
pub(super) enum CacheAnswer {
    /// This is the answer.
    Answered(Answer),
    /// Somebody has to be asked.
    Forward(Box<Fetch>),
}

/// Answers from memory, or says what has to be fetched; waits where somebody else does that already.
pub(super) async fn ask<D: Downstream>(
    caching: &Arc<Caching>,
    (route, target): (&Arc<Route>, &PoolTarget),
    exchange: &mut Exchange,
    client: &mut D,
    thread: usize,
) -> Result<CacheAnswer, Refusal> {
    let (asks, admitted) = hear(caching, exchange);
    if let Err(why) = admitted {
        return Ok(pass(caching, exchange, asks, why));
    }
    match look(caching, exchange, &asks, Moment::now()) {
        CacheLookup::Good { entry, age, ttl, refresh } => {
            // What HEAD brings is no answer to GET, and what a host brings that is written otherwise is none for the others: the next
            // one fetches it.
            let may_fetch = asks.method == Method::Get && request::is_as_stored(exchange);
            if let Some(key) = refresh.filter(|_| may_fetch) {
                refresh::begin(caching, route, exchange, asks, (key, entry.clone()), thread);
            }
            serve(caching, exchange, &asks, &entry, (age, ttl)).map(CacheAnswer::Answered)
        }
        CacheLookup::Nothing { .. } if asks.only_if_cached => Err(Refusal::OnlyIfCached),
        CacheLookup::Nothing { key, why, stale, other } => {
            let known = other.or_else(|| stale.clone());
            let mut fetch = Fetch::new(caching, exchange, asks, key, why, stale);
            if let Some(known) = known {
                fetch.select(exchange, &known.head);
            }
            // Boxed: most requests never get here, and need no room for it.
            Box::pin(embark(fetch, target, exchange, client)).await
        }
    }
}

/// What is stored for a request whose answer has broken off before its client had any of it, where that may stand in. All that is
/// known of its fetch went with the answer, so it is looked for anew.
pub(super) fn stand_in(
    caching: &Caching,
    exchange: &mut Exchange,
    refusal: &Refusal,
) -> Option<Result<Whole, Refusal>> {
    let (asks, admitted) = hear(caching, exchange);
    if admitted.is_err() || !refusal.facts().may_fall_back {
        return None;
    }
    let now = Moment::now();
    let (entry, age) = match look(caching, exchange, &asks, now) {
        CacheLookup::Good { entry, age, .. } => (entry, age),
        CacheLookup::Nothing { stale, .. } => {
            let entry = stale?;
            let (age, _) = may_serve_on_error(&entry.freshness, &asks, now)?;
            (entry, age)
        }
    };
    exchange.log_facts.age = Some(age);
    if let Some(CacheStatus::Forwarded { stored, collapsed, .. }) = &mut exchange.log_facts.cache {
        // So it had been, but for what came of it.
        (*stored, *collapsed) = (false, false);
    }
    Some(show::at_hand(exchange, &asks, &entry))
}

/// It goes on as it is, and what comes is not stored.
fn pass(caching: &Arc<Caching>, exchange: &Exchange, asks: RequestDirectives, why: Forward) -> CacheAnswer {
    // Its key is asked for by nobody.
    let mut fetch = Fetch::new(caching, exchange, asks, Box::default(), why, None);
    fetch.stores = false;
    CacheAnswer::Forward(fetch)
}

/// Leads a flight, or waits for the one who does: for as long as this client would wait for its answer to begin, and what is left
/// of that is what it may wait afterwards.
async fn embark<D: Downstream>(
    mut fetch: Box<Fetch>,
    target: &PoolTarget,
    exchange: &mut Exchange,
    client: &mut D,
) -> Result<CacheAnswer, Refusal> {
    let mut wait_budget = WaitBudget::begin();
    let flights = fetch.caching.stock.flights.clone();
    while fetch.may_share() {
        let landed = match flights.join(&fetch.flight_key(), Moment::now()) {
            FlightRole::Alone => break,
            FlightRole::Arriving(fetch_outcome) => Landed::Shared(fetch_outcome),
            FlightRole::Leader(flight) => Landed::Lead(flight),
            FlightRole::Follower(waiting) => {
                match wait(waiting, (target, &mut wait_budget), exchange, client).await {
                    Ok(landed) => landed,
                    Err(refusal) => return fetch.failed(exchange, refusal).map(CacheAnswer::Answered),
                }
            }
        };
        fetch.wait_budget = Some(wait_budget);
        let fetch_outcome = match landed {
            Landed::Alone => break,
            Landed::Lead(flight) => {
                fetch.lead(flight);
                let found = found_meanwhile(&mut fetch, exchange).await?;
                return Ok(found.map_or(CacheAnswer::Forward(fetch), CacheAnswer::Answered));
            }
            Landed::Shared(fetch_outcome) => fetch_outcome,
        };
        if let Some(answer) = fetch.take(exchange, &fetch_outcome) {
            return answer.map(CacheAnswer::Answered);
        }
        // It was for others. Those who are like this one may be many as well.
        if !fetch_outcome.head().is_some_and(|head| fetch.select(exchange, head)) {
            break;
        }
    }
    Ok(CacheAnswer::Forward(fetch))
}

/// Between the look and the lead another's answer may have come, or it lies where several Hostlers keep theirs: nobody is asked twice
/// for that, and for all who wait one looks.
async fn found_meanwhile(fetch: &mut Fetch, exchange: &mut Exchange) -> Result<Option<Answer>, Refusal> {
    let caching = fetch.caching.clone();
    for is_fetched in [false, true] {
        if is_fetched && !(fetch.stores && caching.stock.fetch(&fetch.key).await) {
            break;
        }
        match look(&caching, exchange, &fetch.asks, Moment::now()) {
            CacheLookup::Good { entry, age, ttl, .. } => {
                fetch.land(&entry);
                return serve(&caching, exchange, &fetch.asks, &entry, (age, ttl)).map(Some);
            }
            CacheLookup::Nothing { stale, .. } => fetch.stale = stale.or(fetch.stale.take()),
        }
    }
    Ok(None)
}

async fn wait<D: Downstream>(
    waiting: FlightWait<FetchOutcome>,
    (target, wait_budget): (&PoolTarget, &mut WaitBudget),
    exchange: &Exchange,
    client: &mut D,
) -> Result<Landed<FetchOutcome>, Refusal> {
    exchange.deadline.set_at(wait_budget.until(target));
    let before = wait_budget.look(target);
    let mut waiting = pin!(waiting);
    let outcome = poll_fn(|cx| {
        loop {
            if let Poll::Ready(landed) = waiting.as_mut().poll(cx) {
                return Poll::Ready(Ok(landed));
            }
            if client.poll_left(cx).is_ready() {
                return Poll::Ready(Err(Refusal::ClientLeft));
            }
            ready!(exchange.deadline.poll_due(cx));
            if !wait_budget.give_back(target, before) {
                return Poll::Ready(Err(Refusal::AnswerTimeout));
            }
            exchange.deadline.set_at(wait_budget.until(target));
        }
    })
    .await;
    wait_budget.give_back(target, before);
    outcome
}

#[cfg(test)]
mod tests {
    use hostler_cache::{CachingRules, Flight, Query};
    use hostler_wire::Limits;
    use tokio::time::{Duration, Instant, sleep_until};

    use super::*;
    use crate::cache::Stock;
    use crate::exchange::NoClient;
    use crate::gateway::tests::{exchange, journal, seconds, target};

    /// A request for what another fetches already.
    fn second() -> (Exchange, Box<Fetch>, Flight<FetchOutcome>) {
        let mut exchange = exchange();
        exchange.head.parse(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", &Limits::default()).unwrap();
        let stock = Arc::new(Stock::new(1 << 20, 1 << 16, journal()));
        let (rules, query) = (CachingRules::default(), Query::AsSent);
        let caching =
            Arc::new(Caching { rules, query, stores: true, collapses: false, stock, told: false.into() });
        let (asks, _) = hear(&caching, &exchange);
        let fetch = Fetch::new(&caching, &exchange, asks, b"key"[..].into(), Forward::UriMiss, None);
        let FlightRole::Leader(flight) = caching.stock.flights.join(&fetch.flight_key(), Moment::now())
        else {
            panic!("nobody has come before");
        };
        (exchange, fetch, flight)
    }

    /// From here on.
    async fn after(wait: Duration, then: impl FnOnce()) {
        sleep_until(Instant::now() + wait).await;
        then();
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_waited_for_another_is_not_there_to_be_waited_for_oneself() {
        let (target, (mut exchange, fetch, flight)) = (target(), second());
        let began = Instant::now();
        tokio::spawn(after(seconds(20), || drop(flight)));
        let Ok(CacheAnswer::Forward(fetch)) = embark(fetch, &target, &mut exchange, &mut NoClient).await
        else {
            panic!("it is up to this one now");
        };
        assert_eq!(began.elapsed(), seconds(20));
        let until = fetch.wait_budget.map(|wait_budget| wait_budget.until(&target) - began);
        assert_eq!(until, Some(seconds(30)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_of_the_pool_costs_no_patience_with_others_either() {
        let (target, (mut exchange, fetch, flight)) = (target(), second());
        let (began, pool) = (Instant::now(), target.pool.clone());
        pool.pause();
        tokio::spawn(after(seconds(20), move || pool.resume()));
        let asked = embark(fetch, &target, &mut exchange, &mut NoClient).await;
        assert!(matches!(asked, Err(Refusal::AnswerTimeout)));
        let waited = began.elapsed();
        assert!((seconds(50)..seconds(51)).contains(&waited), "{waited:?}");
        drop(flight);
    }
}
