//! What `hostler top` shows: the last two statuses, and what the user has chosen. Does not know how it looks.

use serde_json::Value;
use tokio::time::Instant;

use crate::admin::table::{array, text};

/// The order of pools and workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TopSort {
    /// Pools as in the configuration, workers by number.
    Number,
    /// The most requests a second first.
    Rate,
    /// The longest queue, or the most memory, first.
    Load,
}

impl TopSort {
    pub fn next(self) -> Self {
        match self {
            Self::Number => Self::Rate,
            Self::Rate => Self::Load,
            Self::Load => Self::Number,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Rate => "rate",
            Self::Load => "load",
        }
    }
}

/// What is shown below the pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TopView {
    /// The workers or members of the chosen pool.
    Workers,
    /// The oldest requests of all pools.
    Oldest,
    /// The slowest requests of all pools in the last minute.
    Slowest,
}

impl TopView {
    pub const ALL: [Self; 3] = [Self::Workers, Self::Oldest, Self::Slowest];

    pub fn next(self) -> Self {
        match self {
            Self::Workers => Self::Oldest,
            Self::Oldest => Self::Slowest,
            Self::Slowest => Self::Workers,
        }
    }
}

/// Everything that one screen is drawn from.
pub(super) struct TopState {
    pub address: String,
    pub is_coloured: bool,
    pub now: Option<(Instant, Value)>,
    before: Option<(Instant, Value)>,
    /// Why the last question had no useful answer.
    pub error: Option<String>,
    pub paused: bool,
    pub helps: bool,
    pub sort: TopSort,
    pub view: TopView,
    /// The arrows choose a worker, not a pool.
    pub in_workers: bool,
    /// The name of the chosen pool. None: the first.
    pool: Option<String>,
    /// The number and the generation: while a worker is replaced, two have its number.
    worker: Option<(u64, u64)>,
}

impl TopState {
    pub fn new(address: String, is_coloured: bool) -> Self {
        Self {
            address,
            is_coloured,
            now: None,
            before: None,
            error: None,
            paused: false,
            helps: false,
            sort: TopSort::Number,
            view: TopView::Workers,
            in_workers: false,
            pool: None,
            worker: None,
        }
    }

    /// The answer to a question.
    pub fn take(&mut self, at: Instant, outcome: Result<Value, String>) {
        match outcome {
            Err(why) => self.error = Some(why),
            Ok(_) if self.paused => self.error = None,
            Ok(status) => {
                let before = self.now.replace((at, status));
                // Another process counts from 0.
                let pid = |status: &Option<(Instant, Value)>| {
                    status.as_ref().map(|(_, status)| status["pid"].clone())
                };
                self.before = before.filter(|before| pid(&Some(before.clone())) == pid(&self.now));
                self.error = None;
            }
        }
    }

    pub fn status(&self) -> &Value {
        self.now.as_ref().map_or(&Value::Null, |(_, status)| status)
    }

    /// The pools in their order.
    pub fn pools(&self) -> Vec<&Value> {
        let mut pools: Vec<_> = array(&self.status()["pools"]).iter().collect();
        match self.sort {
            TopSort::Number => {}
            TopSort::Rate => {
                pools.sort_by(|a, b| self.pool_rate(b, GRANTED).total_cmp(&self.pool_rate(a, GRANTED)))
            }
            TopSort::Load => pools.sort_by_key(|pool| std::cmp::Reverse(pool["queue_length"].as_u64())),
        }
        pools
    }

    /// The place of the chosen pool.
    pub fn chosen_pool(&self) -> usize {
        let is_chosen = |pool: &&Value| Some(text(&pool["name"])) == self.pool.as_deref();
        self.pools().iter().position(is_chosen).unwrap_or(0)
    }

    /// The workers or members of the chosen pool in their order.
    pub fn workers(&self) -> Vec<&Value> {
        let pools = self.pools();
        let Some(pool) = pools.get(self.chosen_pool()) else { return Vec::new() };
        let key = if pool["workers"].is_array() { "workers" } else { "members" };
        let mut workers: Vec<_> = array(&pool[key]).iter().chain(array(&pool["spares"])).collect();
        match self.sort {
            TopSort::Number => {}
            TopSort::Rate => {
                workers.sort_by(|a, b| self.worker_rate(pool, b).total_cmp(&self.worker_rate(pool, a)))
            }
            TopSort::Load => workers.sort_by_key(|worker| {
                std::cmp::Reverse((worker["memory"].as_u64(), worker["in_use"].as_u64()))
            }),
        }
        workers
    }

    pub fn chosen_worker(&self) -> Option<usize> {
        let workers = self.workers();
        let is_chosen = |worker: &&Value| number_of(worker) == self.worker;
        // Its successor has the same number.
        let succeeds = |worker: &&Value| {
            let number = |chosen: Option<(u64, u64)>| chosen.map(|(number, _)| number);
            number(number_of(worker)) == number(self.worker)
        };
        let found = workers.iter().position(is_chosen).or_else(|| workers.iter().position(succeeds));
        if workers.is_empty() { None } else { Some(found.unwrap_or(0)) }
    }

    /// Moves the choice by one.
    pub fn choose(&mut self, step: isize) {
        let moved = |at: usize, count: usize| at.saturating_add_signed(step).min(count.saturating_sub(1));
        if self.in_workers {
            let workers = self.workers();
            let at = moved(self.chosen_worker().unwrap_or(0), workers.len());
            self.worker = workers.get(at).and_then(|worker| number_of(worker));
        } else {
            let pools = self.pools();
            let at = moved(self.chosen_pool(), pools.len());
            self.pool = pools.get(at).map(|pool| text(&pool["name"]).to_owned());
            self.worker = None;
        }
    }

    /// How much a counter of a pool has grown in a second.
    pub fn pool_rate(&self, pool: &Value, counter: fn(&Value) -> u64) -> f64 {
        self.rate(counter(pool), |before| {
            let earlier = array(&before["pools"]).iter().find(|earlier| earlier["name"] == pool["name"]);
            earlier.map(counter)
        })
    }

    /// How many requests a worker or member of this pool got in a second. Another pool may have the same member with the same number.
    pub fn worker_rate(&self, pool: &Value, worker: &Value) -> f64 {
        self.rate(requests(worker), |before| {
            let pools = array(&before["pools"]).iter().filter(|earlier| earlier["name"] == pool["name"]);
            let all = pools.flat_map(|pool| ["workers", "members", "spares"].map(|key| array(&pool[key])));
            let same = |other: &&Value| {
                ["id", "endpoint", "pid", "index", "member"].iter().all(|key| other[*key] == worker[*key])
            };
            all.flatten().find(same).map(requests)
        })
    }

    /// How much a counter of the whole status has grown in a second.
    pub fn total_rate(&self, counter: impl Fn(&Value) -> u64) -> f64 {
        self.rate(counter(self.status()), |before| Some(counter(before)))
    }

    fn rate(&self, count: u64, earlier: impl FnOnce(&Value) -> Option<u64>) -> f64 {
        let (Some((now, _)), Some((then, before))) = (&self.now, &self.before) else { return 0.0 };
        let span = now.saturating_duration_since(*then).as_secs_f64();
        let grown = earlier(before).map_or(0, |earlier| count.saturating_sub(earlier));
        if span > 0.0 { grown as f64 / span } else { 0.0 }
    }
}

pub(super) const GRANTED: fn(&Value) -> u64 = |pool| number(&pool["counters"]["granted"]);

/// All responses of all routes.
pub(super) fn answers(status: &Value) -> u64 {
    let counted = |route: &Value| {
        route["answers"].as_object().into_iter().flat_map(|all| all.values()).map(number).sum::<u64>()
    };
    of_routes(status).map(counted).sum()
}

/// What each configured route has counted, what requests without a route have, and what all registered routes have together.
fn of_routes(status: &Value) -> impl Iterator<Item = &Value> {
    array(&status["routes"]).iter().chain([&status["unrouted"], &status["registered"]])
}

/// The refusals of all routes by reason, the most frequent first.
pub(super) fn refusals(status: &Value) -> Vec<(String, u64)> {
    let mut sums = std::collections::BTreeMap::<&str, u64>::new();
    for route in of_routes(status) {
        for (reason, count) in route["refusals"].as_object().into_iter().flatten() {
            *sums.entry(reason).or_default() += number(count);
        }
    }
    let mut all: Vec<_> = sums.into_iter().map(|(reason, count)| (reason.to_owned(), count)).collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    all
}

pub(super) fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn requests(worker: &Value) -> u64 {
    number(if worker["requests"].is_number() { &worker["requests"] } else { &worker["granted"] })
}

fn number_of(worker: &Value) -> Option<(u64, u64)> {
    let place = worker["index"].as_u64().or(worker["id"].as_u64())?;
    Some((place, number(&worker["generation"])))
}
