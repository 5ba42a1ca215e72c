//! What requests are expected to cost, for a pool that serves short ones first: which requests are alike, and what they have cost. The pool
//! decides the order; this module knows no queue.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hostler_dispatch::{CostLabel, CostTable};
use serde::Serialize;

use crate::exchange::{CostLearner, Exchange, ExpectedCost, LateLesson};

/// So many segments of a path are looked at.
const SEGMENTS: usize = 4;
/// A longer segment is an identifier or a title.
const LONG_SEGMENT: usize = 24;
/// The most lines in the status.
const MOST_SHOWN: usize = 20;

/// What the requests of one pool are expected to cost.
#[derive(Debug)]
pub struct ExpectedCosts {
    max_delay: Duration,
    learnt: Arc<LearntCosts>,
}

/// What has been learnt. It survives a reload.
#[derive(Debug)]
struct LearntCosts {
    /// A random one, so that clients cannot choose paths that collide.
    hasher: RandomState,
    table: Mutex<CostTable<CostName>>,
}

/// The route, and the shape of the requests within it.
#[derive(Debug)]
struct CostName {
    route: Arc<str>,
    shape: Option<String>,
}

/// A pool that serves short requests first, in the status.
#[derive(Debug, Clone, Serialize)]
pub struct OrderView {
    /// The order, as in the configuration.
    pub order: &'static str,
    /// How much later than in order of arrival a request may get its slot.
    pub max_delay_ms: u64,
    /// What requests are expected to cost, the most frequent first.
    pub expected: Vec<ExpectedView>,
}

/// Requests that are expected to cost the same.
#[derive(Debug, Clone, Serialize)]
pub struct ExpectedView {
    /// The pattern of the route.
    pub route: String,
    /// The part of the route, such as `GET /blog/*`. None: all others of the route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<String>,
    /// For how long they are expected to hold a slot.
    pub expected_ms: f64,
    /// How many were measured.
    pub requests: u64,
}

impl ExpectedCosts {
    /// `None`: the pool serves in order of arrival. `before`: those of the same pool before a reload.
    pub fn new(max_delay: Option<Duration>, before: Option<&Arc<Self>>) -> Option<Arc<Self>> {
        let max_delay = max_delay?;
        let new = || Arc::new(LearntCosts { hasher: RandomState::new(), table: Mutex::default() });
        let learnt = before.map_or_else(new, |before| before.learnt.clone());
        Some(Arc::new(Self { max_delay, learnt }))
    }

    /// How long this request is expected to hold its slot. Noted in the exchange, for the log and for what is learnt from its cost. `None`:
    /// nothing is known yet.
    pub(super) fn of(self: &Arc<Self>, exchange: &mut Exchange) -> Option<Duration> {
        if let Some(expected) = &exchange.log_facts.expected {
            return expected.cost;
        }
        let route = exchange.log_facts.route.as_ref()?;
        let kind = self.learnt.hasher.hash_one(route);
        let label = CostLabel { kind, shape: self.learnt.shape(exchange).max(1) };
        let cost = self.learnt.with(|table| table.expected(label));
        let expected = ExpectedCost { label, cost, held_in_vain: None, learner: self.clone() };
        exchange.log_facts.expected = Some(Box::new(expected));
        cost
    }

    /// What requests are expected to cost.
    pub fn view(&self) -> OrderView {
        let expected = self.learnt.with(|table| {
            let learnt = table.learnt();
            let view = learnt.iter().take(MOST_SHOWN).map(|one| ExpectedView {
                route: one.name.route.to_string(),
                shape: one.name.shape.clone(),
                expected_ms: (one.expected.as_secs_f64() * 1e5).round() / 100.0,
                requests: one.requests,
            });
            view.collect()
        });
        let max_delay_ms = u64::try_from(self.max_delay.as_millis()).unwrap_or(u64::MAX);
        OrderView { order: "short_first", max_delay_ms, expected }
    }
}

impl CostLearner for ExpectedCosts {
    fn learn(&self, exchange: &Exchange) {
        let facts = &exchange.log_facts;
        let Some(expected) = &facts.expected else { return };
        let Some(held) = exchange.timings.slot_hold.or(expected.held_in_vain) else { return };
        let name = |label: CostLabel| CostName {
            route: facts.route.clone().unwrap_or_default(),
            shape: (label.shape != 0).then(|| words(exchange)),
        };
        self.learnt.with(|table| table.observe(expected.label, held, name));
    }

    fn later(&self, exchange: &Exchange) -> Option<LateLesson> {
        let (learnt, label) = (self.learnt.clone(), exchange.log_facts.expected.as_ref()?.label);
        let (route, shape) = (exchange.log_facts.route.clone().unwrap_or_default(), words(exchange));
        Some(Box::new(move |held| {
            let name = |label: CostLabel| CostName {
                route: route.clone(),
                shape: (label.shape != 0).then(|| shape.clone()),
            };
            learnt.with(|table| table.observe(label, held, name));
        }))
    }
}

impl LearntCosts {
    fn with<T>(&self, act: impl FnOnce(&mut CostTable<CostName>) -> T) -> T {
        act(&mut self.table.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Requests of one shape may cost about as much: the same method, the same path apart from what looks like an identifier, and with
    /// or without a query.
    fn shape(&self, exchange: &Exchange) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(named(exchange.head.method()));
        for segment in segments(exchange.path()) {
            hasher.write_u8(b'/');
            hasher.write(segment);
        }
        hasher.write_u8(u8::from(has_query(exchange)));
        hasher.finish()
    }
}

/// The first segments of a path.
fn segments(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.strip_prefix(b"/").unwrap_or(path).split(|byte| *byte == b'/').take(SEGMENTS).map(named)
}

/// A method or a segment. One that looks like an identifier is a star, so a shape is short whatever clients send.
fn named(word: &[u8]) -> &[u8] {
    let is_name = word.len() <= LONG_SEGMENT && !word.iter().any(u8::is_ascii_digit);
    if is_name { word } else { b"*" }
}

fn has_query(exchange: &Exchange) -> bool {
    // Of the client's target, as the path is: a rewrite may have made it shorter or longer.
    exchange.head.target().len() > exchange.path().len()
}

/// The shape in words.
fn words(exchange: &Exchange) -> String {
    let mut text = String::from_utf8_lossy(named(exchange.head.method())).into_owned() + " ";
    for segment in segments(exchange.path()) {
        text.push('/');
        text.push_str(&String::from_utf8_lossy(segment));
    }
    if has_query(exchange) {
        text.push('?');
    }
    text
}

#[cfg(test)]
mod tests {
    use hostler_wire::Limits;

    use super::*;
    use crate::gateway::tests::exchange;

    #[tokio::test]
    async fn a_shape_is_short_although_the_method_is_long() {
        let mut exchange = exchange();
        let head = format!("{} /blog/x HTTP/1.1\r\nHost: a\r\n\r\n", "M".repeat(5000));
        exchange.head.parse(head.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(words(&exchange), "* /blog/x");
    }

    #[tokio::test]
    async fn a_rewrite_does_not_hide_whether_there_is_a_query() {
        for (target, rewritten, expected) in [
            ("/api/x?a", "/x?a", "GET /api/x?"),
            ("/api/x", "/x", "GET /api/x"),
            ("/x", "/tenants/a/x", "GET /x"),
            ("/x?a", "/tenants/a/x?a", "GET /x?"),
        ] {
            let mut exchange = exchange();
            let head = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
            exchange.head.parse(head.as_bytes(), &Limits::default()).unwrap();
            exchange.rewritten = Some(rewritten.as_bytes().into());
            assert_eq!(words(&exchange), expected);
        }
    }

    #[test]
    fn what_looks_like_an_identifier_is_no_part_of_a_shape() {
        let shape = |path: &str| {
            let segments: Vec<_> = segments(path.as_bytes()).map(String::from_utf8_lossy).collect();
            segments.join("/")
        };
        assert_eq!(shape("/"), "");
        assert_eq!(shape("/blog/my-title"), "blog/my-title");
        assert_eq!(shape("/users/17/orders/8a1f"), "users/*/orders/*");
        assert_eq!(shape("/a/b/c/d/e/f"), "a/b/c/d");
        assert_eq!(shape("/blog/a-title-of-more-than-two-dozen-letters"), "blog/*");
    }
}
