//! The ledger of a pool: what its requests have cost by route and by release. Knows no queue and no workers.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use foldhash::fast::FixedState;
use hostler_dispatch::{IdlePayer, Payer, SlotCost};
use serde::Serialize;
use tokio::time::Instant;

use super::clock;
use super::costs::{BySpan, Cost, KeyCostTable, LedgerRow, Spans, millis};
use super::key_costs::KeyCosts;
use super::log_facts::Counters;

/// The costs of a route are added to the sums at most once in this many milliseconds, and when the status is read. So most requests take no
/// lock.
const ADDED_EVERY: u64 = 100;

/// What a pool's requests have cost.
#[derive(Debug)]
pub struct Ledger {
    sums: Mutex<LedgerSums>,
    accounts: Mutex<Vec<Weak<PendingCost>>>,
    began: Instant,
    /// The CPU time of a request was measured at least once. Only workers of Hostler's own have such a measurement.
    is_measured: AtomicBool,
}

#[derive(Debug)]
struct LedgerSums {
    routes: KeyCostTable,
    releases: KeyCostTable,
    /// The CPU time that workers used while they had no request.
    unowned: Spans,
    unowned_ever: Duration,
}

/// A ledger at one moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LedgerView {
    /// The sum of all routes, also of those that are not in `routes`.
    pub all: LedgerRow,
    /// The routes that have cost the most in the last minute.
    pub routes: Vec<LedgerRow>,
    /// The keys that have cost the most in the last minute. Empty without `queue.fair`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<LedgerRow>,
    /// The releases that have cost the most in the last minute. A release is all workers between two restarts of the pool. Its name is
    /// how many restarts had been ordered.
    pub releases: Vec<LedgerRow>,
    /// The CPU time that workers used while they had no request, in milliseconds. None if the CPU time is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unowned_cpu_ms: Option<BySpan>,
    /// The same since Hostler began to serve, for the metrics.
    #[serde(skip)]
    pub unowned_cpu: Option<Duration>,
}

/// One route in the ledger of its pool.
#[derive(Debug)]
pub struct RouteAccount {
    ledger: Arc<Ledger>,
    pending: Arc<PendingCost>,
    /// How long answered requests held their slot on average, in nanoseconds. Zero: none is known.
    usual_hold: AtomicU64,
}

/// What requests of one route have cost that is not in the sums yet. Times are nanoseconds.
#[derive(Debug)]
struct PendingCost {
    route: Arc<str>,
    key: u64,
    /// Count the CPU time for the metrics, as soon as it is in the sums.
    counters: Arc<Counters>,
    requests: AtomicU64,
    refused: AtomicU64,
    queue: AtomicU64,
    /// The release of the workers whose slots are counted here.
    release: AtomicU64,
    slots: AtomicU64,
    hold: AtomicU64,
    cpu: AtomicU64,
    /// When the costs were last added to the sums, in milliseconds since the ledger began.
    added: AtomicU64,
}

impl Ledger {
    /// Nothing has cost anything yet.
    pub fn new(now: Instant) -> Self {
        let table = || KeyCostTable::new(now);
        let sums = LedgerSums {
            routes: table(),
            releases: table(),
            unowned: Spans::new(now),
            unowned_ever: Duration::ZERO,
        };
        Self {
            sums: Mutex::new(sums),
            accounts: Mutex::default(),
            began: now,
            is_measured: AtomicBool::new(false),
        }
    }

    /// `keys`: what the keys of the pool have cost, if it is fair.
    pub fn view(&self, keys: Option<&KeyCosts>, now: Instant) -> LedgerView {
        let is_measured = self.is_measured.load(Ordering::Relaxed);
        let accounts: Vec<_> = self.accounts().iter().filter_map(Weak::upgrade).collect();
        accounts.iter().for_each(|pending| self.take_in(pending, now));
        self.with(|sums| LedgerView {
            all: sums.routes.all(is_measured, now),
            routes: sums.routes.rows(is_measured, now),
            keys: keys.map(|keys| keys.rows(is_measured, now)).unwrap_or_default(),
            releases: sums.releases.rows(is_measured, now),
            unowned_cpu_ms: is_measured.then(|| sums.unowned.by_span(now, |cost| millis(cost.cpu))),
            unowned_cpu: is_measured.then_some(sums.unowned_ever),
        })
    }

    /// Adds what is pending to the sums.
    fn take_in(&self, pending: &PendingCost, now: Instant) {
        let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        let nanos = |counter: &AtomicU64| Duration::from_nanos(take(counter));
        let (release, slots) = (pending.release.load(Ordering::Relaxed), take(&pending.slots));
        let of_slots =
            Cost { requests: slots, hold: nanos(&pending.hold), cpu: nanos(&pending.cpu), ..Cost::default() };
        let cost = Cost { requests: take(&pending.requests), queue: nanos(&pending.queue), ..of_slots };
        let is_refused = take(&pending.refused) > 0;
        pending.counters.add_cpu(of_slots.cpu);
        self.with(|sums| {
            if cost != Cost::default() && !sums.routes.add(pending.key, cost, is_refused, now) {
                sums.routes.bring_in(pending.key, pending.route.clone(), cost, is_refused, now);
            }
            if of_slots != Cost::default() && !sums.releases.add(release, of_slots, false, now) {
                sums.releases.bring_in(release, release.to_string().into(), of_slots, false, now);
            }
        });
    }

    fn accounts(&self) -> MutexGuard<'_, Vec<Weak<PendingCost>>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, act: impl FnOnce(&mut LedgerSums) -> T) -> T {
        act(&mut self.sums.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl RouteAccount {
    /// The account of the route with this name. `counters` count its CPU time for the metrics.
    pub fn new(ledger: &Arc<Ledger>, route: &Arc<str>, counters: &Arc<Counters>) -> Arc<Self> {
        let pending = Arc::new(PendingCost::new(route, counters));
        let mut accounts = ledger.accounts();
        if accounts.len() == accounts.capacity() {
            // Only before the list grows: one pass for each new route would take n * n steps for n routes.
            accounts.retain(|account| account.strong_count() > 0);
            let in_use = accounts.len();
            accounts.reserve(in_use.max(8));
        }
        accounts.push(Arc::downgrade(&pending));
        drop(accounts);
        Arc::new(Self { ledger: ledger.clone(), pending, usual_hold: AtomicU64::new(0) })
    }

    /// The account of a route after a reload. `before`: its account before the reload, which stays if it is in the same ledger.
    pub fn after_reload(
        before: Option<&Arc<Self>>,
        ledger: &Arc<Ledger>,
        route: &Arc<str>,
        counters: &Arc<Counters>,
    ) -> Arc<Self> {
        match before.filter(|before| Arc::ptr_eq(&before.ledger, ledger)) {
            Some(same) => same.clone(),
            None => Self::new(ledger, route, counters),
        }
    }

    /// An answered request has held its slot for this long. The last sixteen count most.
    pub fn note_hold(&self, hold: Duration) {
        let hold = u64::try_from(hold.as_nanos()).unwrap_or(u64::MAX);
        let usual = self.usual_hold.load(Ordering::Relaxed);
        // A value that another thread notes at the same moment may be lost.
        let now = if usual == 0 { hold } else { usual - usual / 16 + hold / 16 };
        self.usual_hold.store(now, Ordering::Relaxed);
    }

    /// How long answered requests of this route held their slot on average. Zero: none is known.
    pub(super) fn usual_hold(&self) -> Duration {
        Duration::from_nanos(self.usual_hold.load(Ordering::Relaxed))
    }

    /// A request of this route has ended, after this time in the queue.
    pub(super) fn count(&self, queue: Duration, is_refused: bool, now: Instant) {
        let pending = &self.pending;
        pending.requests.fetch_add(1, Ordering::Relaxed);
        add(&pending.queue, queue);
        if is_refused {
            pending.refused.fetch_add(1, Ordering::Relaxed);
        }
        self.take_in_if_due(now);
    }

    /// A slot of a request has cost this much. Returns it as a cost of the ledger.
    pub(super) fn pay_at(&self, release: u64, cost: SlotCost, now: Instant) -> Cost {
        let pending = &self.pending;
        if pending.release.load(Ordering::Relaxed) != release {
            self.ledger.take_in(pending, now);
            pending.release.store(release, Ordering::Relaxed);
        }
        if let Some(cpu) = cost.cpu {
            // Written once: each write would take the ledger out of the caches of all other threads.
            if !self.ledger.is_measured.load(Ordering::Relaxed) {
                self.ledger.is_measured.store(true, Ordering::Relaxed);
            }
            add(&pending.cpu, cpu);
        }
        if !cost.hold.is_zero() {
            pending.slots.fetch_add(1, Ordering::Relaxed);
            add(&pending.hold, cost.hold);
        }
        self.take_in_if_due(now);
        Cost { cpu: cost.cpu.unwrap_or_default(), hold: cost.hold, ..Cost::default() }
    }

    fn take_in_if_due(&self, now: Instant) {
        let since = now.saturating_duration_since(self.ledger.began).as_millis();
        let (millis, added) =
            (u64::try_from(since).unwrap_or(u64::MAX), self.pending.added.load(Ordering::Relaxed));
        if millis.saturating_sub(added) >= ADDED_EVERY {
            self.pending.added.store(millis, Ordering::Relaxed);
            self.ledger.take_in(&self.pending, now);
        }
    }
}

impl PendingCost {
    fn new(route: &Arc<str>, counters: &Arc<Counters>) -> Self {
        let key = FixedState::default().hash_one(&**route);
        let (route, counters) = (route.clone(), counters.clone());
        let (requests, refused, queue, release) = Default::default();
        let (slots, hold, cpu, added) = Default::default();
        Self { route, key, counters, requests, refused, queue, release, slots, hold, cpu, added }
    }
}

fn add(counter: &AtomicU64, time: Duration) {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(0);
    if nanos > 0 {
        counter.fetch_add(nanos, Ordering::Relaxed);
    }
}

impl Drop for RouteAccount {
    fn drop(&mut self) {
        self.ledger.take_in(&self.pending, Instant::now());
    }
}

impl Payer for RouteAccount {
    fn pay(&self, release: u64, cost: SlotCost) {
        self.pay_at(release, cost, clock::now());
    }

    fn pay_besides(&self, _: Duration) {}
}

impl IdlePayer for Ledger {
    fn pay_unowned(&self, cpu: Duration) {
        let now = Instant::now();
        self.is_measured.store(true, Ordering::Relaxed);
        self.with(|sums| {
            sums.unowned.add(Cost { cpu, ..Cost::default() }, now);
            sums.unowned_ever += cpu;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::key_costs::KeyName;
    use super::super::request_account::FairCharge;
    use super::*;

    fn account(ledger: &Arc<Ledger>, route: &str) -> Arc<RouteAccount> {
        RouteAccount::new(ledger, &route.into(), &Arc::default())
    }

    fn cost(hold: u64, cpu: Option<u64>) -> SlotCost {
        SlotCost { hold: Duration::from_millis(hold), cpu: cpu.map(Duration::from_millis) }
    }

    #[tokio::test(start_paused = true)]
    async fn routes_keys_and_releases_pay_for_the_same_requests() {
        let ledger = Arc::new(Ledger::new(Instant::now()));
        let keys = Arc::new(KeyCosts::new(Instant::now()));
        let (pages, api) = (account(&ledger, "a/*"), account(&ledger, "a/api/*"));
        let charge =
            Arc::new(FairCharge::new(keys.clone(), 7, KeyName::Crawler("Robot".into()), Some(pages.clone())));
        pages.payer(Some(&charge), &[]).pay(0, cost(40, Some(30)));
        pages.end(Some(&charge), Duration::from_millis(5), false);
        api.payer(None, &[]).pay(1, cost(200, Some(10)));
        api.end(None, Duration::ZERO, false);
        ledger.pay_unowned(Duration::from_millis(3));
        let seen = ledger.view(Some(&keys), Instant::now());
        let names = |rows: &[LedgerRow]| {
            rows.iter().map(|row| (row.name.clone(), row.share_percent)).collect::<Vec<_>>()
        };
        assert_eq!(names(&seen.routes), [("a/*".into(), 75.0), ("a/api/*".into(), 25.0)]);
        assert_eq!(names(&seen.releases), [("0".into(), 75.0), ("1".into(), 25.0)]);
        assert_eq!(names(&seen.keys), [("crawler Robot".into(), 100.0)]);
        assert_eq!(seen.unowned_cpu_ms.unwrap().minute, 3);
        let page = &seen.routes[0];
        assert_eq!((page.requests.minute, page.slot_hold_ms.minute, page.queue_wait_ms.day), (1, 40, 5));
        assert_eq!(page.cpu_ms.unwrap().quarter, 30);
        assert_eq!(seen.keys[0].cpu_ms, page.cpu_ms);
    }

    #[tokio::test(start_paused = true)]
    async fn the_sum_has_the_routes_without_a_row_as_well() {
        let ledger = Arc::new(Ledger::new(Instant::now()));
        let accounts: Vec<_> = (0..300).map(|at| account(&ledger, &format!("/{at}"))).collect();
        for account in &accounts {
            account.payer(None, &[]).pay(0, cost(20, Some(10)));
            account.end(None, Duration::ZERO, false);
        }
        let LedgerView { all, routes, .. } = ledger.view(None, Instant::now());
        assert_eq!((&*all.name, all.share_percent, all.requests.minute), ("all", 100.0, 300));
        assert_eq!((all.cpu_ms.unwrap().quarter, all.slot_hold_ms.day), (3000, 6000));
        assert_eq!(routes.len(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_lost_that_was_pending_when_the_release_changed_or_the_route_went() {
        let ledger = Arc::new(Ledger::new(Instant::now()));
        let pages = account(&ledger, "a/*");
        pages.payer(None, &[]).pay(0, cost(10, None));
        pages.payer(None, &[]).pay(1, cost(30, None));
        pages.end(None, Duration::ZERO, false);
        drop(pages);
        let seen = ledger.view(None, Instant::now());
        assert_eq!((seen.routes[0].requests.minute, seen.routes[0].slot_hold_ms.minute), (1, 40));
        let releases: Vec<_> =
            seen.releases.iter().map(|row| (&*row.name, row.slot_hold_ms.minute)).collect();
        assert_eq!(releases, [("1", 30), ("0", 10)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_route_that_stays_in_its_pool_still_knows_how_long_its_requests_take() {
        let (ledger, other) = (Arc::new(Ledger::new(Instant::now())), Arc::new(Ledger::new(Instant::now())));
        let before = account(&ledger, "a/*");
        before.note_hold(Duration::from_millis(40));
        let after = |ledger: &Arc<Ledger>| {
            RouteAccount::after_reload(Some(&before), ledger, &"a/*".into(), &Arc::default()).usual_hold()
        };
        assert_eq!((after(&ledger), after(&other)), (Duration::from_millis(40), Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn the_counters_of_a_route_have_the_cpu_time_that_the_ledger_shows() {
        let (ledger, counters) = (Arc::new(Ledger::new(Instant::now())), Arc::new(Counters::default()));
        let pages = RouteAccount::new(&ledger, &"a/*".into(), &counters);
        for _ in 0..2 {
            pages.payer(None, &[]).pay(0, cost(40, Some(30)));
        }
        let shown = ledger.view(None, Instant::now()).routes[0].cpu_ms.unwrap().minute;
        assert_eq!((shown, counters.view().worker_cpu), (60, Duration::from_millis(60)));
        pages.payer(None, &[]).pay(0, cost(40, Some(30)));
        drop(pages);
        assert_eq!(counters.view().worker_cpu, Duration::from_millis(90));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_known_cpu_time_the_shares_are_those_of_the_time_in_slots() {
        let ledger = Arc::new(Ledger::new(Instant::now()));
        account(&ledger, "a/*").payer(None, &[]).pay(0, cost(90, None));
        account(&ledger, "b/*").payer(None, &[]).pay(0, cost(10, None));
        let seen = ledger.view(None, Instant::now());
        assert_eq!(
            (seen.routes[0].share_percent, seen.routes[0].cpu_ms, seen.unowned_cpu_ms),
            (90.0, None, None)
        );
    }
}
