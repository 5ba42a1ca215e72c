//! The last fifteen minutes as samples of a fixed number, and what happened in them. Knows no page.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use hostler_engine::exchange::CountersView;
use hostler_engine::gateway::Refusal;
use hostler_worker::RolloutSnapshot;
use jiff::Timestamp;
use serde::Serialize;
use tokio::time::Instant;

use super::quantile::{quantile, since};
use crate::admin::status::{PoolSource, RouteSource, Sources};

/// The time between two samples.
pub const STEP: Duration = Duration::from_secs(5);
/// The samples of fifteen minutes.
const MOST_SAMPLES: usize = 180;
const MOST_MARKS: usize = 60;
/// Percentiles of routes are of the time since one of these moments, which lie a minute apart: of the last 15 minutes.
const MOST_ROUTE_MOMENTS: usize = 15;
const SAMPLES_A_MINUTE: u64 = 12;

type BucketCounts = Vec<(f64, u64)>;

/// The samples of all pools.
#[derive(Debug, Default)]
pub struct LiveHistory {
    samples: VecDeque<Arc<HistorySample>>,
    marks: VecDeque<Mark>,
    before: Option<(RouteTotals, Instant)>,
    pools: BTreeMap<Arc<str>, PoolBefore>,
    routes: BTreeMap<Arc<str>, VecDeque<BucketCounts>>,
    last_reload: Option<Timestamp>,
    taken: u64,
}

/// The figures of the time since the sample before.
#[derive(Debug, Serialize)]
pub struct HistorySample {
    /// Seconds since 1970.
    pub at: f64,
    /// Requests, answers with 5xx, and refusals, each per second, over all routes.
    pub requests: f64,
    pub errors: f64,
    pub refused: f64,
    pub pools: BTreeMap<Arc<str>, PoolSample>,
}

/// Times are in milliseconds. None: no request.
#[derive(Debug, Serialize)]
pub struct PoolSample {
    pub rate: f64,
    pub wait: [Option<f64>; 2],
    pub work: [Option<f64>; 2],
    pub in_use: usize,
    pub slots: usize,
    pub queue: usize,
}

/// Something that explains a step in the plots.
#[derive(Debug, Clone, Serialize)]
pub struct Mark {
    pub at: f64,
    pub text: String,
}

/// The percentiles of a route over the last fifteen minutes, in milliseconds.
#[derive(Debug, Serialize)]
pub struct RouteTimes {
    pub count: u64,
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub p99: Option<f64>,
}

/// The counters over all routes.
#[derive(Debug, Clone, Copy, Default)]
struct RouteTotals {
    requests: u64,
    errors: u64,
    refused: u64,
}

#[derive(Debug, Default)]
struct PoolBefore {
    granted: u64,
    wait: BucketCounts,
    work: BucketCounts,
    /// A restart runs.
    restarting: bool,
    /// When the last restart ended.
    restart_ended: Option<Instant>,
    /// Starts of workers, by their number.
    generations: BTreeMap<usize, u64>,
}

impl LiveHistory {
    /// Takes the next sample. To be called each [`STEP`].
    pub fn sample(&mut self, sources: &Sources) -> Arc<HistorySample> {
        let at = Timestamp::now().as_millisecond() as f64 / 1000.0;
        self.forget_later(at);
        if self.taken == 0 {
            self.mark(at, "Hostler started".into());
        }
        let (seconds, [requests, errors, refused]) = self.rates(totals(sources), Instant::now());
        let sources_of_pools = sources.pools.load();
        self.pools.retain(|name, _| sources_of_pools.iter().any(|source| source.name == *name));
        let mut marks = Vec::new();
        let mut pools = BTreeMap::new();
        for source in sources_of_pools.iter() {
            let before = self.pools.entry(source.name.clone()).or_default();
            pools.insert(source.name.clone(), pool_sample(source, before, seconds));
            marks.append(&mut before.changes(source));
        }
        if let Some(reload) = &*sources.last_reload.load()
            && self.last_reload.replace(reload.at) != Some(reload.at)
        {
            marks.push(if reload.ok { "configuration reloaded".into() } else { "a reload failed".into() });
        }
        marks.into_iter().for_each(|text| self.mark(at, text));
        if self.taken.is_multiple_of(SAMPLES_A_MINUTE) {
            self.note_routes(&sources.routes.load());
        }
        self.taken += 1;
        let sample = Arc::new(HistorySample { at, requests, errors, refused, pools });
        push(&mut self.samples, sample.clone(), MOST_SAMPLES);
        sample
    }

    /// The seconds since the last call by the monotonic clock, and the counts per second since then: requests, errors and refusals.
    fn rates(&mut self, totals: RouteTotals, now: Instant) -> (f64, [f64; 3]) {
        let (before, seconds) = match self.before.replace((totals, now)) {
            Some((before, at)) => (before, now.saturating_duration_since(at).as_secs_f64().max(0.001)),
            None => (totals, f64::INFINITY),
        };
        let rate = |count: fn(&RouteTotals) -> u64| per_second(count(&totals), count(&before), seconds);
        (seconds, [rate(|all| all.requests), rate(|all| all.errors), rate(|all| all.refused)])
    }

    /// Forgets the samples and marks from `at` on, in seconds since 1970: the clock was set back since, and a plot needs times that only grow.
    fn forget_later(&mut self, at: f64) {
        self.samples.retain(|sample| sample.at < at);
        self.marks.retain(|mark| mark.at < at);
    }

    pub fn samples(&self) -> Vec<Arc<HistorySample>> {
        self.samples.iter().cloned().collect()
    }

    pub fn marks(&self) -> &VecDeque<Mark> {
        &self.marks
    }

    /// The percentiles of each configured route.
    pub fn route_times(&self, routes: &[RouteSource]) -> BTreeMap<Arc<str>, RouteTimes> {
        let times = routes.iter().map(|route| {
            let now = buckets(&route.counters);
            let before = self.routes.get(&route.pattern).and_then(VecDeque::front);
            let lately = before.map_or(now.clone(), |before| since(&now, before));
            let at = |share| quantile(&lately, share).map(millis);
            let count = lately.iter().map(|(_, count)| count).sum();
            (route.pattern.clone(), RouteTimes { count, p50: at(0.5), p90: at(0.9), p99: at(0.99) })
        });
        times.collect()
    }

    fn note_routes(&mut self, routes: &[RouteSource]) {
        let patterns: HashSet<&str> = routes.iter().map(|route| &*route.pattern).collect();
        self.routes.retain(|pattern, _| patterns.contains(&**pattern));
        for route in routes {
            // A route that a reload has added counts from zero, and not from the first minute after it.
            let moments = self.routes.entry(route.pattern.clone());
            let moments = moments.or_insert_with(|| VecDeque::from([BucketCounts::new()]));
            push(moments, buckets(&route.counters), MOST_ROUTE_MOMENTS);
        }
    }

    fn mark(&mut self, at: f64, text: String) {
        push(&mut self.marks, Mark { at, text }, MOST_MARKS);
    }
}

impl RouteTotals {
    /// Adds what a route has counted. A client that has left before its answer was not refused.
    fn add(&mut self, view: &CountersView) {
        let left = Refusal::ClientLeft.facts().reason;
        let refused = view.refusals.iter().filter(|(reason, _)| **reason != left).map(|(_, count)| count);
        self.requests += view.answers.values().sum::<u64>();
        self.errors += view.answers.get("5xx").copied().unwrap_or_default();
        self.refused += refused.chain(view.fallbacks.values()).sum::<u64>();
    }
}

impl PoolBefore {
    /// What happened to the pool's workers since the last call.
    fn changes(&mut self, source: &PoolSource) -> Vec<String> {
        let Some(supervisor) = &source.supervisor else { return Vec::new() };
        let workers = supervisor.snapshot().into_iter();
        let workers = workers.map(|worker| (worker.index, worker.generation, worker.last_exit));
        self.marks(&source.name, &supervisor.rollout(), workers)
    }

    /// `workers`: the number of each, how often a worker of this number was started, and how its process ended the last time.
    fn marks(
        &mut self,
        name: &str,
        rollout: &RolloutSnapshot,
        workers: impl Iterator<Item = (usize, u64, Option<String>)>,
    ) -> Vec<String> {
        let mut changes = Vec::new();
        // A restart may begin and end between two calls.
        let ended = rollout.last.as_ref().map(|last| last.at);
        if std::mem::replace(&mut self.restart_ended, ended) != ended
            && let Some(last) = &rollout.last
        {
            changes.push(format!("{name}: restart {}", if last.succeeded { "finished" } else { "failed" }));
        }
        let restarts = rollout.running.is_some();
        if restarts && (!self.restarting || !changes.is_empty()) {
            changes.push(format!("{name}: restart began"));
        }
        self.restarting = restarts;
        for (index, starts, last_exit) in workers {
            let newest = self.generations.entry(index).or_insert(starts);
            let is_new = *newest < starts;
            *newest = starts.max(*newest);
            // One that has not died takes the place of another one, or the pool has grown.
            if let Some(why) = last_exit
                && is_new
                && !restarts
                && changes.is_empty()
            {
                changes.push(format!("{name}/{index}: started again ({why})"));
            }
        }
        changes
    }
}

fn pool_sample(source: &PoolSource, before: &mut PoolBefore, seconds: f64) -> PoolSample {
    let (pool, times) = (source.pool.snapshot(), source.meter.times());
    let (wait, work) = (times.queue_wait.buckets, times.worker_time.buckets);
    let of = |now: &BucketCounts, before: &BucketCounts| {
        let lately = if seconds.is_finite() { since(now, before) } else { Vec::new() };
        [0.5, 0.99].map(|share| quantile(&lately, share).map(millis))
    };
    let sample = PoolSample {
        rate: per_second(pool.counters.granted, before.granted, seconds),
        wait: of(&wait, &before.wait),
        work: of(&work, &before.work),
        in_use: pool.in_use,
        slots: pool.slots,
        queue: pool.queue_length,
    };
    (before.granted, before.wait, before.work) = (pool.counters.granted, wait, work);
    sample
}

fn totals(sources: &Sources) -> RouteTotals {
    let routes = sources.routes.load();
    let registered = sources.registrations.iter().map(|registrations| &registrations.counters);
    let all = routes.iter().map(|route| &route.counters).chain([&sources.unrouted]).chain(registered);
    let mut totals = RouteTotals::default();
    all.for_each(|counters| totals.add(&counters.view()));
    totals
}

/// The durations of a route's requests of all kinds.
fn buckets(counters: &hostler_engine::exchange::Counters) -> BucketCounts {
    let mut views = counters.view().durations.into_iter();
    let mut sum = views.next().map_or_else(Vec::new, |view| view.buckets);
    for view in views {
        sum.iter_mut().zip(view.buckets).for_each(|(sum, more)| sum.1 += more.1);
    }
    sum
}

fn per_second(now: u64, before: u64, seconds: f64) -> f64 {
    (now.saturating_sub(before) as f64 / seconds * 10.0).round() / 10.0
}

fn millis(seconds: f64) -> f64 {
    (seconds * 1e5).round() / 100.0
}

fn push<T>(ring: &mut VecDeque<T>, value: T, most: usize) {
    if ring.len() == most {
        ring.pop_front();
    }
    ring.push_back(value);
}

#[cfg(test)]
mod tests {
    use hostler_config::MatchPattern;
    use hostler_engine::exchange::{Counters, LogFacts, RequestKind, Scheme};
    use hostler_worker::LastRollout;

    use super::*;

    #[test]
    fn rates_are_those_of_the_time_that_has_passed() {
        let (mut history, now) = (LiveHistory::default(), Instant::now());
        let totals = |requests| RouteTotals { requests, errors: requests / 10, refused: 0 };
        assert_eq!(history.rates(totals(1000), now), (f64::INFINITY, [0.0; 3]), "nothing is known yet");
        assert_eq!(history.rates(totals(1500), now + STEP), (5.0, [100.0, 10.0, 0.0]));
        assert_eq!(history.rates(totals(1500), now + 2 * STEP), (5.0, [0.0; 3]));
    }

    #[test]
    fn a_client_that_has_left_was_not_refused() {
        let counters = Counters::default();
        for (status, reason) in [(499, "client_left"), (503, "queue_full")] {
            let log_facts = LogFacts { refusal: Some(reason), ..LogFacts::default() };
            counters.count(RequestKind::new(Scheme::Http, b"GET", status), Duration::ZERO, &log_facts);
        }
        let mut totals = RouteTotals::default();
        totals.add(&counters.view());
        assert_eq!((totals.requests, totals.errors, totals.refused), (2, 1, 1));
    }

    #[test]
    fn a_route_that_a_reload_has_added_has_the_times_of_its_first_minute() {
        let counters = Arc::<Counters>::default();
        let route = RouteSource {
            pattern: "/new".into(),
            matching: (MatchPattern::ALL, None),
            target: String::new(),
            pool: None,
            counters: counters.clone(),
            account: None,
            rate_limit: None,
            early_hints: None,
        };
        let (mut history, kind) = (LiveHistory::default(), RequestKind::new(Scheme::Http, b"GET", 200));
        let count = || counters.count(kind, Duration::from_millis(20), &LogFacts::default());
        let mut noted = |routes: &[RouteSource]| {
            history.note_routes(routes);
            history.route_times(routes).get("/new").map(|times| times.count)
        };
        assert_eq!(noted(&[]), None);
        count();
        assert_eq!(noted(std::slice::from_ref(&route)), Some(1));
        // After fifteen minutes it is gone.
        let later: Vec<_> = (0..MOST_ROUTE_MOMENTS).map(|_| noted(std::slice::from_ref(&route))).collect();
        assert_eq!((later.first(), later.last()), (Some(&Some(1)), Some(&Some(0))));
    }

    /// The number of a worker, how often one of this number was started, and how its process ended the last time.
    type SeenWorker = (usize, u64, Option<&'static str>);

    /// What is marked after each look at a pool. A look has what is known of its restarts and its workers.
    fn marked(looks: &[(RolloutSnapshot, &[SeenWorker])]) -> Vec<Vec<String>> {
        let mut before = PoolBefore::default();
        let mut marks = |rollout: &RolloutSnapshot, workers: &[SeenWorker]| {
            let workers =
                workers.iter().map(|&(index, starts, exit)| (index, starts, exit.map(str::to_owned)));
            before.marks("web", rollout, workers)
        };
        looks.iter().map(|(rollout, workers)| marks(rollout, workers)).collect()
    }

    #[test]
    fn a_restart_that_began_and_ended_between_two_looks_is_marked() {
        let start = Instant::now();
        let restarted = |seconds, succeeded, runs: bool| {
            let at = start + Duration::from_secs(seconds);
            let last = LastRollout { succeeded, result: String::new(), ago: Duration::ZERO, at };
            let running = runs.then_some(Duration::ZERO);
            RolloutSnapshot { running, last: Some(last), ..RolloutSnapshot::default() }
        };
        let found = marked(&[
            (RolloutSnapshot::default(), &[(1, 1, None)]),
            (restarted(1, true, false), &[(1, 2, None)]),
            (restarted(1, true, false), &[(1, 2, None)]),
            (restarted(2, false, true), &[(1, 2, None)]),
            (restarted(2, false, true), &[(1, 2, None), (1, 3, None)]),
            (restarted(3, true, false), &[(1, 3, None)]),
        ]);
        let expected: [&[&str]; 6] = [
            &[],
            &["web: restart finished"],
            &[],
            &["web: restart failed", "web: restart began"],
            &[],
            &["web: restart finished"],
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn only_a_worker_that_has_died_is_marked_as_started_again() {
        let calm = RolloutSnapshot::default;
        let found = marked(&[
            (calm(), &[(1, 1, None), (2, 1, None)]),
            // The pool shrinks and grows again.
            (calm(), &[(1, 1, None)]),
            (calm(), &[(1, 1, None), (2, 2, None)]),
            // Worker 1 is recycled, and its predecessor stays for its last requests.
            (calm(), &[(1, 1, None), (1, 2, None), (2, 2, None)]),
            (calm(), &[(1, 1, None), (1, 3, Some("exit code 1")), (2, 2, None)]),
            (calm(), &[(1, 1, None), (1, 3, Some("exit code 1")), (2, 2, None)]),
        ]);
        let expected: [&[&str]; 6] = [&[], &[], &[], &[], &["web/1: started again (exit code 1)"], &[]];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_clock_that_is_set_back_begins_the_plots_again() {
        let mut history = LiveHistory::default();
        let sample = |at| {
            Arc::new(HistorySample { at, requests: 0.0, errors: 0.0, refused: 0.0, pools: BTreeMap::new() })
        };
        for at in [100.0, 105.0, 110.0] {
            history.forget_later(at);
            history.samples.push_back(sample(at));
            history.mark(at, "configuration reloaded".into());
        }
        assert_eq!((history.samples.len(), history.marks.len()), (3, 3));
        history.forget_later(104.0);
        let left: Vec<_> = history.samples().iter().map(|sample| sample.at).collect();
        assert_eq!((left, history.marks.len()), (vec![100.0], 1));
    }
}
