//! What the cache knows of a request that it sends to a member, and the requests that wait for its answer. Sends nothing.

use std::ops::Range;
use std::sync::Arc;

use hostler_cache::{
    CacheStatus, Flight, FlightOutcome, Forward, Method, Moment, RequestDirectives, RequestSide, Selecting,
    Tick, ToldFields, Vary, is_failure,
};
use hostler_dispatch::{Claim, WorkKind};
use hostler_wire::ResponseHead;

use super::request::{self, MemberRequestView};
use crate::cache::{Caching, Entry, FetchOutcome, HeadLines};
use crate::exchange::Exchange;
use crate::gateway::target::{PoolTarget, Route};
use crate::gateway::wait::WaitBudget;

/// When the member got the request that has just been answered. The wait for its slot does not make the answer older (RFC 9111 section 4.2.3).
pub(super) fn sent_at(exchange: &Exchange, now: Moment) -> Moment {
    let since = exchange.timings.slot_since.map_or(0, |since| since.elapsed().as_millis() as u64);
    Moment(now.0.saturating_sub(since))
}

/// A request that the cache sends to a member.
pub(in crate::gateway) struct Fetch {
    pub(super) caching: Arc<Caching>,
    pub(super) asks: RequestDirectives,
    pub(super) key: Box<[u8]>,
    /// The member is told that the request came over TLS.
    pub(super) secure: bool,
    /// The fields in which a trusted proxy tells the member of another URL than that of the key.
    told: ToldFields,
    /// A part of the flight key: these fields with their values. Where requests share any response, also the client's key, and what the member is
    /// told of its certificate.
    told_values: Vec<u8>,
    /// It has a lower priority than other requests of its route.
    pub(super) is_low: bool,
    /// Its turn in a fair pool. It waits for no fetch whose turn begins later than this one ends.
    pub(super) turn: Option<Range<u64>>,
    pub(super) why: Forward,
    /// The member sees the host exactly as the cache key has it. Only then the response may be for other clients too.
    pub(super) is_as_stored: bool,
    /// The answer may be stored.
    pub(super) stores: bool,
    /// No client waits for it: it refreshes the stale response that its client has got.
    pub(super) is_refresh: bool,
    /// A part of the flight key: the request fields that the last known `Vary` names, with their values. Empty if no `Vary` is known.
    pub(super) selection: Vec<u8>,
    /// The flight that this request leads. Other requests may wait for it. None: the response is for this request alone.
    pub(super) flight: Option<Flight<FetchOutcome>>,
    /// A stored answer that needs validation. It is also served if the member fails.
    pub(super) stale: Option<Arc<Entry>>,
    /// The member does not get the client's conditional fields and its range, because the cache needs the whole response.
    pub(super) hides_conditions: bool,
    /// The rest of the time that the client waits. None: the request has not waited yet.
    pub(super) wait_budget: Option<WaitBudget>,
}

impl Fetch {
    pub(super) fn new(
        caching: &Arc<Caching>,
        exchange: &Exchange,
        asks: RequestDirectives,
        key: Box<[u8]>,
        why: Forward,
        stale: Option<Arc<Entry>>,
    ) -> Box<Self> {
        let (is_as_stored, told) = (request::is_as_stored(exchange), request::told(exchange));
        let mut told_values = request::told_values(exchange, told);
        if caching.collapses {
            request::add_credentials(exchange, &mut told_values);
        }
        // An answer to HEAD cannot answer a GET.
        let stores = caching.stores && asks.method == Method::Get && !asks.no_store && is_as_stored;
        Box::new(Self {
            caching: caching.clone(),
            asks,
            key,
            secure: request::is_secure(exchange),
            told,
            told_values,
            is_low: false,
            turn: None,
            why,
            is_as_stored,
            stores,
            is_refresh: false,
            selection: Vec::new(),
            flight: None,
            stale,
            hides_conditions: false,
            wait_budget: None,
        })
    }

    /// Whether the request allows that its answer is shared with other clients.
    pub(super) fn may_share(&self) -> bool {
        let is_wanted_anew = self.asks.no_cache || self.asks.no_store || self.asks.max_age == Some(0);
        let is_usual =
            self.asks.method == Method::Get && !self.asks.authorized && !is_wanted_anew && self.is_as_stored;
        is_usual && (self.caching.stores || self.caching.collapses && !self.asks.cookies)
    }

    /// What a stored response must match besides the request fields in its `Vary`.
    pub(super) fn side(&self) -> RequestSide {
        RequestSide { secure: self.secure, route: self.caching.route, told: self.told }
    }

    /// Requests with the same key wait for one fetch. Requests whose answers are known to differ have different keys. A request of low
    /// priority may wait in the queue for long, so others do not wait for its fetch. It waits for theirs.
    pub(super) fn flight_key(&self) -> Vec<u8> {
        let secure: &[u8] = if self.secure { b"\0s" } else { b"\0" };
        // Without conditions the key is as short as the URL allows.
        let route = self.caching.route.to_be_bytes();
        let route = if self.caching.route == 0 { &[][..] } else { &route };
        let mut key = [&*self.key, secure, route, &self.told_values, &self.selection].concat();
        if self.is_low && !self.caching.shared_cache.flights.has(&key) {
            key.extend_from_slice(b"\0low");
        }
        key
    }

    /// The turn that this request would get in its fair pool if it came now. None: it takes no turn among the keys of its class.
    pub(super) fn turn_in(
        &self,
        route: &Route,
        target: &PoolTarget,
        exchange: &Exchange,
    ) -> Option<Range<u64>> {
        let fair = target.fair.as_ref().filter(|_| !self.is_low)?;
        if target.sticky.as_ref().is_some_and(|sticky| sticky.binds(exchange, &target.pool)) {
            return None;
        }
        let kind = exchange.log_facts.route.as_deref().map(WorkKind::named);
        let (priority, fair) = (route.priority, Some(fair.key_of(exchange)));
        target.pool.turn(&Claim { priority, kind, fair, ..Claim::default() })
    }

    /// Whether the pool serves most others before it: it has a low priority, or others of its key wait in a fair pool.
    pub(super) fn is_behind(&self) -> bool {
        self.is_low || self.turn.as_ref().is_some_and(|turn| turn.end == u64::MAX)
    }

    /// The answer to another request has a `Vary`. Puts the values of the fields that it names into the flight key, so that this request
    /// joins requests with the same values. False if the key has these values already.
    pub(super) fn select(&mut self, exchange: &Exchange, answer: &ResponseHead) -> bool {
        let Ok(vary) = Vary::of(&HeadLines(&answer.fields), &MemberRequestView(exchange), self.side()) else {
            return false;
        };
        let mut selection = Vec::new();
        for Selecting { name, value } in &vary.fields {
            selection.push(0);
            selection.extend_from_slice(name.as_bytes());
            selection.push(if value.is_some() { b'=' } else { b'-' });
            selection.extend_from_slice(value.as_deref().unwrap_or_default());
        }
        let is_new = selection != self.selection;
        self.selection = selection;
        is_new
    }

    pub(super) fn lead(&mut self, flight: Flight<FetchOutcome>) {
        self.flight = Some(flight);
    }

    /// A stored answer was found after all. All requests that wait get it.
    pub(super) fn settle_stored(&mut self, entry: &Arc<Entry>) {
        self.settle(FlightOutcome::Shared(FetchOutcome::Stored(entry.clone())));
    }

    /// An answer with this status has come, and other requests must not get it.
    pub(super) fn settle_unshared(&mut self, status: u16) {
        // Only the refresh of a stale answer has a flight then. What one client gets for its credentials tells nothing of what others get.
        if self.asks.authorized {
            return drop(self.flight.take());
        }
        self.settle(if is_failure(status) { FlightOutcome::Failed } else { FlightOutcome::Alone });
    }

    pub(super) fn settle(&mut self, outcome: FlightOutcome<FetchOutcome>) {
        if let Some(flight) = self.flight.take() {
            flight.settle(outcome, Tick::now());
        }
    }

    pub(super) fn note(&self, exchange: &mut Exchange, status: Option<u16>, stored: bool) {
        exchange.log_facts.cache =
            Some(CacheStatus::Forwarded { why: self.why, status, stored, collapsed: false });
    }
}
