//! The sleep of a pool: it has no member on purpose until a request comes. Does not know who makes members.
//!
//! The clock of a pool stands still while it sleeps and has no member, as it does during a pause. So the wait for a member
//! is neither overload, nor does it use up the time that a request may wait for a slot.

use std::sync::Arc;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::pool::Pool;
use super::state::PoolState;

impl<E: Send + Sync + 'static> Pool<E> {
    /// Lets the pool sleep: its owner is about to take the last member away, or there is none. Returns false, and changes
    /// nothing, if a request waits, or a member has a request or a tunnel.
    ///
    /// The first request that then finds no member notifies `wake_requested`, once. The owner starts a member, and calls
    /// [`Self::wake_up`] when it has joined.
    pub fn fall_asleep(&self, wake_requested: &Arc<Notify>) -> bool {
        self.shared.change(|state, _| {
            let is_idle = state.queue.is_empty()
                && state
                    .roster
                    .states()
                    .iter()
                    .all(|member| member.in_use == 0 && member.all_long_lived() == 0);
            if is_idle {
                state.pause.fall_asleep(Arc::clone(wake_requested));
            }
            is_idle
        })
    }

    /// Ends the sleep. From now on requests wait by the rules of a pool whose members are missing.
    pub fn wake_up(&self) {
        self.shared.change(|state, now| state.pause.wake_up(now));
    }

    /// Whether the pool sleeps, or is about to wake up.
    pub fn is_asleep(&self) -> bool {
        self.shared.lock().pause.is_asleep()
    }

    /// Since when the pool has called for its first member. `None`: it does not sleep, no request has come, or the member
    /// has joined.
    pub fn waking_since(&self) -> Option<Instant> {
        self.shared.lock().pause.waking_since()
    }
}

impl<E> PoolState<E> {
    /// Stops the clock while a sleeping pool has no member.
    pub fn note_members(&mut self, now: Instant) {
        if self.pause.is_asleep() {
            let empty = self.roster.totals().members == 0;
            self.pause.note_members(empty, now);
        }
    }

    /// What the caller must notify after unlocking, because a request waits in a sleeping pool.
    pub fn request_wake(&mut self, now: Instant) -> Option<Arc<Notify>> {
        let is_needed = self.pause.is_asleep() && !self.queue.is_empty() && !self.closed;
        if is_needed { self.pause.request_wake(now) } else { None }
    }
}
