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

use std::cell::Cell;
use std::fmt::Write;

use hostler_testkit::{Simulation, planted_bugs_are_found, random_histories};
use tokio::runtime::Runtime;

pub use self::bugs::Bug;
use self::rules::Coverage;
use self::steps::{History, Step};
use self::world::World;

/// As many as two cores run in about ten seconds.
const HISTORIES: u64 = 4_000;

struct WorkerHistories;

impl Simulation for WorkerHistories {
    type History = History;
    type Step = Step;
    type Coverage = Coverage;
    type Bug = Bug;

    const TEST: &'static str = "rules_of_the_workers";

    fn history(seed: u64) -> History {
        History::of_seed(seed)
    }

    fn steps(history: &mut History) -> &mut Vec<Step> {
        &mut history.steps
    }

    fn settings(history: &History) -> String {
        format!("{:?}, {:?}", history.settings, history.code)
    }

    fn run(
        history: &History,
        runtime: &Runtime,
        at: &Cell<usize>,
        mut trace: Option<&mut String>,
    ) -> Result<Coverage, String> {
        fastrand::seed(history.seed);
        let _inside = runtime.enter();
        let mut world = World::new(history, runtime);
        for (index, step) in history.steps.iter().enumerate() {
            at.set(index);
            world.take(step, history.is_wild);
            if let Some(trace) = &mut trace {
                let _ = writeln!(trace, "{index:3} {step:?}\n      {}", state(&world));
            }
            if let Some(error) = world.error.take() {
                return Err(error);
            }
        }
        at.set(history.steps.len());
        let seen = world.finish();
        if let Some(trace) = &mut trace {
            let _ = writeln!(trace, "end\n      {}", state(&world));
        }
        world.error.take().map_or(Ok(seen), Err)
    }

    fn add(sum: &mut Coverage, one: Coverage) {
        sum.add(one);
    }
}

fn state(world: &World<'_>) -> String {
    let mut text = String::new();
    for (task, worker) in &world.workers {
        let (index, role, state) = (worker.status.index, worker.life.role(), worker.life.state());
        let name = format!("{state:?}");
        let name = name.split([' ', '{']).next().unwrap_or_default();
        let code = worker.booted_with.as_ref().map(|deploy| deploy.number);
        let _ = write!(text, "task {} web/{index} {role:?} {name} code {code:?}; ", task.0);
    }
    let waiting = world.clients.iter().filter(|client| client.waits()).count();
    let running = world.clients.iter().filter(|client| client.process().is_some()).count();
    let processes: Vec<_> = world.processes.keys().collect();
    format!("{text}processes {processes:?}, requests {waiting} wait {running} run")
}

#[test]
fn random_histories_keep_the_rules_of_the_workers() {
    if let Some(seen) = random_histories::<WorkerHistories>(HISTORIES) {
        seen.assert_complete();
    }
}

#[test]
fn each_bug_planted_into_the_workers_is_found_and_its_number_repeats_it() {
    planted_bugs_are_found::<WorkerHistories>(&Bug::ALL, HISTORIES);
}
