//! What can happen to the workers of a pool in a history, and how a number becomes a history.

use std::time::Duration;

use crate::settings::{Spares, WorkerSettings};

/// The most steps of a history.
const MOST_STEPS: usize = 40;

/// The first settings and code of the workers, and what happens to them.
#[derive(Clone, Debug)]
pub struct History {
    pub seed: u64,
    pub settings: WorkerSettings,
    pub code: Code,
    /// Workers die, hang, are drained and become more or fewer. Otherwise nothing but restarts and requests happens to them.
    pub is_wild: bool,
    /// The gate lets workers boot at the same time.
    pub has_room: bool,
    pub steps: Vec<Step>,
}

/// A number that a step takes modulo the number of things that it may be about.
pub type Pick = usize;

/// What the app is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Works,
    /// It ends before it listens.
    EndsAtStart,
    NeverListens,
    /// It listens, and ends soon after that.
    EndsSoon,
}

#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// A request, whose answer takes so many milliseconds.
    Arrive(u64),
    /// The client of a waiting request leaves.
    Leave(Pick),
    /// A process crashes.
    Crash(Pick),
    /// A process is killed from outside.
    OutOfMemory(Pick),
    /// The app ends, and the process that has started it lives on.
    Orphan(Pick),
    /// The event loop of a process stands still from now on.
    Hang(Pick),
    /// A reload: all workers are replaced by workers with this code.
    Restart(Code),
    /// The same, and a new worker that is booting is dismissed.
    RestartAnew(Code),
    /// A worker is due for recycling.
    Recycle(Pick),
    /// An operator takes a worker out of rotation, for so many milliseconds or until it is put back.
    Drain(Pick, Option<u64>),
    Undrain(Pick),
    /// A heap snapshot of a worker begins, or ends.
    Snapshot(Pick, bool),
    /// The pool has so many workers from now on.
    Resize(usize),
    Spares(Spares),
    /// New time limits, without a restart.
    Adopt(u64),
    /// The workers stop, gracefully or at once.
    Stop {
        at_once: bool,
    },
    /// So many milliseconds pass.
    Pass(u64),
}

impl History {
    /// The history of this number.
    pub fn of_seed(seed: u64) -> Self {
        let mut dice = fastrand::Rng::with_seed(seed);
        let is_wild = dice.u8(..) < 160;
        let settings = settings(&mut dice);
        let code = if is_wild && dice.u8(..) < 16 { code(&mut dice) } else { Code::Works };
        let has_room = dice.bool();
        let count = dice.usize(MOST_STEPS / 4..=MOST_STEPS);
        let steps = (0..count).map(|_| step(&mut dice, is_wild)).collect();
        Self { seed, settings, code, is_wild, has_room, steps }
    }
}

fn settings(dice: &mut fastrand::Rng) -> WorkerSettings {
    let path = || String::from("/");
    WorkerSettings {
        count: dice.usize(1..4),
        spares: [Spares::Auto, Spares::Fixed(0), Spares::Fixed(1)][dice.usize(..3)],
        boot_cpu: [0.1, 0.5, 2.0][dice.usize(..3)],
        health: dice.bool().then(path),
        warmup: dice.bool().then(path).into_iter().collect(),
        ..limits(dice.u64(..))
    }
}

/// Time limits that follow from a number.
pub fn limits(number: u64) -> WorkerSettings {
    let mut dice = fastrand::Rng::with_seed(number);
    WorkerSettings {
        start_timeout: Duration::from_millis(dice.u64(4_000..12_000)),
        stop_timeout: Duration::from_millis(dice.u64(500..5_000)),
        hang_timeout: Duration::from_millis(dice.u64(2_000..20_000)),
        ..WorkerSettings::default()
    }
}

fn code(dice: &mut fastrand::Rng) -> Code {
    let bad = [Code::EndsAtStart, Code::NeverListens, Code::EndsSoon];
    if dice.u8(..) < 90 { bad[dice.usize(..3)] } else { Code::Works }
}

fn step(dice: &mut fastrand::Rng, is_wild: bool) -> Step {
    let pick = dice.usize(..64);
    match dice.u8(..100) {
        0..34 => Step::Arrive(if dice.u8(..) < 20 { dice.u64(1_000..8_000) } else { dice.u64(1..300) }),
        34..36 => Step::Leave(pick),
        36..46 => {
            let code = code(dice);
            if dice.u8(..) < 60 { Step::RestartAnew(code) } else { Step::Restart(code) }
        }
        46..50 => Step::Recycle(pick),
        50..51 => Step::Stop { at_once: dice.u8(..) < 80 },
        51..53 => Step::Adopt(dice.u64(..)),
        53..76 if is_wild => disturbance(dice, pick),
        _ => Step::Pass(if dice.bool() { dice.u64(1..400) } else { dice.u64(1..20_000) }),
    }
}

fn disturbance(dice: &mut fastrand::Rng, pick: Pick) -> Step {
    match dice.u8(..16) {
        0..4 => Step::Crash(pick),
        4 => Step::OutOfMemory(pick),
        5 => Step::Orphan(pick),
        6 | 7 => Step::Hang(pick),
        8 | 9 => Step::Drain(pick, dice.bool().then(|| dice.u64(1..10_000))),
        10 => Step::Undrain(pick),
        11 => Step::Snapshot(pick, true),
        12 => Step::Snapshot(pick, false),
        13 => Step::Resize(dice.usize(1..5)),
        14 => Step::Spares([Spares::Auto, Spares::Fixed(0), Spares::Fixed(2)][dice.usize(..3)]),
        _ => Step::Pass(dice.u64(1..90_000)),
    }
}
