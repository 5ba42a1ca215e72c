//! Random histories of requests through a gateway, its pool and the proxy, to simulated members that answer, hang, hang up and lie. One
//! number is one history.
//!
//! `HOSTLER_SIMULATION_SEED=N` repeats one history with all its steps, and `HOSTLER_SIMULATION_HISTORIES=N` runs that many.

mod client;
mod found;
mod judge;
mod member;
mod record;
mod script;
mod steps;
mod world;

use std::cell::{Cell, OnceCell};

use hostler_testkit::{Simulation, planted_bugs_are_found, random_histories};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use self::record::{Coverage, Record, lock};
use self::steps::{History, Step};
use self::world::World;
use crate::exchange::RequestId;
use crate::journal::Journal;
use crate::proxy::tests::Bug;

/// As many as one core runs in less than ten seconds.
const HISTORIES: u64 = 800;
/// A planted bug is found in the first of these.
const MOST_WITH_BUG: u64 = 2_000;

thread_local! {
    /// A journal has a thread, so the histories of one thread share one.
    static JOURNAL: OnceCell<Journal> = const { OnceCell::new() };
}

struct ProxyHistories;

impl Simulation for ProxyHistories {
    type History = History;
    type Step = Step;
    type Coverage = Coverage;
    type Bug = Bug;

    const TEST: &'static str = "rules_of_the_proxy";

    fn history(seed: u64) -> History {
        History::of_seed(seed)
    }

    fn steps(history: &mut History) -> &mut Vec<Step> {
        &mut history.steps
    }

    fn settings(history: &History) -> String {
        format!("{:?}", history.settings)
    }

    /// In a runtime of its own, because calls go on in tasks of the runtime. They end with it.
    fn run(
        history: &History,
        _: &Runtime,
        at: &Cell<usize>,
        trace: Option<&mut String>,
    ) -> Result<Coverage, String> {
        // The first id of a thread takes random numbers that later ones do not take.
        let _ = RequestId::made();
        fastrand::seed(history.seed);
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let journal = JOURNAL.with(|journal| journal.get_or_init(super::journal).clone());
        let (record, checked) = LocalSet::new().block_on(&runtime, async {
            let record = Record::new(history, trace.is_some());
            let world = World::new(history, record.clone(), journal);
            let checked = world.play(history, at).await;
            (record, checked)
        });
        let mut record = lock(&record);
        if let Some(trace) = trace {
            trace.push_str(&record.take_trace());
        }
        checked.map(|()| record.seen)
    }

    fn add(sum: &mut Coverage, one: Coverage) {
        sum.add(one);
    }
}

#[test]
fn random_histories_keep_the_rules_of_the_proxy() {
    if let Some(seen) = random_histories::<ProxyHistories>(HISTORIES) {
        seen.assert_complete();
    }
}

#[test]
fn each_bug_planted_into_the_proxy_is_found_and_its_number_repeats_it() {
    planted_bugs_are_found::<ProxyHistories>(&Bug::ALL, MOST_WITH_BUG);
}

/// The trace of a history, and how it ended.
fn traced(seed: u64) -> (String, Option<String>) {
    let (mut trace, unused) = (String::new(), Builder::new_current_thread().build().unwrap());
    let outcome = ProxyHistories::run(&History::of_seed(seed), &unused, &Cell::new(0), Some(&mut trace));
    (trace, outcome.err())
}

#[test]
fn a_number_makes_the_same_history_of_the_proxy_each_time() {
    let first: Vec<_> = (0..60).map(traced).collect();
    // In a thread that has run none, and in another order.
    let again = std::thread::spawn(|| (0..60).rev().map(traced).collect::<Vec<_>>()).join().unwrap();
    for (seed, (first, again)) in first.iter().zip(again.iter().rev()).enumerate() {
        assert!(first == again, "history {seed} differs:\n{}\nor\n{}", first.0, again.0);
    }
}
