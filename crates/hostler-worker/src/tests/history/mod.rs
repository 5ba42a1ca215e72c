//! Random histories of the workers of a pool: the real pool, plan and lifecycles with processes in virtual time. One number is one history.
//!
//! `HOSTLER_SIMULATION_SEED=N` repeats one history with all its steps, and `HOSTLER_SIMULATION_HISTORIES=N` runs that many.

mod bugs;
mod check;
mod clients;
mod delivery;
mod process;
mod rules;
mod script;
mod steps;
mod worker;
mod world;

use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::{Builder, Runtime};

use self::bugs::plant;
pub use self::bugs::{Bug, is_planted};
use self::rules::Coverage;
use self::steps::History;
use self::world::World;

/// As many as two cores run in about ten seconds.
const HISTORIES: u64 = 4_000;

/// Where and why a history went wrong. The step after the last one is the end.
#[derive(Clone, Debug)]
struct Failure {
    step: usize,
    what: String,
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// Runs a history. `trace` gets a line for each step.
fn run(history: &History, runtime: &Runtime, mut trace: Option<&mut String>) -> Result<Coverage, Failure> {
    fastrand::seed(history.seed);
    let _inside = runtime.enter();
    let at = AtomicU64::new(0);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::new(history, runtime);
        for (index, step) in history.steps.iter().enumerate() {
            at.store(index as u64, Ordering::Relaxed);
            world.take(step, history.is_wild);
            if let Some(trace) = &mut trace {
                let _ = writeln!(trace, "{index:3} {step:?}\n      {}", state(&world));
            }
            if let Some(error) = world.error.take() {
                return Err(error);
            }
        }
        at.store(history.steps.len() as u64, Ordering::Relaxed);
        let seen = world.finish();
        if let Some(trace) = &mut trace {
            let _ = writeln!(trace, "end\n      {}", state(&world));
        }
        world.error.take().map_or(Ok(seen), Err)
    }));
    let step = at.load(Ordering::Relaxed) as usize;
    match outcome {
        Ok(checked) => checked.map_err(|what| Failure { step, what }),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).into()));
            Err(Failure { step, what: format!("panic: {}", text.unwrap_or_default()) })
        }
    }
}

fn state(world: &World<'_>) -> String {
    let mut text = String::new();
    for (task, worker) in &world.workers {
        let (index, standing, state) = (worker.status.index, worker.life.standing(), worker.life.state());
        let name = format!("{state:?}");
        let name = name.split([' ', '{']).next().unwrap_or_default();
        let code = worker.booted_with.as_ref().map(|deploy| deploy.number);
        let _ = write!(text, "task {} web/{index} {standing:?} {name} code {code:?}; ", task.0);
    }
    let waiting = world.clients.iter().filter(|client| client.waits()).count();
    let running = world.clients.iter().filter(|client| client.process().is_some()).count();
    let processes: Vec<_> = world.processes.keys().collect();
    format!("{text}processes {processes:?}, requests {waiting} wait {running} run")
}

/// The shortest history that still fails, made by leaving steps out.
fn shrunk(mut history: History, failure: &Failure, runtime: &Runtime) -> History {
    history.steps.truncate(failure.step + 1);
    let mut at = 0;
    while at < history.steps.len() {
        let mut shorter = history.clone();
        shorter.steps.remove(at);
        if run(&shorter, runtime, None).is_err() {
            history = shorter;
        } else {
            at += 1;
        }
    }
    history
}

/// What a failure prints: the number, the shortest history, and its steps.
fn report(seed: u64, failure: &Failure, runtime: &Runtime) -> String {
    let short = shrunk(History::of_seed(seed), failure, runtime);
    let mut trace = String::new();
    let what = run(&short, runtime, Some(&mut trace)).err().map_or(String::new(), |failure| failure.what);
    let repeat = format!(
        "HOSTLER_SIMULATION_SEED={seed} cargo test --workspace --lib rules_of_the_workers -- --nocapture"
    );
    format!(
        "history {seed} fails at step {}: {}\nrepeat it: {repeat}\nthe shortest part of it that fails ({what}), with {:?}, {:?}:\n{trace}",
        failure.step, failure.what, short.settings, short.code
    )
}

/// Runs histories until one fails. Returns the number of that one, and how many were run.
fn search(count: u64, bug: Option<Bug>) -> (Option<(u64, Failure)>, u64, Coverage) {
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let worker = || {
        plant(bug);
        let (runtime, mut seen) = (runtime(), Coverage::default());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= count {
                return (None, seen);
            }
            match run(&History::of_seed(seed), &runtime, None) {
                Ok(one) => seen.add(one),
                Err(failure) => {
                    next.store(count, Ordering::Relaxed);
                    return (Some((seed, failure)), seen);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let (mut failed, mut seen) = (vec![], Coverage::default());
        for (failure, one) in workers.into_iter().map(|worker| worker.join().unwrap()) {
            failed.extend(failure);
            seen.add(one);
        }
        let found = failed.into_iter().min_by_key(|(seed, _)| *seed);
        let run = found.as_ref().map_or(count, |(seed, _)| seed + 1);
        (found, run, seen)
    })
}

fn number(name: &str) -> Option<u64> {
    let (_, value) = std::env::vars_os().find(|(one, _)| one == name)?;
    let number = value.to_str().and_then(|text| text.parse().ok());
    Some(number.unwrap_or_else(|| panic!("{name}={value:?} is not a number")))
}

#[test]
fn random_histories_keep_the_rules_of_the_workers() {
    if let Some(seed) = number("HOSTLER_SIMULATION_SEED") {
        let (mut trace, runtime) = (String::new(), runtime());
        let outcome = run(&History::of_seed(seed), &runtime, Some(&mut trace));
        println!("history {seed} of {:?}\n{trace}{outcome:?}", History::of_seed(seed).settings);
        return assert!(outcome.is_ok(), "history {seed} fails");
    }
    let count = number("HOSTLER_SIMULATION_HISTORIES").unwrap_or(HISTORIES);
    let began = tokio::time::Instant::now();
    let (found, _, seen) = search(count, None);
    println!("{count} histories in {:?}: {seen:?}", began.elapsed());
    if let Some((seed, failure)) = found {
        panic!("{}", report(seed, &failure, &runtime()));
    }
    seen.assert_complete();
}

#[test]
fn each_bug_planted_into_the_workers_is_found_and_its_number_repeats_it() {
    for bug in Bug::ALL {
        let (found, count, _) = search(HISTORIES, Some(bug));
        let Some((seed, failure)) = found else { panic!("{bug:?} is not found in {count} histories") };
        println!("{bug:?}: history {seed}, after {count}: {}", failure.what);
        plant(Some(bug));
        let again = run(&History::of_seed(seed), &runtime(), None);
        assert_eq!(again.err().map(|again| (again.step, again.what)), Some((failure.step, failure.what)));
        plant(None);
        let without = run(&History::of_seed(seed), &runtime(), None);
        assert!(without.is_ok(), "{bug:?}: history {seed} fails without the bug, too: {without:?}");
    }
}
