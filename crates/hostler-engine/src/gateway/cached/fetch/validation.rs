//! What happens to a stored answer after the member says whether it is still valid. Knows no client protocol.

use std::sync::Arc;

use hostler_cache::{
    FetchMark, FlightOutcome, Freshness, HeadComparison, Kept, Moment, NotStored, StoredForm, Vary, compare,
    confirms, outdated, tags,
};
use hostler_coding::{self as coding, Coding};
use hostler_wire::ResponseHead;

use crate::cache::{self, Entry, FetchOutcome, HeadLines};
use crate::exchange::Exchange;
use crate::gateway::answer::Answer;
use crate::gateway::cached::fetch_state::{Fetch, sent_at};
use crate::gateway::cached::request::MemberRequestView;
use crate::gateway::cached::show;
use crate::gateway::refusal::Refusal;
use crate::proxy::CallBox;

impl Fetch {
    /// Handles a 304. It confirms the stored response if it is about that one (RFC 9111 section 4.3.4). Otherwise the stored response is
    /// removed, and `None` is returned: the request is to be sent again.
    pub(super) fn confirmed(
        &mut self,
        exchange: &mut Exchange,
        call: CallBox,
        asked: FetchMark,
    ) -> Option<Result<Answer, Refusal>> {
        let (stale, now) = (self.stale.take()?, Moment::now());
        let is_about_it = confirms(&HeadLines(&stale.head.fields), &HeadLines(&call.answer().fields));
        let fresh = cache::freshened(&stale.head, call.answer());
        call.finish(exchange);
        let shared_cache = &self.caching.shared_cache;
        if !is_about_it {
            shared_cache.remove(&self.key, &stale);
            return None;
        }
        let (entry, freshness) = self.renewed(exchange, &stale, &fresh, (asked, now));
        let entry = Arc::new(entry);
        let mut is_stored = false;
        match freshness {
            Ok(freshness) => {
                is_stored = shared_cache.exchange(&self.key, &stale, entry.clone());
                self.settle(if freshness.is_servable(now) {
                    FlightOutcome::Shared(FetchOutcome::Stored(entry.clone()))
                } else {
                    FlightOutcome::Alone
                });
            }
            // The new head forbids that the response is stored. That says nothing of other variants. If it is for the credentials of one
            // client, it says nothing of what others get either.
            Err(_) => {
                if !self.asks.authorized {
                    shared_cache.remove(&self.key, &stale);
                }
                self.settle_unshared(304);
            }
        }
        self.note(exchange, Some(304), is_stored);
        exchange.log_facts.age = Some(entry.freshness.age(now));
        // The client of the fetch also gets the fields that are not stored, such as `Set-Cookie` with `set_cookie = "drop"`.
        if Kept::of(&self.caching.rules, fresh.status, &HeadLines(&fresh.fields)) == Kept::default() {
            return Some(show::stored(&self.caching, exchange, &self.asks, &entry));
        }
        let own = Arc::new(cache::stored(&fresh, &Kept::default(), now));
        Some(show::whole(&self.caching, exchange, &self.asks, &own, entry.freshness.received, &entry.body))
    }

    /// A 200 to HEAD says what a GET would return. If the stored answer is the same, it is fresh again; if not, it is stale from now on
    /// (RFC 9111 section 4.3.5).
    pub(super) fn compare(&self, exchange: &Exchange, answer: &ResponseHead, asked: FetchMark) {
        let may_change = self.caching.stores && self.is_as_stored && !self.asks.no_store;
        let Some(stored) = self.stale.as_ref().filter(|_| may_change) else { return };
        let (shared_cache, now) = (&self.caching.shared_cache, Moment::now());
        if self.asks.authorized && !self.is_for_others(exchange, answer, now) {
            return;
        }
        let (is_page, length) = (stored.head.status == 200, stored.body.len() as u64);
        match compare(&HeadLines(&stored.head.fields), length, &HeadLines(&answer.fields)) {
            HeadComparison::Same if is_page => {
                let fresh = cache::freshened(&stored.head, answer);
                match self.renewed(exchange, stored, &fresh, (asked, now)) {
                    (entry, Ok(_)) => {
                        shared_cache.exchange(&self.key, stored, Arc::new(entry));
                    }
                    (_, Err(_)) => shared_cache.remove(&self.key, stored),
                }
            }
            HeadComparison::Unknown if is_page => {}
            HeadComparison::Same | HeadComparison::Unknown | HeadComparison::Other => {
                if let Some(freshness) = outdated(&stored.freshness, now) {
                    shared_cache.exchange(
                        &self.key,
                        stored,
                        Arc::new(with(stored, (stored.head.clone(), stored.vary.clone()), freshness, asked)),
                    );
                }
            }
        }
    }

    /// Whether others may get the answer to the credentials of this client.
    fn is_for_others(&self, exchange: &Exchange, answer: &ResponseHead, now: Moment) -> bool {
        let (rules, lines) = (&self.caching.rules, HeadLines(&answer.fields));
        Freshness::of(rules, &self.asks, answer.status, &lines, sent_at(exchange, now), now).is_ok()
    }

    /// The stored answer under its new head and the new freshness. The new `Vary` counts as well: fewer requests may match it.
    fn renewed(
        &self,
        exchange: &Exchange,
        stored: &Entry,
        fresh: &ResponseHead,
        (asked, now): (FetchMark, Moment),
    ) -> (Entry, Result<Freshness, NotStored>) {
        let (rules, lines) = (&self.caching.rules, HeadLines(&fresh.fields));
        let sent = sent_at(exchange, now);
        let freshness = Freshness::of(rules, &self.asks, fresh.status, &lines, sent, now);
        let vary = Vary::of(&lines, &MemberRequestView(exchange), self.side());
        let freshness = vary.as_ref().map_or_else(|why| Err(*why), |_| freshness);
        let head = Arc::new(cache::stored(fresh, &Kept::of(rules, fresh.status, &lines), now));
        let about = (head, vary.unwrap_or_else(|_| stored.vary.clone()));
        (with(stored, about, freshness.unwrap_or(stored.freshness), asked), freshness)
    }
}

/// The same body with another head and freshness.
fn with(
    stored: &Entry,
    (head, vary): (Arc<ResponseHead>, Vary),
    freshness: Freshness,
    asked: FetchMark,
) -> Entry {
    Entry {
        head_bytes: cache::size(&head),
        body: stored.body.clone(),
        freshness,
        vary,
        asked,
        tags: tags(&HeadLines(&head.fields)),
        forms: stored.forms.iter().filter_map(|form| with_head(form, &head)).collect(),
        head,
    }
}

/// An encoded form stays valid as long as the body does. It gets the new head too.
fn with_head(form: &StoredForm<ResponseHead>, head: &ResponseHead) -> Option<StoredForm<ResponseHead>> {
    let coding = Coding::named(form.coding)?;
    Some(StoredForm { head: Arc::new(coding::encoded(head, coding)), ..form.clone() })
}
