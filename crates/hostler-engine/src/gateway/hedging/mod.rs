//! What decides about second tries of requests at another member: the usual time of the answers, and a budget. Knows no requests.
//!
//! Only for pools whose members another system runs. For workers of ours one queue gives each request to a worker that can begin it at once.

mod answer_times;
mod budget;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use hostler_config::{self as config, HedgeAfter};
use serde::Serialize;

use answer_times::AnswerTimes;
use budget::HedgeBudget;

/// The second tries of one pool.
pub struct Hedging {
    settings: config::Hedge,
    budget: HedgeBudget,
    counts: Arc<HedgeCounts>,
    /// How long the answers of each route took. The routes own these figures, so a removed route takes its figures with it.
    times: Mutex<BTreeMap<Arc<str>, Weak<AnswerTimes>>>,
}

/// What stays when a reload changes the settings.
#[derive(Default)]
struct HedgeCounts {
    sent: AtomicU64,
    won: AtomicU64,
    no_budget: AtomicU64,
    no_slot: AtomicU64,
}

/// The second tries of a pool, for the Status. The counters only grow.
#[derive(Debug, Clone, Serialize)]
pub struct HedgeView {
    /// Requests that were sent to a second member.
    pub sent: u64,
    /// Those of them that the second member answered first.
    pub won: u64,
    /// Requests that were sent to no second member, because too many others had been.
    pub no_budget: u64,
    /// Requests that were sent to no second member, because none had a free slot, or requests waited.
    pub no_slot: u64,
    /// After how many milliseconds a request of each route is sent to a second member. A route with too few answers is missing.
    pub after_ms: BTreeMap<Arc<str>, f64>,
}

/// The second tries of one route.
#[derive(Clone)]
pub struct Hedge {
    hedging: Arc<Hedging>,
    times: Arc<AnswerTimes>,
}

impl Hedging {
    /// `None` if the pool has none. `before`: those of the same pool before a reload.
    pub fn new(settings: Option<&config::Hedge>, before: Option<&Arc<Self>>) -> Option<Arc<Self>> {
        let settings = settings?;
        if let Some(same) = before.filter(|before| before.settings == *settings) {
            return Some(same.clone());
        }
        let counts = before.map(|before| before.counts.clone()).unwrap_or_default();
        let (budget, times) = (HedgeBudget::new(settings.budget.0), Mutex::default());
        let settings = settings.clone();
        Some(Arc::new(Self { settings, budget, counts, times }))
    }

    /// Those of the route with this pattern.
    pub fn of_route(self: &Arc<Self>, pattern: &str) -> Hedge {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let percentile = match self.settings.after {
            HedgeAfter::Percentile(thousandths) => thousandths,
            HedgeAfter::Time(_) => 0,
        };
        times.retain(|_, of_route| of_route.strong_count() > 0);
        let before = times.get(pattern).and_then(Weak::upgrade);
        let of_route = before.unwrap_or_else(|| Arc::new(AnswerTimes::new(percentile)));
        times.insert(pattern.into(), Arc::downgrade(&of_route));
        Hedge { hedging: self.clone(), times: of_route }
    }

    pub fn view(&self) -> HedgeView {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let after = times
            .iter()
            .filter_map(|(route, of_route)| Some((route.clone(), of_route.upgrade()?)))
            .filter_map(|(route, of_route)| Some((route, self.after(&of_route)?.as_micros() as f64 / 1e3)));
        HedgeView {
            sent: count(&self.counts.sent),
            won: count(&self.counts.won),
            no_budget: count(&self.counts.no_budget),
            no_slot: count(&self.counts.no_slot),
            after_ms: after.collect(),
        }
    }

    fn after(&self, times: &AnswerTimes) -> Option<Duration> {
        match self.settings.after {
            HedgeAfter::Time(time) => Some(time),
            HedgeAfter::Percentile(_) => times.percentile(),
        }
    }
}

impl Hedge {
    /// The pool has one more request.
    pub(super) fn earn(&self) {
        self.hedging.budget.earn();
    }

    /// After which time a second member is asked. None: too little is known.
    pub(super) fn after(&self) -> Option<Duration> {
        self.hedging.after(&self.times)
    }

    /// A response has begun after this time. If the second member was faster, the first one would have taken even longer.
    pub(super) fn record(&self, time: Duration) {
        self.times.record(time);
    }

    /// A slot for a second try, if the budget allows it.
    pub(super) fn spend<L>(&self, slot: impl FnOnce() -> Option<L>) -> Option<L> {
        let Hedging { budget, counts, .. } = &*self.hedging;
        if !budget.spend() {
            count(&counts.no_budget);
            return None;
        }
        let slot = slot();
        if slot.is_none() {
            budget.give_back();
        }
        count(if slot.is_some() { &counts.sent } else { &counts.no_slot });
        slot
    }

    /// The second member has answered first.
    pub(super) fn won(&self) {
        count(&self.hedging.counts.won);
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reload_keeps_the_times_of_the_routes_that_stay() {
        let settings =
            config::Hedge { after: HedgeAfter::Time(Duration::from_millis(5)), ..config::Hedge::default() };
        let hedging = Hedging::new(Some(&settings), None).unwrap();
        let (stays, goes) = (hedging.of_route("/stays"), hedging.of_route("/goes"));
        let again = hedging.of_route("/stays");
        assert!(Arc::ptr_eq(&stays.times, &again.times));
        drop((stays, goes));
        assert_eq!(hedging.view().after_ms.into_keys().collect::<Vec<_>>(), ["/stays".into()]);
    }

    #[test]
    fn a_reload_that_changes_the_settings_keeps_the_counts() {
        let after = |millis| {
            let after = HedgeAfter::Time(Duration::from_millis(millis));
            config::Hedge { after, ..config::Hedge::default() }
        };
        let before = Hedging::new(Some(&after(5)), None).unwrap();
        before.of_route("/x").won();
        let changed = Hedging::new(Some(&after(6)), Some(&before)).unwrap();
        changed.of_route("/x").won();
        assert_eq!((before.view().won, changed.view().won), (2, 2));
    }
}
