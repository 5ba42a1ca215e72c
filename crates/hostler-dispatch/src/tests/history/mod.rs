//! Random histories of a pool, checked after each step against the rules of ARCHITECTURE.md. One number is one history.
//!
//! `HOSTLER_SIMULATION_SEED=N` repeats one history with all its steps, and `HOSTLER_SIMULATION_HISTORIES=N` runs that many.

mod actors;
mod bill;
mod bugs;
mod check;
mod endings;
mod look;
mod moves;
mod shares;
mod steps;
mod world;

use std::cell::Cell;
use std::fmt::Write;
use std::time::Duration;

use hostler_testkit::{Simulation, planted_bugs_are_found, random_histories};
use tokio::runtime::Runtime;

pub use self::bugs::Bug;
use self::check::{Checks, Coverage};
use self::steps::{History, Step};
use self::world::World;

/// As many as two cores run within a minute.
const HISTORIES: u64 = 100_000;
/// One of so many histories compares the index of free slots with a look at each member, which takes long.
const THOROUGH: u64 = 256;
/// The end of an ejection is noticed this much late: the timers of the runtime have this grain.
const GRAIN: Duration = Duration::from_millis(1);

struct PoolHistories;

impl Simulation for PoolHistories {
    type History = History;
    type Step = Step;
    type Coverage = Coverage;
    type Bug = Bug;

    const TEST: &'static str = "rules_of_the_pool";

    fn history(seed: u64) -> History {
        History::of_seed(seed)
    }

    fn steps(history: &mut History) -> &mut Vec<Step> {
        &mut history.steps
    }

    fn settings(history: &History) -> String {
        format!("{:?}", history.settings)
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
        let mut checks = Checks::default();
        for (index, step) in history.steps.iter().enumerate() {
            at.set(index);
            let checked = one_step(&mut world, &mut checks, step, history);
            if let Some(trace) = &mut trace {
                let _ = writeln!(trace, "{index:3} {step:?}\n      {}", state(&world));
            }
            checked?;
        }
        check::nothing_is_left(&world.finish())?;
        Ok(checks.seen)
    }

    fn add(sum: &mut Coverage, one: Coverage) {
        sum.add(&one);
    }
}

fn one_step(
    world: &mut World<'_>,
    checks: &mut Checks,
    step: &Step,
    history: &History,
) -> Result<(), String> {
    world.apply(step);
    if history.is_observed {
        world.recheck();
    }
    checks.after_step(world, history.seed.is_multiple_of(THOROUGH))?;
    if check::no_slot_is_idle(&world.pool, world).is_err() && matches!(step, Step::Pass(_)) {
        world.pass(GRAIN);
        checks.after_step(world, false)?;
    }
    check::no_slot_is_idle(&world.pool, world)
}

fn state(world: &World<'_>) -> String {
    let look = look::Look::take(&world.pool);
    let running: Vec<_> =
        world.running.iter().map(|one| format!("{}@{}", one.place.serial, one.lease.member())).collect();
    let queued: Vec<_> = look
        .queued
        .values()
        .map(|one| match one.bound {
            Some(member) => format!("{}->{member}", one.place.serial),
            None => one.place.serial.to_string(),
        })
        .collect();
    let ended: Vec<_> =
        look.ended.values().map(|one| format!("{}: {:?}", one.place.serial, one.how)).collect();
    let members: Vec<_> =
        look.members.iter().map(|(id, one)| format!("{id}: {}/{}", one.in_use, one.slots)).collect();
    let (queued, running) = (queued.join(" "), running.join(" "));
    format!(
        "waiting [{queued}] ended [{}] running [{running}] members [{}]",
        ended.join(", "),
        members.join(", ")
    )
}

#[test]
fn random_histories_keep_the_rules_of_the_pool() {
    if let Some(seen) = random_histories::<PoolHistories>(HISTORIES) {
        seen.assert_complete();
    }
}

#[test]
fn each_planted_bug_is_found_and_its_number_repeats_it() {
    planted_bugs_are_found::<PoolHistories>(&Bug::ALL, 20_000);
}
