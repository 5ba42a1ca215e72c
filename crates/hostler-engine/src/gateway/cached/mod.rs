//! The cache as a step of the gateway: what is answered from memory, and what goes to a member. Knows no client protocol.

mod arrival;
mod fetch;
mod fetch_state;
mod invalidation;
mod lookup;
mod refresh;
mod request;
mod show;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};

use hostler_cache::{
    CacheStatus, FlightResult, FlightRole, FlightWait, Forward, Method, Moment, RequestDirectives, Tick,
    may_serve_on_error,
};
use hostler_wire::Whole;

use super::answer::Answer;
use super::hints::EarlyHints;
use super::low;
use super::refusal::Refusal;
use super::target::{PoolTarget, Route};
use super::wait::WaitBudget;
use crate::cache::{Caching, FetchOutcome};
use crate::exchange::trace::{CacheStep, step_begins, step_ends};
use crate::exchange::{Downstream, Exchange};
use lookup::{CacheLookup, find, read_directives, serve};

pub(super) use fetch_state::Fetch;
pub(super) use invalidation::{invalidate, late_answer};

/// After this many flights whose responses do not fit it, a request fetches for itself.
const MOST_FLIGHTS: usize = 4;

/// What the cache decides for a request.
pub(super) enum CacheAnswer {
    Answered(Answer),
    /// A member has to be asked.
    Forward(Box<Fetch>),
}

/// Answers from memory, or returns the fetch to send. If another request fetches the same, waits for that one.
pub(super) async fn ask<D: Downstream>(
    caching: &Arc<Caching>,
    at: (&Arc<Route>, &PoolTarget),
    exchange: &mut Exchange,
    client: &mut D,
    thread: usize,
) -> Result<CacheAnswer, Refusal> {
    let since = step_begins(exchange.trace.as_deref());
    let answer = decide(caching, at, exchange, client, thread).await;
    step_ends(exchange.trace.as_deref_mut(), CacheStep::Whole, since);
    answer
}

async fn decide<D: Downstream>(
    caching: &Arc<Caching>,
    (route, target): (&Arc<Route>, &PoolTarget),
    exchange: &mut Exchange,
    client: &mut D,
    thread: usize,
) -> Result<CacheAnswer, Refusal> {
    let (asks, admitted) = read_directives(caching, exchange);
    match admitted {
        // No stored answer may serve it, so there is nothing to look for.
        Err(Forward::Bypass) if asks.only_if_cached => {
            exchange.log_facts.cache = Some(CacheStatus::OnlyIfCached);
            return Err(Refusal::OnlyIfCached);
        }
        Err(why) => return Ok(pass_on(caching, exchange, asks, why)),
        Ok(()) => {}
    }
    match find(caching, exchange, &asks, Moment::now()) {
        CacheLookup::Good { entry, age, ttl, refresh } => {
            // An answer to HEAD cannot answer a GET. If this request writes its host differently from the key, or says `no-store`, its
            // answer is not for others. Then the next request refreshes the entry.
            let may_fetch = asks.method == Method::Get && !asks.no_store && request::is_as_stored(exchange);
            if let Some(key) = refresh.filter(|_| may_fetch) {
                refresh::begin(caching, route, exchange, asks, (key, entry.clone()), thread);
            }
            serve(caching, exchange, &asks, &entry, (age, ttl)).map(CacheAnswer::Answered)
        }
        CacheLookup::Nothing { key, .. } if asks.only_if_cached => {
            Box::pin(without_member(caching, exchange, &asks, &key)).await
        }
        CacheLookup::Nothing { key, why, stale, other } => {
            let known = other.or_else(|| stale.clone());
            let mut fetch = Fetch::new(caching, exchange, asks, key, why, stale);
            fetch.is_low = low::is_low(route, target, exchange);
            fetch.turn = fetch.turn_in(route, target, exchange);
            if let Some(known) = known {
                fetch.select(exchange, &known.head);
            }
            // Boxed: most requests never get here, and should not carry the room for it.
            Box::pin(join_flight(fetch, (target, route.early_hints.as_deref()), exchange, client)).await
        }
    }
}

/// The request forbids to ask a member (`only-if-cached`). Memcached may have what memory lacks.
async fn without_member(
    caching: &Caching,
    exchange: &mut Exchange,
    asks: &RequestDirectives,
    key: &[u8],
) -> Result<CacheAnswer, Refusal> {
    if caching.stores
        && ask_memcached(caching, key, exchange).await
        && let CacheLookup::Good { entry, age, ttl, .. } = find(caching, exchange, asks, Moment::now())
    {
        return serve(caching, exchange, asks, &entry, (age, ttl)).map(CacheAnswer::Answered);
    }
    exchange.log_facts.cache = Some(CacheStatus::OnlyIfCached);
    Err(Refusal::OnlyIfCached)
}

/// The stored response that replaces one which broke off before the client had received any of it. The fetch with its stored response is
/// gone by then, so the cache is asked again.
pub(super) fn stand_in(
    caching: &Caching,
    exchange: &mut Exchange,
    refusal: &Refusal,
) -> Option<Result<Whole, Refusal>> {
    let (asks, admitted) = read_directives(caching, exchange);
    if admitted.is_err() || !refusal.facts().may_fall_back {
        return None;
    }
    let now = Moment::now();
    let (entry, age) = match find(caching, exchange, &asks, now) {
        CacheLookup::Good { entry, age, .. } => (entry, age),
        CacheLookup::Nothing { stale, .. } => {
            let entry = stale?;
            let (age, _) = may_serve_on_error(&entry.freshness, &asks, now)?;
            (entry, age)
        }
    };
    exchange.log_facts.age = Some(age);
    if let Some(CacheStatus::Forwarded { stored, collapsed, .. }) = &mut exchange.log_facts.cache {
        // The log facts said that the answer was stored and shared. It broke off, so neither is true.
        (*stored, *collapsed) = (false, false);
    }
    Some(show::at_hand(caching, exchange, &asks, &entry))
}

/// The request goes to the member unchanged, and its answer is not stored.
fn pass_on(
    caching: &Arc<Caching>,
    exchange: &Exchange,
    asks: RequestDirectives,
    why: Forward,
) -> CacheAnswer {
    // The fetch has no key: no other request can join it.
    let mut fetch = Fetch::new(caching, exchange, asks, Box::default(), why, None);
    fetch.stores = false;
    CacheAnswer::Forward(fetch)
}

/// Leads a flight, or waits for the one that leads it. This wait is taken off the time that the client waits for its response, so later
/// steps get only the rest.
async fn join_flight<D: Downstream>(
    mut fetch: Box<Fetch>,
    (target, hints): (&PoolTarget, Option<&EarlyHints>),
    exchange: &mut Exchange,
    client: &mut D,
) -> Result<CacheAnswer, Refusal> {
    let mut wait_budget = WaitBudget::begin();
    // Set here, because the response may come from the fetch of another request.
    exchange.longest_pause = Some(target.response_idle_timeout);
    let shared_cache = fetch.caching.shared_cache.clone();
    let (is_usual, mut passes_on) = (fetch.may_share(), fetch.is_behind());
    // The limit is needed: two responses on their way with different `Vary` could each lead to the flight of the other, endlessly and
    // without a wait.
    for _ in (0..MOST_FLIGHTS).take_while(|_| is_usual) {
        // After an unsafe method or a purge, the answer must not come from a fetch that began before (RFC 9111 section 4.4). If what arrives
        // is stale already, the requests from now on share a new fetch: otherwise each of them would fetch for itself until all of it has come.
        // The same if the leader waits for a slot that this request would get sooner in a fair pool.
        let own = fetch.turn.take();
        let is_void = |begun, arriving: Option<&FetchOutcome>, turn: u64| {
            shared_cache.memory.is_void(&fetch.key, begun)
                || arriving.is_some_and(|arriving| fetch.is_over(exchange, arriving))
                || own.as_ref().is_some_and(|own| own.end < turn)
        };
        let landed = match shared_cache.flights.join_unless(&fetch.flight_key(), Tick::now(), is_void) {
            FlightRole::Alone => break,
            FlightRole::Arriving(fetch_outcome) => FlightResult::Shared(fetch_outcome),
            FlightRole::Leader(flight) => FlightResult::Lead(flight),
            FlightRole::Follower(waiting) => {
                let since = step_begins(exchange.trace.as_deref());
                let landed = wait(waiting, (target, hints), &mut wait_budget, exchange, client).await;
                step_ends(exchange.trace.as_deref_mut(), CacheStep::Flight, since);
                match landed {
                    // The leader has left. Others that wait may come first in the queue, so they are asked first.
                    Ok(FlightResult::Lead(_)) if std::mem::take(&mut passes_on) => continue,
                    Ok(landed) => landed,
                    Err(refusal) => {
                        // Noted as forwarded although nothing was sent: no stored response answers the request.
                        fetch.note(exchange, None, false);
                        return fetch.failed(exchange, refusal).map(CacheAnswer::Answered);
                    }
                }
            }
        };
        fetch.wait_budget = Some(wait_budget);
        let fetch_outcome = match landed {
            FlightResult::Alone => break,
            FlightResult::Lead(flight) => {
                fetch.lead(flight);
                let found = found_meanwhile(&mut fetch, exchange).await?;
                return Ok(found.map_or(CacheAnswer::Forward(fetch), CacheAnswer::Answered));
            }
            FlightResult::Shared(fetch_outcome) => fetch_outcome,
        };
        if let Some(answer) = fetch.take(exchange, &fetch_outcome) {
            return answer.map(CacheAnswer::Answered);
        }
        // The answer was for requests with other fields. Other requests like this one may wait too, so they share a flight of their own.
        if !fetch_outcome.head().is_some_and(|head| fetch.select(exchange, head)) {
            break;
        }
    }
    Ok(CacheAnswer::Forward(fetch))
}

/// Between the lookup and the start of the flight, another request may have stored the answer, or another Hostler may have put it into
/// memcached. Then no member is asked. The leader looks it up once for all requests that wait.
async fn found_meanwhile(fetch: &mut Fetch, exchange: &mut Exchange) -> Result<Option<Answer>, Refusal> {
    let caching = fetch.caching.clone();
    for is_fetched in [false, true] {
        if is_fetched && !(fetch.stores && ask_memcached(&caching, &fetch.key, exchange).await) {
            break;
        }
        match find(&caching, exchange, &fetch.asks, Moment::now()) {
            CacheLookup::Good { entry, age, ttl, .. } => {
                fetch.settle_stored(&entry);
                return serve(&caching, exchange, &fetch.asks, &entry, (age, ttl)).map(Some);
            }
            CacheLookup::Nothing { stale, .. } => fetch.stale = stale.or(fetch.stale.take()),
        }
    }
    Ok(None)
}

/// True if the answer is in memory now.
async fn ask_memcached(caching: &Caching, key: &[u8], exchange: &mut Exchange) -> bool {
    let since = step_begins(exchange.trace.as_deref().filter(|_| caching.shared_cache.has_tier()));
    let is_fetched = caching.shared_cache.fetch(key).await;
    step_ends(exchange.trace.as_deref_mut(), CacheStep::Memcached, since);
    is_fetched
}

async fn wait<D: Downstream>(
    waiting: FlightWait<FetchOutcome>,
    (target, mut hints): (&PoolTarget, Option<&EarlyHints>),
    wait_budget: &mut WaitBudget,
    exchange: &mut Exchange,
    client: &mut D,
) -> Result<FlightResult<FetchOutcome>, Refusal> {
    exchange.deadline.set_at(wait_budget.until(target));
    let before = wait_budget.before_wait(target);
    let mut waiting = pin!(waiting);
    let outcome = poll_fn(|cx| {
        loop {
            if let Poll::Ready(landed) = waiting.as_mut().poll(cx) {
                return Poll::Ready(Ok(landed));
            }
            if client.poll_left(cx).is_ready() {
                return Poll::Ready(Err(Refusal::ClientLeft));
            }
            if let Some(hints) = hints.take() {
                hints.send(exchange, client, cx);
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
    use hostler_cache::{CachingRules, Flight, Freshness, Query, Selecting, Vary};
    use hostler_wire::{BodyLength, Limits, ResponseHead};
    use tokio::time::{Duration, Instant, sleep_until};

    use super::*;
    use crate::cache::{IncomingAnswer, IncomingBody, SharedCache, StorageKey};
    use crate::exchange::{Edit, NoClient};
    use crate::gateway::tests::{exchange, journal, seconds, target};

    fn caching(collapses: bool) -> Arc<Caching> {
        let shared_cache = Arc::new(SharedCache::new(1 << 20, 1 << 16, journal()));
        let (rules, query) = (CachingRules::default(), Query::AsSent);
        let told = false.into();
        Arc::new(Caching { rules, query, route: 0, stores: true, collapses, shared_cache, told })
    }

    /// A request for a URL that another request already fetches.
    fn second() -> (Exchange, Box<Fetch>, Flight<FetchOutcome>) {
        let mut exchange = exchange();
        exchange.head.parse(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", &Limits::default()).unwrap();
        let caching = caching(false);
        let (asks, _) = read_directives(&caching, &exchange);
        let fetch = Fetch::new(&caching, &exchange, asks, b"key"[..].into(), Forward::UriMiss, None);
        let FlightRole::Leader(flight) = caching.shared_cache.flights.join(&fetch.flight_key(), Tick::now())
        else {
            panic!("there is no earlier request");
        };
        (exchange, fetch, flight)
    }

    /// The flight key of a request with this field, or with a certificate that Hostler tells the member of.
    fn flight_key(collapses: bool, field: &str, value: &str) -> Vec<u8> {
        let mut exchange = exchange();
        let line = if field.is_empty() { String::new() } else { format!("{field}: {value}\r\n") };
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{line}\r\n");
        exchange.head.parse(head.as_bytes(), &Limits::default()).unwrap();
        exchange.client.peer_trusted = true;
        if field.is_empty() {
            exchange.to_member.own.push(Edit::Set("Client-Cert".into(), value.into()));
        }
        let caching = caching(collapses);
        let (asks, _) = read_directives(&caching, &exchange);
        Fetch::new(&caching, &exchange, asks, b"key"[..].into(), Forward::UriMiss, None).flight_key()
    }

    #[tokio::test]
    async fn clients_with_different_credentials_share_no_fetch_where_any_response_is_shared() {
        for field in ["", "Client-Cert", "X-SSL-Client-DN", "x-api-key", "X-Auth-Token"] {
            assert_ne!(flight_key(true, field, "a"), flight_key(true, field, "b"), "{field}");
            assert_eq!(flight_key(true, field, "a"), flight_key(true, field, "a"), "{field}");
            assert_eq!(flight_key(false, field, "a"), flight_key(false, field, "b"), "{field}");
        }
        assert_eq!(flight_key(true, "User-Agent", "a"), flight_key(true, "User-Agent", "b"));
    }

    /// Runs `then` after `wait`.
    async fn after(wait: Duration, then: impl FnOnce()) {
        sleep_until(Instant::now() + wait).await;
        then();
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_for_another_fetch_shortens_the_wait_for_a_slot() {
        let (target, (mut exchange, fetch, flight)) = (target(), second());
        let began = Instant::now();
        tokio::spawn(after(seconds(20), || drop(flight)));
        let Ok(CacheAnswer::Forward(fetch)) =
            join_flight(fetch, (&target, None), &mut exchange, &mut NoClient).await
        else {
            panic!("this request leads now");
        };
        assert_eq!(began.elapsed(), seconds(20));
        let until = fetch.wait_budget.map(|wait_budget| wait_budget.until(&target) - began);
        assert_eq!(until, Some(seconds(30)));
    }

    /// An answer that is arriving, for requests with this value of the field that its `Vary` names.
    fn arriving(fetch: &Fetch, name: &str, value: &str) -> FetchOutcome {
        let mut head = ResponseHead::with_status(200);
        head.fields.add(b"Vary", name.as_bytes());
        let value = Some(value.as_bytes().into());
        let fields = [Selecting { name: name.into(), value }].into();
        FetchOutcome::Arriving(Arc::new(IncomingAnswer {
            place: StorageKey {
                shared_cache: fetch.caching.shared_cache.clone(),
                key: fetch.key.clone().into(),
            },
            head: head.into(),
            length: BodyLength::Chunked,
            vary: Vary { fields, ..Vary::default() },
            freshness: Ok(Freshness::default()),
            incoming_body: IncomingBody::full("".into()),
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_does_not_go_round_between_arriving_answers_that_vary_by_different_fields() {
        let (mut exchange, mut fetch, first) = second();
        exchange
            .head
            .parse(b"GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 1\r\n\r\n", &Limits::default())
            .unwrap();
        let (by_a, by_b) = (arriving(&fetch, "a", "2"), arriving(&fetch, "b", "2"));
        first.arrive(&by_a);
        let mut flights = Vec::new();
        for (selected, answer) in [(&by_a, &by_b), (&by_b, &by_a)] {
            assert!(fetch.select(&exchange, selected.head().unwrap()));
            let key = fetch.flight_key();
            let FlightRole::Leader(flight) = fetch.caching.shared_cache.flights.join(&key, Tick::now())
            else {
                panic!("there is no earlier request");
            };
            flight.arrive(answer);
            flights.push(flight);
        }
        fetch.selection.clear();
        let asked = join_flight(fetch, (&target(), None), &mut exchange, &mut NoClient).await;
        let Ok(CacheAnswer::Forward(fetch)) = asked else { panic!("none of the answers is for it") };
        assert!(fetch.flight.is_none(), "it fetches for itself");
    }

    #[tokio::test(start_paused = true)]
    async fn what_becomes_stale_while_it_arrives_gives_way_to_one_new_fetch() {
        let (mut exchange, fetch, first) = second();
        exchange.head.parse(b"GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\n\r\n", &Limits::default()).unwrap();
        first.arrive(&arriving(&fetch, "a", "1"));
        let (key, flights) = (fetch.flight_key(), fetch.caching.shared_cache.flights.clone());
        let asked = join_flight(fetch, (&target(), None), &mut exchange, &mut NoClient).await;
        let Ok(CacheAnswer::Forward(fetch)) = asked else { panic!("a stale answer is for no later request") };
        assert!(fetch.flight.is_some(), "it fetches for all that come from now on");
        assert!(
            matches!(flights.join(&key, Tick::now()), FlightRole::Follower(_)),
            "the next one waits for it"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_does_not_count_in_the_wait_for_another_fetch() {
        let (target, (mut exchange, fetch, flight)) = (target(), second());
        let (began, pool) = (Instant::now(), target.pool.clone());
        pool.pause();
        tokio::spawn(after(seconds(20), move || pool.resume()));
        let asked = join_flight(fetch, (&target, None), &mut exchange, &mut NoClient).await;
        assert!(matches!(asked, Err(Refusal::AnswerTimeout)));
        let waited = began.elapsed();
        assert!((seconds(50)..seconds(51)).contains(&waited), "{waited:?}");
        let said = exchange.log_facts.cache.map(|cache| cache.to_string());
        assert_eq!(said.as_deref(), Some("fwd=uri-miss"), "for Cache-Status");
        drop(flight);
    }
}
