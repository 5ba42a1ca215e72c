//! The state of one worker's life. Decides nothing.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::words::PoolRole;
use crate::settings::WorkerSettings;

/// The state of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifecycleState {
    Queued,
    Booting {
        until: Instant,
    },
    Warming {
        until: Instant,
    },
    Ready,
    /// A spare that is ready and not in the pool.
    Standby,
    /// A spare that has left the pool and finishes its requests before it stands by again.
    SteppingBack,
    /// It has left the pool and comes back: it is drained, or a heap snapshot is taken. First it finishes its requests.
    Aside {
        finished: bool,
    },
    Retiring {
        until: Instant,
    },
    Diagnosing {
        until: Instant,
    },
    Stopping {
        term_at: Option<Instant>,
        kill_at: Instant,
    },
    Killed {
        bury_at: Instant,
        for_good: bool,
    },
    BackingOff {
        until: Instant,
    },
    Stopped,
}

/// An operator has taken the worker out of rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drain {
    pub since: Instant,
    /// When it comes back by itself.
    pub until: Option<Instant>,
}

/// Why a worker is out of rotation. Without a reason it comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AsideFor {
    pub(super) snapshot: bool,
    pub(super) drain: Option<Drain>,
    /// When it comes back with requests that still run.
    pub(super) back_by: Option<Instant>,
}

/// The state machine of one worker.
#[derive(Clone, Debug)]
pub struct Lifecycle {
    pub(super) settings: Arc<WorkerSettings>,
    pub(super) state: LifecycleState,
    pub(super) role: PoolRole,
    /// When a boot gives its turn to the next worker.
    pub(super) turn_ends: Option<Instant>,
    pub(super) hears: bool,
    pub(super) listening: bool,
    pub(super) ready_since: Option<Instant>,
    pub(super) crashes: u32,
    /// Boots in a row that have failed.
    pub(super) failed_boots: u32,
    /// All deaths that Hostler did not ask for.
    pub(super) deaths: u64,
    /// The pool needs this spare.
    pub(super) needed: bool,
    /// It is killed because its app has ended while its parent processes live.
    pub(super) orphaned: bool,
    pub(super) aside_for: AsideFor,
    pub(super) chance: fastrand::Rng,
}

impl Lifecycle {
    /// A worker that has never run. Its first action is [`Action::AskTurn`].
    pub fn new(settings: Arc<WorkerSettings>, role: PoolRole, chance: fastrand::Rng) -> Self {
        Self {
            settings,
            state: LifecycleState::Queued,
            role,
            turn_ends: None,
            hears: false,
            listening: false,
            ready_since: None,
            crashes: 0,
            failed_boots: 0,
            deaths: 0,
            needed: false,
            orphaned: false,
            aside_for: AsideFor::default(),
            chance,
        }
    }

    pub fn state(&self) -> LifecycleState {
        self.state
    }

    pub fn role(&self) -> PoolRole {
        self.role
    }

    /// Sets new settings. A running deadline stays as it is.
    pub fn adopt(&mut self, settings: Arc<WorkerSettings>) {
        self.settings = settings;
    }

    /// For so long it was ready without its app.
    pub fn has_served_less(&mut self, time: Duration) {
        self.ready_since = self.ready_since.map(|since| since + time);
    }

    /// Crashes in a row.
    pub fn crashes(&self) -> u32 {
        self.crashes
    }

    /// Boots in a row that have failed.
    pub fn failed_boots(&self) -> u32 {
        self.failed_boots
    }

    /// Its boot has failed, and a restart follows when a file changes.
    pub fn waits_for_change(&self) -> bool {
        self.settings.development.waits_for_changes && self.failed_boots > 0
    }

    /// All deaths that Hostler did not ask for.
    pub fn deaths(&self) -> u64 {
        self.deaths
    }

    /// It has an address, and its health path is asked.
    pub fn awaits_health(&self) -> bool {
        self.listening
            && self.settings.health.is_some()
            && matches!(self.state, LifecycleState::Booting { .. })
    }

    /// The deadline of the warm-up.
    pub fn warm_by(&self) -> Option<Instant> {
        if let LifecycleState::Warming { until } = self.state { Some(until) } else { None }
    }

    /// It has a process that is neither told to stop nor killed.
    pub fn is_alive(&self) -> bool {
        matches!(
            self.state,
            LifecycleState::Booting { .. }
                | LifecycleState::Warming { .. }
                | LifecycleState::Standby
                | LifecycleState::Aside { .. }
        ) || self.is_at_work()
            || self.is_diagnosed()
    }

    pub(super) fn is_diagnosed(&self) -> bool {
        matches!(self.state, LifecycleState::Diagnosing { .. })
    }

    pub(super) fn is_at_work(&self) -> bool {
        matches!(
            self.state,
            LifecycleState::Ready
                | LifecycleState::SteppingBack
                | LifecycleState::Aside { finished: false }
                | LifecycleState::Retiring { .. }
        )
    }
}
