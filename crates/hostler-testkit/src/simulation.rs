//! Random histories, each made from one number: runs them on all cores, finds the first that fails, and leaves out of it what is not
//! needed. Does not know what a history is of.
//!
//! `HOSTLER_SIMULATION_SEED=N` repeats one history with all its steps, and `HOSTLER_SIMULATION_HISTORIES=N` runs that many.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::{Builder, Runtime};

/// What the histories are of.
pub trait Simulation {
    /// All that happens. It follows from a number.
    type History: Clone;
    /// One thing that happens.
    type Step;
    /// What has happened, to see that the histories show much.
    type Coverage: Default + Debug + Send;
    /// A bug that can be planted, to prove that the histories find it.
    type Bug: Copy + Debug + Send + Sync + 'static;

    /// The test that repeats a history: a part of its name.
    const TEST: &'static str;

    /// The history of a number.
    fn history(seed: u64) -> Self::History;

    /// The steps of a history. It can be run with fewer of them.
    fn steps(history: &mut Self::History) -> &mut Vec<Self::Step>;

    /// What a history has besides its steps.
    fn settings(history: &Self::History) -> String;

    /// Runs a history in virtual time. Returns why it went wrong, if so. `at` gets the number of each step, and `trace` a line.
    fn run(
        history: &Self::History,
        runtime: &Runtime,
        at: &Cell<usize>,
        trace: Option<&mut String>,
    ) -> Result<Self::Coverage, String>;

    /// Adds what has happened in another history.
    fn add(sum: &mut Self::Coverage, one: Self::Coverage);
}

thread_local! {
    static PLANTED: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
}

/// Plants a bug into all that this thread runs, or removes it.
fn plant<B: 'static>(bug: Option<B>) {
    PLANTED.replace(bug.map(|bug| Box::new(bug) as Box<dyn Any>));
}

/// The bug that is planted into all that this thread runs.
pub fn planted_bug<B: Copy + 'static>() -> Option<B> {
    PLANTED.with_borrow(|bug| bug.as_ref()?.downcast_ref().copied())
}

/// Whether this bug is planted.
pub fn is_planted<B: Copy + PartialEq + 'static>(bug: B) -> bool {
    planted_bug() == Some(bug)
}

/// Where and why a history went wrong. The step after the last one is the end.
#[derive(Clone, Debug, PartialEq)]
struct HistoryFailure {
    step: usize,
    what: String,
}

/// The histories that were run until one failed.
struct Searched<C> {
    /// The number of the one that failed.
    failed: Option<(u64, HistoryFailure)>,
    count: u64,
    seen: C,
}

/// Runs the first `count` histories, or what the environment says. Panics with a report about the first that fails. Returns what has
/// happened in them. `None`: only one was to be repeated.
pub fn random_histories<S: Simulation>(count: u64) -> Option<S::Coverage> {
    if let Some(seed) = number("HOSTLER_SIMULATION_SEED") {
        let (mut trace, history) = (String::new(), S::history(seed));
        let outcome = run::<S>(&history, &runtime(), Some(&mut trace));
        println!("history {seed} of {}\n{trace}{outcome:?}", S::settings(&history));
        assert!(outcome.is_ok(), "history {seed} fails");
        return None;
    }
    let count = number("HOSTLER_SIMULATION_HISTORIES").unwrap_or(count);
    let began = tokio::time::Instant::now();
    let Searched { failed, seen, .. } = search::<S>(count, None);
    println!("{count} histories in {:?}: {seen:?}", began.elapsed());
    if let Some((seed, failure)) = failed {
        panic!("{}", report::<S>(seed, &failure, &runtime()));
    }
    Some(seen)
}

/// Panics unless each of these bugs is found in the first `count` histories, the number of the history repeats it, and the history is
/// right without it.
pub fn planted_bugs_are_found<S: Simulation>(bugs: &[S::Bug], count: u64) {
    for &bug in bugs {
        let Searched { failed, count, .. } = search::<S>(count, Some(bug));
        let Some((seed, failure)) = failed else { panic!("{bug:?} is not found in {count} histories") };
        println!("{bug:?}: history {seed}, after {count}: {}", failure.what);
        plant(Some(bug));
        let again = run::<S>(&S::history(seed), &runtime(), None);
        assert_eq!(again.err(), Some(failure));
        plant::<S::Bug>(None);
        let without = run::<S>(&S::history(seed), &runtime(), None);
        assert!(without.is_ok(), "{bug:?}: history {seed} fails without the bug, too: {without:?}");
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

fn run<S: Simulation>(
    history: &S::History,
    runtime: &Runtime,
    trace: Option<&mut String>,
) -> Result<S::Coverage, HistoryFailure> {
    let at = Cell::new(0);
    let outcome = catch_unwind(AssertUnwindSafe(|| S::run(history, runtime, &at, trace)));
    let failure = |what| HistoryFailure { step: at.get(), what };
    match outcome {
        Ok(checked) => checked.map_err(failure),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).into()));
            Err(failure(format!("panic: {}", text.unwrap_or_default())))
        }
    }
}

/// The shortest history that still fails, made by leaving steps out.
fn shrunk<S: Simulation>(mut history: S::History, failure: &HistoryFailure, runtime: &Runtime) -> S::History {
    S::steps(&mut history).truncate(failure.step + 1);
    let mut at = 0;
    while at < S::steps(&mut history).len() {
        let mut shorter = history.clone();
        S::steps(&mut shorter).remove(at);
        if run::<S>(&shorter, runtime, None).is_err() {
            history = shorter;
        } else {
            at += 1;
        }
    }
    history
}

/// What a failure prints: the number, the shortest history, and its steps.
fn report<S: Simulation>(seed: u64, failure: &HistoryFailure, runtime: &Runtime) -> String {
    let short = shrunk::<S>(S::history(seed), failure, runtime);
    let mut trace = String::new();
    let what =
        run::<S>(&short, runtime, Some(&mut trace)).err().map_or(String::new(), |failure| failure.what);
    let repeat =
        format!("HOSTLER_SIMULATION_SEED={seed} cargo test --workspace --lib {} -- --nocapture", S::TEST);
    format!(
        "history {seed} fails at step {}: {}\nrepeat it: {repeat}\nthe shortest part of it that fails ({what}), with {}:\n{trace}",
        failure.step,
        failure.what,
        S::settings(&short)
    )
}

/// Runs histories until one fails.
fn search<S: Simulation>(count: u64, bug: Option<S::Bug>) -> Searched<S::Coverage> {
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let worker = || {
        plant(bug);
        let (runtime, mut seen) = (runtime(), S::Coverage::default());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= count {
                return (None, seen);
            }
            match run::<S>(&S::history(seed), &runtime, None) {
                Ok(one) => S::add(&mut seen, one),
                Err(failure) => {
                    next.store(count, Ordering::Relaxed);
                    return (Some((seed, failure)), seen);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let (mut found, mut seen) = (vec![], S::Coverage::default());
        for (failure, one) in workers.into_iter().map(|worker| worker.join().unwrap()) {
            found.extend(failure);
            S::add(&mut seen, one);
        }
        let failed = found.into_iter().min_by_key(|(seed, _)| *seed);
        let count = failed.as_ref().map_or(count, |(seed, _)| seed + 1);
        Searched { failed, count, seen }
    })
}

fn number(name: &str) -> Option<u64> {
    let (_, value) = std::env::vars_os().find(|(one, _)| one == name)?;
    let number = value.to_str().and_then(|text| text.parse().ok());
    Some(number.unwrap_or_else(|| panic!("{name}={value:?} is not a number")))
}
