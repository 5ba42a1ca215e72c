//! A worker out of rotation: why it is, and when it comes back. A part of the same pure machine.

use std::time::Duration;

use tokio::time::Instant;

use super::state::{AsideFor, Drain, Lifecycle, LifecycleState};
use super::words::{Action, KillReason, PoolRole};

/// How long a worker that comes back first finishes its requests. Then it gets new ones beside them: one may be an endless stream.
const FINISHING: Duration = Duration::from_secs(1);

impl Lifecycle {
    /// Whether a heap snapshot can be taken of it: it serves, or it is drained.
    pub fn can_go_aside(&self) -> bool {
        self.can_be_drained() && !self.aside_for.snapshot
    }

    pub fn can_be_drained(&self) -> bool {
        let is_there = matches!(self.state, LifecycleState::Ready | LifecycleState::Aside { .. });
        is_there && self.role == PoolRole::Regular
    }

    /// Since when and until when it is drained.
    pub fn drain(&self) -> Option<Drain> {
        self.aside_for.drain
    }

    pub(super) fn set_aside(&mut self) -> Vec<Action> {
        if !self.can_go_aside() {
            return vec![];
        }
        self.aside_for.snapshot = true;
        self.goes_aside()
    }

    pub(super) fn put_back(&mut self, now: Instant) -> Vec<Action> {
        self.aside_for.snapshot = false;
        self.comes_back(now)
    }

    /// Kills a worker whose process has stopped during its snapshot: it could not serve requests. It is not asked where it hangs, because a
    /// stopped process does not answer.
    pub(super) fn stands_still(&mut self, now: Instant) -> Vec<Action> {
        match self.state {
            LifecycleState::Aside { .. } => self.kill(KillReason::Hung, now),
            _ => vec![],
        }
    }

    /// Takes the worker out of rotation until `until` (`None`: until it is put back). A worker that is drained already gets this new end.
    pub(super) fn drained(&mut self, until: Option<Instant>, now: Instant) -> Vec<Action> {
        if !self.can_be_drained() {
            return vec![];
        }
        let since = self.aside_for.drain.map_or(now, |drain| drain.since);
        self.aside_for.drain = Some(Drain { since, until });
        self.goes_aside()
    }

    pub(super) fn undrained(&mut self, now: Instant) -> Vec<Action> {
        self.aside_for.drain = None;
        self.comes_back(now)
    }

    fn goes_aside(&mut self) -> Vec<Action> {
        self.aside_for.back_by = None;
        if self.state != LifecycleState::Ready {
            return vec![];
        }
        self.state = LifecycleState::Aside { finished: false };
        if planted!(DrainedInPool) { vec![] } else { vec![Action::Withdraw] }
    }

    /// If no reason is left, it joins the pool as soon as it has finished its requests.
    fn comes_back(&mut self, now: Instant) -> Vec<Action> {
        match self.state {
            LifecycleState::Aside { .. } if self.aside_for.snapshot || self.aside_for.drain.is_some() => {
                vec![]
            }
            LifecycleState::Aside { finished: true } => self.is_back(),
            LifecycleState::Aside { finished: false } => {
                self.aside_for.back_by.get_or_insert(now + FINISHING);
                vec![]
            }
            _ => vec![],
        }
    }

    fn is_back(&mut self) -> Vec<Action> {
        self.state = LifecycleState::Ready;
        vec![Action::Join]
    }

    /// Its last request has ended.
    pub(super) fn finished_aside(&mut self, now: Instant) -> Vec<Action> {
        self.state = LifecycleState::Aside { finished: true };
        self.comes_back(now)
    }

    /// When the worker comes back by itself. `None`: it does not, because a snapshot is being taken or the drain has no end.
    pub(super) fn aside_until(&self) -> Option<Instant> {
        let AsideFor { snapshot, drain, back_by } = self.aside_for;
        let until = drain.map_or(back_by, |drain| drain.until);
        until.filter(|_| !snapshot)
    }

    /// The time that [`Self::aside_until`] returned has come.
    pub(super) fn aside_is_over(&mut self, now: Instant) -> Vec<Action> {
        if self.aside_for.drain.is_some() { self.undrained(now) } else { self.is_back() }
    }
}
