//! The steps of a request, in the order in which they happen. Knows no client protocol.

mod account;
mod answer;
mod cached;
mod call;
mod crawler;
mod death_count;
mod development;
mod early;
mod expected;
mod fair;
mod fallback;
mod field_lines;
mod files;
mod health;
mod hedge;
mod hedging;
mod hints;
mod hypernova;
mod identity;
mod kind;
mod line;
mod low;
mod native;
mod poison;
mod poison_settings;
mod prefetch;
mod prepare;
mod rate_limit;
mod redirect;
pub mod refusal;
mod request_key;
mod retry;
mod rewrite;
mod spool;
mod sticky;
mod stream;
mod suspects;
mod target;
#[cfg(test)]
mod tests;
mod wait;
mod when;
mod worker_hold;

use std::any::Any;
use std::pin::pin;
use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use hostler_wire::{BodyLength, Name, Whole};

use crate::exchange::{Body, BodyError, Counters, Downstream, Exchange, MemoryBudget, RequestKind, clock};
use crate::route::{MarkedPath, Table};
use cached::CacheAnswer;
use call::{CONFIGURED_RETRY, call};

pub use answer::{Answer, Failed, Streamed};
pub use development::{DevelopmentPages, DevelopmentState};
pub use expected::{ExpectedCosts, ExpectedView, OrderView};
pub use fair::{FairKeys, FairView};
pub use fallback::FallbackAnswer;
pub use health::{Health, HealthProbe, HealthView, Watched};
pub use hedging::{Hedge, HedgeView, Hedging};
pub use hints::{EarlyHints, HintsView, HostHintsView};
pub use identity::log_name;
pub use kind::{RegistrarRules, RouteKind, RoutePresence, UnroutedRules};
pub use line::{AccessFormat, access_line};
pub use low::low_requests;
pub use poison::Poison;
pub use poison_settings::PoisonSettings;
pub use prepare::Changes;
pub use rate_limit::{LimitScope, RateLimitView, RateLimiter};
pub use refusal::{Objection, Refusal, RefusalFacts};
pub use retry::{Attempt, FailedAttempt, NextAttempt, RetryPolicy};
pub use rewrite::Rewrite;
pub use spool::SpoolSettings;
pub use sticky::{Stickiness, StickyKey, StickyView};
pub use suspects::{Convicted, KeptOff, SuspectsView};
pub use target::{PoolTarget, PoolTargetSettings, Route, Target};
pub use when::When;

/// The routes and what all requests share. There is one.
pub struct Gateway {
    /// The route table. A reload replaces the whole table.
    pub routes: ArcSwap<Table<Arc<Route>>>,
    /// Where and how request bodies are read before a slot is taken.
    pub spool: ArcSwap<SpoolSettings>,
    /// The memory budget for the bodies of all requests.
    pub request_memory: Arc<MemoryBudget>,
    /// The rules while other programs may register routes. None without a registrar.
    pub registrar: ArcSwapOption<RegistrarRules>,
    /// The state behind the health checks of Hostler itself.
    pub health: Arc<Health>,
    /// Writes the access line of an exchange if its format is not one of the journal's.
    pub access_format: Option<AccessFormat>,
    /// Pages for the developer of an app. None except with `hostler run --watch`.
    pub development: Option<DevelopmentPages>,
    /// Counts requests that matched no route, and input that was not a valid request.
    pub unrouted: Arc<Counters>,
}

impl Gateway {
    /// Answers one request by its route. The exchange keeps the route for what follows the answer.
    pub async fn answer<D: Downstream>(
        &self,
        exchange: &mut Exchange,
        client: &mut D,
        thread: usize,
    ) -> Result<Answer, Failed> {
        if let Some(health) = self.health_check(exchange) {
            return Ok(Answer::Whole(health));
        }
        let route = self.undisputed_route(exchange)?.ok_or_else(|| self.unrouted(exchange))?;
        exchange.enter(&route.pattern, &route.counters);
        let answered = self.answer_by(&route, exchange, client, thread).await;
        if answered.is_ok() && !route.takes_batches() {
            // The request is not sent again, and the response may go on for long. Only the fallback of a batch still needs the body.
            exchange.body = Body::None;
        }
        // Moved, not cloned: threads would contend for the reference count.
        exchange.route = Some(route);
        if let Ok(Answer::Whole(_) | Answer::Streamed(_) | Answer::Tunnel(_)) = &answered {
            exchange.let_route_go();
        }
        answered
    }

    /// Read from top to bottom, this is the life of a request: it is prepared, then answered by Hostler itself, or else by a pool.
    async fn answer_by<D: Downstream>(
        &self,
        route: &Arc<Route>,
        exchange: &mut Exchange,
        client: &mut D,
        thread: usize,
    ) -> Result<Answer, Failed> {
        begin(route, exchange, client).await?;
        files::check_method(route, exchange)?;
        if route.files_first.is_some()
            && let Some(answer) = files::first(route, exchange).await?
        {
            return Ok(answer);
        }
        native::introduce(route, exchange);
        if let Some(answer) = before_pool(route, exchange)? {
            return Ok(Answer::Whole(answer));
        }
        if let Some(pages) = &self.development
            && let Target::Pool(target) = &route.target
            && let Some(page) = Box::pin(pages.answer(&target.name, exchange)).await
        {
            return Ok(Answer::Whole(page));
        }
        let fetch = match (&route.caching, &route.target) {
            (Some(caching), Target::Pool(target)) => {
                match cached::ask(caching, (route, target), exchange, client, thread).await {
                    Ok(CacheAnswer::Answered(answer)) => return Ok(answer),
                    Ok(CacheAnswer::Forward(fetch)) => Some(fetch),
                    Err(refusal) => return Err(fall_back(route, exchange, refusal).await),
                }
            }
            _ => None,
        };
        self.take_body(exchange, client, route).await?;
        let target = match &route.target {
            Target::Fixed(whole) => return Ok(Answer::of_own(whole.clone(), route.has_encoded())),
            Target::Redirect(redirect) => return Ok(redirect::answer(redirect, exchange)?),
            Target::Files(files) => return Ok(files::answer(files, exchange).await?),
            Target::Native(native) => return Ok(native::answer(native, route, exchange)),
            Target::Pool(target) => target,
        };
        let at = (&**route, target);
        exchange.late_answer = cached::late_answer(&self.routes, exchange);
        let answered = match (fetch, &route.kind) {
            // Pinned here, because `await` would move the future, which is large.
            (None, None) => {
                pin!(call(&CONFIGURED_RETRY, at, exchange, client, thread)).await.map(Answer::from)
            }
            (None, Some(kind)) => call(&**kind, at, exchange, client, thread).await.map(Answer::from),
            // Boxed, so that requests without a cache do not carry the room for it.
            (Some(fetch), _) => Box::pin(fetch.run(at, exchange, client, thread)).await,
        };
        cached::invalidate(&self.routes, exchange, &answered);
        let answered = answered.and_then(|answer| stream::begin(answer, target, exchange));
        // The order: a fresh answer, else a stale one from the cache, else the fallback, else the refusal.
        match answered {
            Ok(answer) => {
                if let Answer::Tunnel(_) = answer {
                    target.poison.settle_tunnel(exchange);
                }
                Ok(answer)
            }
            Err(refusal) => {
                exchange.log_facts.retry_after = target.meter.retry_after();
                Err(fall_back(route, exchange, refusal).await)
            }
        }
    }

    /// The answer, if the request is a balancer's health check. Its host, path and scheme do not matter.
    pub fn health_check(&self, exchange: &mut Exchange) -> Option<Whole> {
        let registrar = self.registrar.load();
        let RegistrarRules { health_agent, unrouted } = registrar.as_deref()?;
        let agent = exchange.head.fields.first(Name::UserAgent)?;
        if health_agent.is_empty() || agent != &**health_agent {
            return None;
        }
        exchange.is_health_check = true;
        Some(unrouted.health(exchange))
    }

    /// The same for a request with an empty `Host`, which only a health check may have. Returns the refusal of the registrar's rules for
    /// any other request. If these rules have none for it, returns `refusal`.
    pub fn without_host(&self, exchange: &mut Exchange, refusal: Refusal) -> Result<Whole, Refusal> {
        let registrar = self.registrar.load();
        match registrar.as_ref().filter(|rules| rules.unrouted.allows_empty_host()) {
            Some(rules) => self.health_check(exchange).ok_or_else(|| rules.unrouted.refusal(exchange)),
            None => Err(refusal),
        }
    }

    /// What the client gets after an answer broke off before any of it was sent: a stale answer, else the fallback, else the refusal.
    pub async fn instead(&self, exchange: &mut Exchange, refusal: Refusal) -> Result<Whole, Failed> {
        if let Some(registered) = &exchange.registered {
            registered.take_back_answer(&mut exchange.to_client);
        }
        exchange.log_facts.bytes_out = 0;
        // The worker has not answered whole. The end of the call tells whether it has died.
        exchange.is_suspect = false;
        if exchange.pending_end.is_none() {
            exchange.turn = None;
        }
        let Some(route) = exchange.route.take() else { return Err(refusal.into()) };
        let outcome = match as_route(&route) {
            Some(route) => stand_in(route, exchange, refusal).await,
            None => Err(refusal.into()),
        };
        exchange.route = Some(route);
        outcome
    }

    /// The input is not a valid request, so its route is unknown.
    pub fn enter_unread(&self, exchange: &mut Exchange) {
        if let Some(rules) = &*self.registrar.load() {
            rules.unrouted.unread(exchange);
        }
    }

    /// Counts an exchange that has ended, on its route.
    pub fn settle(&self, exchange: &mut Exchange) {
        if exchange.is_health_check {
            return;
        }
        let counters = exchange.counters.as_ref().unwrap_or(&self.unrouted);
        let kind = RequestKind::new(exchange.scheme, exchange.head.method(), exchange.log_facts.status);
        let time = exchange.timings.total(&exchange.log_facts, clock::now());
        counters.count(kind, time, &exchange.log_facts);
        account::close(exchange);
        if let Some(expected) = &exchange.log_facts.expected {
            expected.learner.learn(exchange);
        }
        // A kept-alive connection keeps its exchange, and a reload may remove the route before the next request.
        let route = exchange.route.take();
        if (exchange.is_suspect || exchange.pending_end.is_some())
            && let Some(Route { target: Target::Pool(target), .. }) = route.as_ref().and_then(as_route)
        {
            target.poison.settle(exchange);
        }
    }

    /// The pattern of the route that takes the request.
    pub fn pattern(&self, exchange: &Exchange) -> Option<Arc<str>> {
        Some(self.undisputed_route(exchange).ok()??.pattern.clone())
    }

    /// Why a request that matches no route is refused.
    fn unrouted(&self, exchange: &mut Exchange) -> Refusal {
        self.registrar.load().as_ref().map_or(Refusal::NoRoute, |rules| rules.unrouted.refusal(exchange))
    }

    /// The route of the request: the most specific one whose conditions it meets. A route to a pool is refused if an app could read the
    /// path as that of another route. Files and redirects read paths exactly as the routes do, so they need no such check.
    fn undisputed_route(&self, exchange: &Exchange) -> Result<Option<Arc<Route>>, Refusal> {
        let (routes, host, path) = (self.routes.load(), exchange.host(), MarkedPath::of(exchange.path()));
        let fits = |route: &Arc<Route>| {
            route.when.as_ref().is_none_or(|when| when.holds(exchange))
                && route.presence() != RoutePresence::Gone
        };
        let is_empty = |route: &Arc<Route>| route.presence() == RoutePresence::Empty;
        let Some(route) = routes.find_yielding(host, path, &fits, &is_empty) else { return Ok(None) };
        // An empty route that has yielded to this one must not count for other readings of the path either.
        let have_yielded = !is_empty(route);
        let fits = |route: &Arc<Route>| fits(route) && !(have_yielded && is_empty(route));
        if let Target::Pool(_) = &route.target
            && routes.is_disputed(host, path, route, &fits)
        {
            return Err(Refusal::Target("an app could read its path as the path of another route"));
        }
        Ok(Some(route.clone()))
    }

    /// Takes the request's body. It is read whole unless the route streams it: no slot is held while a client sends.
    async fn take_body<D: Downstream>(
        &self,
        exchange: &mut Exchange,
        client: &mut D,
        route: &Route,
    ) -> Result<(), Refusal> {
        client.allow_body(route.max_body);
        exchange.streams = route.streams_body;
        let refuse = |exchange: &mut Exchange, error: BodyError| match &route.target {
            Target::Native(native) => native::refuse(native, exchange, error),
            _ => error.into(),
        };
        match exchange.length {
            BodyLength::Known(0) => return Ok(()),
            BodyLength::Known(length) if length > route.max_body => {
                return Err(refuse(exchange, BodyError::TooLarge(route.max_body)));
            }
            // A request that offers another protocol is read whole before the switch.
            _ if route.streams_body && exchange.offer.is_none() => {
                exchange.body = Body::Streaming;
                return Ok(());
            }
            _ => {}
        }
        early::check(route, exchange)?;
        let mut spool = self.spool.load_full();
        if let Target::Native(_) = &route.target {
            // These bodies are short and read at once, so they stay in memory and never go to a file.
            Arc::make_mut(&mut spool).memory = usize::MAX;
        }
        let account = exchange.memory.get_or_insert_with(|| self.request_memory.account()).clone();
        let read = spool::read_whole(client, exchange.length, &spool, &account).await;
        (exchange.body, exchange.log_facts.bytes_in) = read.map_err(|error| refuse(exchange, error))?;
        exchange.trailers = client.trailers().cloned();
        Ok(())
    }
}

/// Notes what the route changes, and refuses the request if it is over a rate limit.
async fn begin<D: Downstream>(route: &Route, exchange: &mut Exchange, client: &mut D) -> Result<(), Refusal> {
    route.changes.begin(exchange)?;
    let Err(refusal) = rate_limit::admit(&route.limits, exchange) else { return Ok(()) };
    match &route.target {
        Target::Pool(target) => account::open(target, exchange),
        Target::Native(native) => native::explain(native, exchange, &refusal, &refusal),
        _ => {}
    }
    // Boxed, because few requests need it.
    Box::pin(early::discard_arrived(client, exchange)).await;
    Err(refusal)
}

/// Checks a request that goes to a pool. Returns the answer if the request must not go further.
fn before_pool(route: &Route, exchange: &mut Exchange) -> Result<Option<Whole>, Refusal> {
    let Target::Pool(_) = &route.target else { return Ok(None) };
    if let Some(kind) = &route.kind {
        kind.enter(exchange)?;
    }
    rewrite::check(route.changes.rewrite.as_ref(), exchange)?;
    prepare::check_loop(exchange)?;
    prepare::leave_range_out(exchange);
    prepare::count_hop(exchange, route.traces)
}

fn as_route(route: &Arc<dyn Any + Send + Sync>) -> Option<&Route> {
    route.downcast_ref()
}

/// The name of a request to a pool, as the log may show it. None: it goes to no pool.
pub fn request_name(exchange: &Exchange) -> Option<Arc<str>> {
    let Target::Pool(target) = &exchange.route.as_ref().and_then(as_route)?.target else { return None };
    Some(target.poison.identity(exchange).name().clone())
}

/// What replaces an answer that broke off: a stored answer, else the fallback of the route.
async fn stand_in(route: &Route, exchange: &mut Exchange, refusal: Refusal) -> Result<Whole, Failed> {
    if let Some(caching) = &route.caching
        && let Some(stale) = cached::stand_in(caching, exchange, &refusal)
    {
        return stale.map_err(Failed::from);
    }
    Err(fall_back(route, exchange, refusal).await)
}

/// The route's fallback, if it has one for this request, together with the refusal.
async fn fall_back(route: &Route, exchange: &mut Exchange, refusal: Refusal) -> Failed {
    let fallback = match &route.fallback {
        Some(fallback) if refusal.facts().may_fall_back => {
            fallback::stand_in(fallback, exchange, &refusal, route.max_body).await
        }
        _ => None,
    };
    Failed { refusal, fallback }
}
