//! The life of one worker as a pure machine: what happened goes in, what is to be done comes out.
//! It knows no process, no clock and no pool.
//!
//! ```text
//! Queued -> Booting -> Warming -> Ready -> Stopping -> Stopped
//!   ^          |          |         |  |      |
//!   |          |          |         |  +------+--> Diagnosing (a hung one; only from Ready)
//!   |          +----------+---------+---------+--> Killed (the exit is awaited)
//!   +---- BackingOff <--- exit                          |
//!              ^----------------------------------------+
//! ```

use std::time::Duration;

use tokio::time::Instant;

/// A worker that lived so long has forgotten its crashes.
const STABLE_AFTER: Duration = Duration::from_secs(10);
/// A worker that served so long, or was killed from outside, is no hopeless case ...
const SERVED_AFTER: Duration = Duration::from_secs(1);
/// ... and the pool needs it: it never rests longer than a queue is patient.
const REST_OF_THE_USEFUL: Duration = Duration::from_secs(1);
/// The rest after the first, second ... crash in a row.
const RESTS: [Duration; 9] = {
    let ms = Duration::from_millis;
    [ms(0), ms(200), ms(500), ms(1_000), ms(2_000), ms(4_000), ms(8_000), ms(16_000), ms(30_000)]
};
/// How long the exit of a killed process is awaited; one stuck in the kernel must not hold up the rest.
const BURIAL: Duration = Duration::from_secs(5);
/// How long a hung worker lives to say where it hangs; whoever asks has given up before.
const DIAGNOSIS: Duration = Duration::from_millis(700);

/// What of a worker's settings decides about its life.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub start_timeout: Duration,
    pub stop_timeout: Duration,
    pub checks_health: bool,
    pub warms_up: bool,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The boot gate is open for this worker.
    Turn,
    /// There is no process: it could not be started.
    SpawnFailed,
    /// It listens, and its address is known.
    Listening,
    /// It has answered its health path.
    Healthy,
    /// It has answered its warm-up paths, well or badly.
    Warmed,
    /// The app listens for messages.
    Hears,
    /// The process that listens is gone, although the one we started lives.
    Orphaned,
    /// A request has lasted longer than any may.
    Hung,
    /// All is known of where it hangs that will ever be.
    Diagnosed,
    /// The process is gone; whether by a SIGKILL, which no program sends itself.
    Exited { killed: bool },
    /// It is to stop and not to come back.
    Stop,
    /// It is to stop at once.
    Kill,
    /// The [`Lifecycle::deadline`] has come.
    Tick,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Ask the boot gate for a turn.
    AskTurn,
    /// Start the process.
    Spawn,
    /// Begin to ask for the health path.
    CheckHealth,
    /// Begin to ask for the warm-up paths.
    WarmUp,
    /// Take it into the pool.
    Join,
    /// Take it out of the pool.
    Leave,
    /// Ask where it hangs.
    Diagnose,
    /// Say `"shutdown"`.
    SayShutdown,
    /// SIGTERM to the group.
    Terminate,
    /// SIGKILL to the group.
    Kill(Why),
}

/// Why a process is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It was not ready in time.
    StartTimeout,
    /// It did not stop in time.
    StopTimeout,
    /// Only its parents were left of it.
    Orphaned,
    /// It held a request too long.
    Hung,
    /// There was no time for a graceful stop.
    Ordered,
}

/// Where a worker is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Queued,
    Booting { until: Instant },
    Warming { until: Instant },
    Ready,
    Diagnosing { until: Instant },
    Stopping { term_at: Option<Instant>, kill_at: Instant },
    Killed { bury_at: Instant, for_good: bool },
    BackingOff { until: Instant },
    Stopped,
}

/// One worker's life.
#[derive(Clone, Debug)]
pub(super) struct Lifecycle {
    rules: Rules,
    state: State,
    hears: bool,
    listening: bool,
    ready_since: Option<Instant>,
    crashes: u32,
    chance: fastrand::Rng,
}

impl Lifecycle {
    /// A worker that has never run. The first thing to do about it is [`Action::AskTurn`].
    pub fn new(rules: Rules, chance: fastrand::Rng) -> Self {
        Self {
            rules,
            state: State::Queued,
            hears: false,
            listening: false,
            ready_since: None,
            crashes: 0,
            chance,
        }
    }

    pub fn state(&self) -> State {
        self.state
    }

    /// Crashes in a row.
    pub fn crashes(&self) -> u32 {
        self.crashes
    }

    /// When [`Event::Tick`] is due, unless something else happens before.
    pub fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Booting { until }
            | State::Warming { until }
            | State::Diagnosing { until }
            | State::BackingOff { until } => Some(until),
            State::Stopping { term_at, kill_at } => Some(term_at.unwrap_or(kill_at)),
            State::Killed { bury_at, .. } => Some(bury_at),
            State::Queued | State::Ready | State::Stopped => None,
        }
    }

    /// What happened at `now`, and what it means. An event that means nothing in this state changes nothing.
    pub fn step(mut self, event: Event, now: Instant) -> (Self, Vec<Action>) {
        let due = self.deadline().is_some_and(|deadline| deadline <= now);
        let actions = match event {
            Event::Stop => self.stop(now),
            Event::Kill => self.kill_for_good(now),
            Event::Exited { killed } => self.exited(killed, now),
            Event::Tick if due => self.tick(now),
            Event::Tick => vec![],
            Event::Hears => {
                self.hears = true;
                vec![]
            }
            Event::Turn if self.state == State::Queued => self.boot(now),
            Event::Hung if self.state == State::Ready => {
                self.state = State::Diagnosing { until: now + DIAGNOSIS };
                vec![Action::Leave, Action::Diagnose]
            }
            Event::Diagnosed if self.is_diagnosed() => self.kill(Why::Hung, now),
            Event::Orphaned if self.is_alive() => self.kill(Why::Orphaned, now),
            Event::Turn | Event::Hung | Event::Diagnosed | Event::Orphaned => vec![],
            Event::SpawnFailed | Event::Listening | Event::Healthy | Event::Warmed => self.boots(event, now),
        };
        (self, actions)
    }

    fn is_alive(&self) -> bool {
        matches!(self.state, State::Booting { .. } | State::Warming { .. } | State::Ready)
            || self.is_diagnosed()
    }

    fn is_diagnosed(&self) -> bool {
        matches!(self.state, State::Diagnosing { .. })
    }

    fn boot(&mut self, now: Instant) -> Vec<Action> {
        self.hears = false;
        self.listening = false;
        self.state = State::Booting { until: now + self.rules.start_timeout };
        vec![Action::Spawn]
    }

    /// The steps between the spawn and the pool.
    fn boots(&mut self, event: Event, now: Instant) -> Vec<Action> {
        match (self.state, event) {
            (State::Booting { .. }, Event::SpawnFailed) => self.crashed(false, now),
            (State::Booting { .. }, Event::Listening) if !self.listening => {
                self.listening = true;
                if self.rules.checks_health { vec![Action::CheckHealth] } else { self.healthy(now) }
            }
            (State::Booting { .. }, Event::Healthy) => self.healthy(now),
            (State::Warming { .. }, Event::Warmed) => self.ready(now),
            _ => vec![],
        }
    }

    fn healthy(&mut self, now: Instant) -> Vec<Action> {
        match self.state {
            State::Booting { until } if self.rules.warms_up => {
                self.state = State::Warming { until };
                vec![Action::WarmUp]
            }
            _ => self.ready(now),
        }
    }

    fn ready(&mut self, now: Instant) -> Vec<Action> {
        self.state = State::Ready;
        self.ready_since = Some(now);
        vec![Action::Join]
    }

    fn tick(&mut self, now: Instant) -> Vec<Action> {
        match self.state {
            State::Booting { .. } => self.kill(Why::StartTimeout, now),
            State::Diagnosing { .. } => self.kill(Why::Hung, now),
            // Cold pages are no reason to do without a worker that answered its health path.
            State::Warming { .. } => self.ready(now),
            State::BackingOff { .. } => {
                self.state = State::Queued;
                vec![Action::AskTurn]
            }
            State::Stopping { term_at: Some(_), kill_at } => {
                self.state = State::Stopping { term_at: None, kill_at };
                vec![Action::Terminate]
            }
            State::Stopping { term_at: None, .. } => {
                self.state = State::Killed { bury_at: now + BURIAL, for_good: true };
                vec![Action::Kill(Why::StopTimeout)]
            }
            State::Killed { .. } => self.exited(false, now),
            State::Queued | State::Ready | State::Stopped => vec![],
        }
    }

    fn exited(&mut self, killed: bool, now: Instant) -> Vec<Action> {
        match self.state {
            State::Booting { .. } | State::Warming { .. } | State::Ready | State::Diagnosing { .. } => {
                self.crashed(killed, now)
            }
            State::Killed { for_good: false, .. } => self.crashed(false, now),
            State::Killed { for_good: true, .. } | State::Stopping { .. } => {
                self.state = State::Stopped;
                vec![]
            }
            State::Queued | State::BackingOff { .. } | State::Stopped => vec![],
        }
    }

    /// A death that nobody asked for: it comes back at once, or after a rest if that has happened before.
    fn crashed(&mut self, killed: bool, now: Instant) -> Vec<Action> {
        let was_in_pool = self.state == State::Ready;
        let served = self.ready_since.take().map(|since| now.saturating_duration_since(since));
        if served >= Some(STABLE_AFTER) {
            self.crashes = 0;
        }
        let last = RESTS.len() - 1;
        let mut rest = RESTS[last.min(self.crashes as usize)];
        if served.is_some_and(|served| killed || served >= SERVED_AFTER) {
            rest = rest.min(REST_OF_THE_USEFUL);
        }
        self.crashes = self.crashes.saturating_add(1);

        let mut actions = if was_in_pool { vec![Action::Leave] } else { vec![] };
        if rest.is_zero() {
            self.state = State::Queued;
            actions.push(Action::AskTurn);
        } else {
            // Workers that crash together must not boot together for ever.
            self.state = State::BackingOff { until: now + rest.mul_f64(0.8 + 0.2 * self.chance.f64()) };
        }
        actions
    }

    fn kill(&mut self, why: Why, now: Instant) -> Vec<Action> {
        let was_in_pool = self.state == State::Ready;
        self.state = State::Killed { bury_at: now + BURIAL, for_good: why == Why::Ordered };
        if was_in_pool { vec![Action::Leave, Action::Kill(why)] } else { vec![Action::Kill(why)] }
    }

    fn kill_for_good(&mut self, now: Instant) -> Vec<Action> {
        match self.state {
            State::Booting { .. }
            | State::Warming { .. }
            | State::Ready
            | State::Diagnosing { .. }
            | State::Stopping { .. } => self.kill(Why::Ordered, now),
            State::Queued | State::BackingOff { .. } | State::Killed { .. } | State::Stopped => {
                self.stop(now)
            }
        }
    }

    fn stop(&mut self, now: Instant) -> Vec<Action> {
        let was_in_pool = self.state == State::Ready;
        match self.state {
            State::Queued | State::BackingOff { .. } | State::Stopped => {
                self.state = State::Stopped;
                vec![]
            }
            State::Killed { bury_at, .. } => {
                self.state = State::Killed { bury_at, for_good: true };
                vec![]
            }
            State::Diagnosing { .. } => {
                let actions = self.kill(Why::Hung, now);
                self.state = State::Killed { bury_at: now + BURIAL, for_good: true };
                actions
            }
            State::Stopping { .. } => vec![],
            State::Booting { .. } | State::Warming { .. } | State::Ready => {
                let timeout = self.rules.stop_timeout;
                let (term_at, how) = match self.hears {
                    true => (Some(now + timeout / 2), Action::SayShutdown),
                    false => (None, Action::Terminate),
                };
                self.state = State::Stopping { term_at, kill_at: now + timeout };
                if was_in_pool { vec![Action::Leave, how] } else { vec![how] }
            }
        }
    }
}

#[cfg(test)]
mod tests;
