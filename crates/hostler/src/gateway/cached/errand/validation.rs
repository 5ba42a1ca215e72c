//! What becomes of a stored answer whose member says that it is good still, or is not. Knows no client protocol.

use std::sync::Arc;

use hostler_cache::{
    Asked, Form, Kept, Likeness, Moment, NotStored, Outcome, Terms, Vary, compare, confirms, outdated, tags,
};
use hostler_wire::ResponseHead;

use super::{Errand, Seen, is_servable};
use crate::cache::{self, Entry, Landing, Lines};
use crate::coding::{self, Coding};
use crate::exchange::Exchange;
use crate::gateway::cached::show;
use crate::gateway::{Answer, Refusal};
use crate::proxy::Call;

impl Errand {
    /// A 304 has come for what is stored: it is as good as new, but for a 304 that is about something else.
    pub(super) fn confirmed(
        &mut self,
        exchange: &mut Exchange,
        call: Box<Call>,
        asked: Asked,
    ) -> Option<Result<Answer, Refusal>> {
        let (stale, now) = (self.stale.take()?, Moment::now());
        let is_about_it = confirms(&Lines(&stale.head.fields), &Lines(&call.answer().fields));
        let fresh = cache::freshened(&stale.head, call.answer());
        call.finish(exchange);
        let stock = &self.caching.stock;
        if !is_about_it {
            stock.remove(&self.key, &stale);
            return None;
        }
        let (entry, terms) = self.renewed(exchange, &stale, &fresh, (asked, now));
        let entry = Arc::new(entry);
        match terms {
            Ok(terms) => {
                stock.exchange(&self.key, &stale, entry.clone());
                self.settle(if is_servable(&terms, now) {
                    Outcome::Shared(Landing::Stored(entry.clone()))
                } else {
                    Outcome::Alone
                });
            }
            // It must not be stored any more.
            Err(_) => {
                stock.forget(&self.key);
                self.settle(Outcome::Alone);
            }
        }
        self.note(exchange, Some(304), terms.is_ok());
        exchange.trail.age = Some(entry.terms.age(now));
        Some(show::stored(&self.caching, exchange, &self.asks, &entry))
    }

    /// A 200 to HEAD has come, and says what a GET would bring: a stored answer that is the same is as good as new, and one that
    /// is not is stale from now on (RFC 9111 section 4.3.5).
    pub(super) fn compare(&self, exchange: &Exchange, answer: &ResponseHead, asked: Asked) {
        let may_change = self.caching.stores && self.is_as_stored && !self.asks.no_store;
        let Some(stored) = self.stale.as_ref().filter(|_| may_change) else { return };
        let (stock, now) = (&self.caching.stock, Moment::now());
        let (is_page, length) = (stored.head.status == 200, stored.body.len() as u64);
        match compare(&Lines(&stored.head.fields), length, &Lines(&answer.fields)) {
            Likeness::Same if is_page => {
                let fresh = cache::freshened(&stored.head, answer);
                match self.renewed(exchange, stored, &fresh, (asked, now)) {
                    (entry, Ok(_)) => stock.exchange(&self.key, stored, Arc::new(entry)),
                    (_, Err(_)) => stock.remove(&self.key, stored),
                }
            }
            Likeness::Unknown if is_page => {}
            Likeness::Same | Likeness::Unknown | Likeness::Other => {
                if let Some(terms) = outdated(&stored.terms, now) {
                    stock.exchange(
                        &self.key,
                        stored,
                        Arc::new(with(stored, (stored.head.clone(), stored.vary.clone()), terms, asked)),
                    );
                }
            }
        }
    }

    /// What is stored under its new head, and the terms that this brings. A new `Vary` counts as well: it is for fewer now.
    fn renewed(
        &self,
        exchange: &Exchange,
        stored: &Entry,
        fresh: &ResponseHead,
        (asked, now): (Asked, Moment),
    ) -> (Entry, Result<Terms, NotStored>) {
        let (rules, lines) = (&self.caching.rules, Lines(&fresh.fields));
        let terms = Terms::of(rules, &self.asks, fresh.status, &lines, asked.at, now);
        let vary = Vary::of(&lines, &Seen(exchange), self.secure);
        let terms = vary.as_ref().map_or_else(|why| Err(*why), |_| terms);
        let head = Arc::new(cache::stored(fresh, &Kept::of(rules, fresh.status, &lines), now));
        let about = (head, vary.unwrap_or_else(|_| stored.vary.clone()));
        (with(stored, about, terms.unwrap_or(stored.terms), asked), terms)
    }
}

/// The same answer with another head, on other terms.
fn with(stored: &Entry, (head, vary): (Arc<ResponseHead>, Vary), terms: Terms, asked: Asked) -> Entry {
    Entry {
        head_bytes: cache::size(&head),
        body: stored.body.clone(),
        terms,
        vary,
        asked,
        tags: tags(&Lines(&head.fields)),
        forms: stored.forms.iter().filter_map(|form| with_head(form, &head)).collect(),
        head,
    }
}

/// What was made of a body is as good as the body, under the head that this has now.
fn with_head(form: &Form<ResponseHead>, head: &ResponseHead) -> Option<Form<ResponseHead>> {
    let coding = Coding::named(form.coding)?;
    Some(Form { head: Arc::new(coding::encoded(head, coding)), ..form.clone() })
}
