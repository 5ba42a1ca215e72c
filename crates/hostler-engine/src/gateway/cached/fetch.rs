//! Sends a request of the cache to a member, and handles the answer. Knows no client protocol.

mod validation;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hostler_cache::{
    CacheStatus, FetchMark, FlightOutcome, Freshness, Kept, Method, Moment, NotStored, Reuse, Validators,
    Vary, is_failure, judge, may_serve_on_error, may_share, replaces_stored, tags,
};
use hostler_wire::{BodyLength, ResponseHead};

use super::arrival::{Arrival, ArrivedHead, BrokenOff};
use super::fetch_state::{Fetch, sent_at};
use super::lookup::serve;
use super::request::{CONDITIONS, MemberRequestView};
use super::show;
use crate::cache::{self, FetchOutcome, HeadLines};
use crate::exchange::{Downstream, Edit, Exchange};
use crate::gateway::answer::Answer;
use crate::gateway::call::{ConfiguredRetry, call_within};
use crate::gateway::refusal::Refusal;
use crate::gateway::target::{PoolTarget, Route};
use crate::gateway::wait::WaitBudget;
use crate::proxy::{Call, CallBox};

impl Fetch {
    /// What another request has fetched, if it fits this request as well.
    pub(super) fn take(
        &self,
        exchange: &mut Exchange,
        fetch_outcome: &FetchOutcome,
    ) -> Option<Result<Answer, Refusal>> {
        let now = Moment::now();
        let (head, vary, freshness) = match fetch_outcome {
            FetchOutcome::Stored(entry) => (&entry.head, &entry.vary, Ok(entry.freshness)),
            FetchOutcome::Arriving(arriving) => (&arriving.head, &arriving.vary, arriving.freshness),
            FetchOutcome::Failed => return self.serve_stale(exchange, None, now),
            FetchOutcome::Form(..) => return None,
        };
        if !vary.matches(&MemberRequestView(exchange), self.side()) {
            return None;
        }
        let age = match freshness.map(|freshness| judge(&freshness, &self.asks, now)) {
            Ok(Reuse::Serve { age, .. } | Reuse::ServeAndRefresh { age, .. }) => Some(age),
            Ok(_) if !self.may_collapse(NotStored::Lifetime, head) => return None,
            Err(why) if !self.may_collapse(why, head) => return None,
            Ok(_) | Err(_) => None,
        };
        let answer = match fetch_outcome {
            FetchOutcome::Stored(entry) => show::stored(&self.caching, exchange, &self.asks, entry),
            FetchOutcome::Arriving(arriving) => {
                let reading = arriving.incoming_body.reading()?;
                show::arriving(exchange, &self.asks, &arriving.head, arriving, reading)
            }
            FetchOutcome::Form(..) | FetchOutcome::Failed => return None,
        };
        let status = Some(head.status);
        exchange.log_facts.cache =
            Some(CacheStatus::Forwarded { why: self.why, status, stored: false, collapsed: true });
        exchange.log_facts.age = age.filter(|age| *age > 0);
        Some(answer)
    }

    /// Whether what arrives is for requests like this one, but has become stale meanwhile, so that none of them may get it any more.
    pub(super) fn is_over(&self, exchange: &Exchange, fetch_outcome: &FetchOutcome) -> bool {
        let FetchOutcome::Arriving(arriving) = fetch_outcome else { return false };
        let now = Moment::now();
        !self.caching.collapses
            && arriving.freshness.is_ok_and(|freshness| !freshness.is_servable(now))
            && arriving.vary.matches(&MemberRequestView(exchange), self.side())
    }

    /// Sends the request to a member and handles the answer.
    pub async fn run<D: Downstream>(
        mut self: Box<Self>,
        (route, target): (&Route, &PoolTarget),
        exchange: &mut Exchange,
        client: &mut D,
        thread: usize,
    ) -> Result<Answer, Refusal> {
        let wait_budget = self.wait_budget.unwrap_or_else(WaitBudget::begin);
        let edits = exchange.to_client.own.len();
        loop {
            // The client does not see an answer after which the request was sent again, nor the cookie of its member.
            exchange.to_client.own.truncate(edits);
            self.note(exchange, None, false);
            let mark = exchange.to_member.own.len();
            let validates = self.prepare(exchange);
            let asked = self.caching.shared_cache.mark_fetch(&self.key);
            exchange.is_for_others = self.stores || self.flight.is_some();
            let policy = ConfiguredRetry { turn: self.flight.as_ref().map(|flight| flight.turn.clone()) };
            if let Some(turn) = &policy.turn {
                let own = self.turn_in(route, target, exchange);
                turn.store(own.map_or(0, |own| own.start), Ordering::Relaxed);
            }
            let called = call_within(&policy, wait_budget, (route, target), exchange, client, thread).await;
            exchange.to_member.own.truncate(mark);
            let call = match called {
                Ok(call) => call,
                Err(refusal) => return self.failed(exchange, refusal),
            };
            let status = call.answer().status;
            self.note(exchange, Some(status), false);
            if self.asks.method == Method::Head && status == 200 {
                self.compare(exchange, call.answer(), asked);
            }
            if is_failure(status)
                && let Some(answer) = self.serve_stale(exchange, Some(status), Moment::now())
            {
                call.abandon(exchange);
                self.settle(FlightOutcome::Shared(FetchOutcome::Failed));
                return answer;
            }
            if !(self.stores || self.flight.is_some()) {
                return Ok(call.into());
            }
            if validates && status == 304 {
                match self.confirmed(exchange, call, asked) {
                    Some(answer) => return answer,
                    // The 304 is for an answer that is no longer stored.
                    None => continue,
                }
            }
            match self.received(exchange, call, asked, target) {
                Some(answer) => return answer,
                // The answer is for this client alone, so the member gets the client's own range.
                None => continue,
            }
        }
    }

    /// Changes the request for the member. True if the member is asked to validate the stored answer.
    fn prepare(&mut self, exchange: &mut Exchange) -> bool {
        let stale = self.stale.as_ref().filter(|_| self.stores).map(|stale| HeadLines(&stale.head.fields));
        let validators = stale.as_ref().map(Validators::of).unwrap_or_default();
        let validates = validators != Validators::default();
        // As far as we know, the answer cannot be shared: the client's own conditions stay.
        self.hides_conditions = self.flight.is_some() || validates;
        if !self.hides_conditions {
            return false;
        }
        let own = &mut exchange.to_member.own;
        own.extend(CONDITIONS.map(|name| Edit::Remove(name.into())));
        let lines = [
            ("If-None-Match", validators.if_none_match),
            ("If-Modified-Since", validators.if_modified_since),
        ];
        for (name, value) in lines {
            own.extend(value.map(|value| Edit::Set(name.into(), value.into())));
        }
        validates
    }

    /// None if the request is to be sent again.
    fn received(
        &mut self,
        exchange: &mut Exchange,
        call: CallBox,
        asked: FetchMark,
        target: &PoolTarget,
    ) -> Option<Result<Answer, Refusal>> {
        let Some(arrival) = self.arrival(exchange, &call, asked) else {
            self.settle_unshared(call.answer().status);
            return self.for_one_client(exchange, call).map(Ok);
        };
        Some(match arrival.fill(&self.caching, exchange, &self.asks, call, target) {
            Ok(answer) => answer,
            Err(BrokenOff { refusal, flight }) => {
                self.flight = flight;
                self.failed(exchange, refusal)
            }
        })
    }

    /// Sends the client a response that is neither stored nor shared. If the member has not seen the client's conditions, they are
    /// evaluated here, so that a client with a valid copy gets a 304. A range is not cut out here: a member that supports ranges finds it
    /// faster. Then `None` is returned, and the request is to be sent again as the client has sent it.
    fn for_one_client(&mut self, exchange: &mut Exchange, call: CallBox) -> Option<Answer> {
        if !std::mem::take(&mut self.hides_conditions) {
            return Some(call.into());
        }
        if let Some(not_modified) = show::if_not_modified(exchange, &self.asks, call.answer()) {
            call.abandon(exchange);
            return Some(Answer::Whole(not_modified));
        }
        if !show::is_range_missing(exchange, &self.asks, call.answer()) {
            return Some(call.into());
        }
        call.abandon(exchange);
        // It is older than the answer that has just come.
        self.stale = None;
        None
    }

    /// How to read an answer that is stored or that others wait for. None if it is for this client alone.
    fn arrival(&mut self, exchange: &Exchange, call: &Call, asked: FetchMark) -> Option<Arrival> {
        let (head, now) = (call.answer(), Moment::now());
        let lines = HeadLines(&head.fields);
        let Ok(vary) = Vary::of(&lines, &MemberRequestView(exchange), self.side()) else {
            self.caching.tell_of_vary(exchange.log_facts.route.as_deref().unwrap_or_default(), head);
            self.give_up_refreshed(head.status);
            return None;
        };
        let sent = sent_at(exchange, now);
        let freshness = Freshness::of(&self.caching.rules, &self.asks, head.status, &lines, sent, now);
        let freshness = if self.stores { freshness } else { freshness.and(Err(NotStored::Lifetime)) };
        let is_fresh = freshness.is_ok_and(|freshness| freshness.is_servable(now));
        let is_shared = is_fresh || self.may_collapse(freshness.err().unwrap_or(NotStored::Lifetime), head);
        if !is_shared {
            self.settle_unshared(head.status);
        }
        // A stored response stays valid after most error statuses, and may be served if the member fails later. It also stays valid after a
        // response to one client's credentials that others must not get.
        let is_for_others = freshness.is_ok() || !self.asks.authorized;
        let replaces = is_for_others && replaces_stored(head.status);
        let mut outdated = self.stale.clone().filter(|_| replaces);
        if freshness.is_err() {
            // The member forbids now that this resource is stored.
            if let Some(outdated) = outdated.take() {
                self.caching.shared_cache.remove(&self.key, &outdated);
            }
            self.flight.as_ref()?;
        }
        // A body may end where the connection ends, unless that is an error (RFC 9112 section 8; over TLS also without close_notify). But
        // the kernel closes the connection of a killed process in the same way as that of a process that has finished, and our workers can
        // be killed.
        let may_be_cut = call.body_length() == BodyLength::UntilClose && call.is_by_worker();
        if call.is_endless() || may_be_cut {
            self.give_up_refreshed(head.status);
            return None;
        }
        let kept = Kept::of(&self.caching.rules, head.status, &lines);
        let stored = Arc::new(cache::stored(head, &kept, now));
        let own = match kept == Kept::default() {
            true => stored.clone(),
            false => Arc::new(cache::stored(head, &Kept::default(), now)),
        };
        let (tags, length) = (tags(&lines), call.body_length());
        let head = ArrivedHead { stored, own, vary, freshness, tags, length };
        let shared_key = (is_fresh && self.flight.is_none()).then(|| self.flight_key());
        let mut arrival = Arrival::new(&self.caching, &self.key, head, asked, outdated, self.flight.take())?;
        arrival.shared_key = shared_key;
        Some(arrival)
    }

    /// What a refresh got cannot be stored. The stale response would be served until the end of its time, with a refresh for each request. For
    /// a client it stays: it replaces an answer that breaks off.
    fn give_up_refreshed(&self, status: u16) {
        let is_over = self.is_refresh && !self.asks.authorized && replaces_stored(status);
        if let Some(stale) = self.stale.as_ref().filter(|_| is_over) {
            self.caching.shared_cache.remove(&self.key, stale);
        }
    }

    /// No answer came.
    pub(super) fn failed(&mut self, exchange: &mut Exchange, refusal: Refusal) -> Result<Answer, Refusal> {
        if !refusal.facts().may_fall_back {
            // The client itself is at fault. The flight is dropped unsettled, so that another waiting request leads it.
            return Err(refusal);
        }
        match self.serve_stale(exchange, None, Moment::now()) {
            Some(answer) => {
                self.settle(FlightOutcome::Shared(FetchOutcome::Failed));
                exchange.log_facts.detail = Some(failure_detail(&refusal));
                answer
            }
            None => {
                self.settle(FlightOutcome::Failed);
                Err(refusal)
            }
        }
    }

    /// Serves the stored answer in place of a member's failure.
    fn serve_stale(
        &self,
        exchange: &mut Exchange,
        status: Option<u16>,
        now: Moment,
    ) -> Option<Result<Answer, Refusal>> {
        let stale = self.stale.as_ref()?;
        let (age, ttl) = may_serve_on_error(&stale.freshness, &self.asks, now)?;
        let answer = serve(&self.caching, exchange, &self.asks, stale, (age, ttl));
        self.note(exchange, status, false);
        Some(answer)
    }

    fn may_collapse(&self, why: NotStored, head: &ResponseHead) -> bool {
        self.caching.collapses && may_share(why, &self.asks, &HeadLines(&head.fields))
    }
}

/// For the log. The client does not see it.
fn failure_detail(refusal: &Refusal) -> String {
    let reason = refusal.facts().reason;
    refusal.detail().map_or_else(|| reason.to_owned(), |detail| format!("{reason}: {detail}"))
}
