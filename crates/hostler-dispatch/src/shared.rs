//! The one lock of a pool. Wakes and drops happen after unlocking. Does not decide the order of requests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::time::Instant;

use super::claim::{Claim, MemberId};
use super::cost::IdlePayer;
use super::event_loop::EventLoop;
use super::member::{Grant, Member};
use super::place::QueuePosition;
use super::queue::{AcquireError, WaitOutcome};
use super::recheck::{self, Recheck, Rechecked};
use super::roster::Roster;
use super::settings::PoolSettings;
use super::state::PoolState;
use super::wakers::Wakers;

/// The waiting requests of a pool: how many now, and how many ever.
#[derive(Clone, Copy)]
pub(super) struct WaitingGauge {
    pub now: usize,
    pub ever: u64,
}

/// What a request is charged in a fair pool, besides its time, if its member ended it without an answer: a member that has
/// died needs about this long to start again.
pub(super) const COST_OF_DEATH: Duration = Duration::from_secs(1);

/// A pause runs.
const PAUSED: u64 = u64::MAX;

/// What all handles of a pool share.
pub(super) struct PoolInner<E> {
    pub name: Arc<str>,
    pub next_number: AtomicU64,
    /// Who pays for what members do without requests.
    pub idle_payer: OnceLock<Arc<dyn IdlePayer>>,
    state: Mutex<PoolState<E>>,
    /// The sum of the pauses in nanoseconds, or [`PAUSED`]. Read without the lock: each request that waits asks for it.
    pauses: AtomicU64,
    /// This value, for the thread of `recheck`.
    this: Weak<dyn Recheck>,
}

impl<E: Send + Sync + 'static> PoolInner<E> {
    /// A pool without members.
    pub fn new(name: Arc<str>, settings: PoolSettings) -> Arc<Self> {
        Arc::new_cyclic(|this: &Weak<Self>| {
            let this: Weak<dyn Recheck> = this.clone();
            let (next_number, pauses) = (AtomicU64::new(1), AtomicU64::new(0));
            let state = Mutex::new(PoolState::new(settings));
            Self { name, next_number, idle_payer: OnceLock::new(), state, pauses, this }
        })
    }
}

impl<E> PoolInner<E> {
    /// One poll of an [`Acquire`]. `queued` stores whether its position is in the queue, `ahead` how many requests waited
    /// before it.
    pub fn poll_grant(
        &self,
        (place, ahead): (QueuePosition, &mut Option<usize>),
        claim: &Claim,
        queued: &mut bool,
        waker: &Waker,
        now: Instant,
    ) -> Poll<Result<Grant<E>, AcquireError>> {
        if *queued {
            return self.poll_queued(place, waker, now);
        }
        let mut woken = Wakers::default();
        let (answer, wake_requested) = {
            let mut state = self.lock();
            *ahead = Some(state.queue.len());
            let answer = state.enter(place, claim, waker, now, &mut woken);
            self.recheck_if_needed(&mut state);
            (answer, state.request_wake(now))
        };
        *queued = answer.is_pending();
        woken.wake();
        wake_requested.iter().for_each(|owner| owner.notify_one());
        answer
    }

    fn poll_queued(
        &self,
        place: QueuePosition,
        waker: &Waker,
        now: Instant,
    ) -> Poll<Result<Grant<E>, AcquireError>> {
        let mut state = self.lock();
        match state.outcome(place, now) {
            Some(Ok(grant)) => return Poll::Ready(Ok(grant)),
            Some(Err(failure)) => {
                drop(state);
                if let Some(grant) = failure.grant {
                    self.untake(&grant);
                }
                return Poll::Ready(Err(failure.error));
            }
            None => {}
        }
        if state.closed {
            return Poll::Ready(Err(AcquireError::Closed));
        }
        let replaced = state.queue.renew(place, waker);
        drop(state);
        drop(replaced);
        Poll::Pending
    }

    /// The [`Acquire`] at this position was dropped. A slot that was handed to it and not taken goes to the next request.
    pub fn give_up(&self, place: QueuePosition) {
        let now = Instant::now();
        let (waiter, outcome) = {
            let mut state = self.lock();
            if state.queue.fair.is_some() {
                state.rest(now);
            }
            let waiter = state.queue.leave(place);
            let outcome = state.queue.take_outcome(place);
            let handed = match &outcome {
                Some(WaitOutcome::Handed(_, span)) => Some(*span),
                _ => None,
            };
            if let Some(span) = waiter.as_ref().map(|waiter| waiter.span).or(handed) {
                state.note_left(span, now);
            }
            (waiter, outcome)
        };
        drop(waiter);
        if let Some(WaitOutcome::Handed(grant, _)) = outcome {
            self.untake(&grant);
        }
    }

    /// Returns a slot, which goes directly to the next waiting request. Says whether a request has got one.
    pub fn release(&self, grant: &Grant<E>, now: Instant) -> bool {
        self.change_at(now, |state, now| state.release(grant, now)).1
    }

    /// The same for a request that has ended early.
    pub fn release_early(&self, grant: &Grant<E>, now: Instant) {
        self.change_at(now, |state, now| state.release_early(grant, now));
    }

    /// Returns a slot that no request has used.
    fn untake(&self, grant: &Grant<E>) {
        self.change(|state, now| state.take_unused(grant, now));
    }

    /// The member could not be reached: returns the slot, and the end of the ejection if the member is ejected.
    pub fn fail(&self, grant: &Grant<E>) -> Option<Instant> {
        self.change(|state, now| {
            state.counters.member_failures += 1;
            let until = state.roster.back_off(grant, now);
            if until.is_some() {
                state.roster.keep_one(true, now);
            }
            state.take_unused(grant, now);
            let untaken = if until.is_some() { put_out(state, grant.member.id, now) } else { Vec::new() };
            (until, untaken)
        })
        .0
    }

    /// The member ended a request without an answer: returns the slot, and the time until which the member gets no
    /// requests, if there is one. The key of the request is charged this time `besides`.
    pub fn suspect(&self, grant: &Grant<E>, besides: Duration, probably_lives: bool) -> Option<Instant> {
        self.change(|state, now| {
            let until = match probably_lives {
                true => state.roster.hung_up(grant, now),
                false => Some(state.roster.suspend(grant.member.id, now)),
            };
            state.settle(grant, now.saturating_duration_since(grant.since) + besides);
            state.roster.release(grant, now);
            let untaken = until.map(|_| state.take_back(grant.member.id, now));
            (until, untaken)
        })
        .0
    }

    /// Ends the suspense until `until`, which [`Self::suspect`] began: the member lives.
    pub fn end_suspense(&self, id: MemberId, until: Instant) {
        self.change(|state, _| state.roster.end_suspense(id, until));
    }

    /// The lease that was granted at `since` has its member alone no longer.
    pub fn share(&self, id: MemberId, since: Instant) {
        self.change(|state, _| {
            state.roster.edit(id, |state| state.exclusive = state.exclusive.filter(|other| *other != since))
        });
    }

    /// A request timed out. It may still have the slot or, if it was connecting, has just returned it. Returns the end of
    /// the ejection if the member is ejected; then requests that wait for its answer are told.
    pub fn strike(&self, grant: &Grant<E>) -> Option<Instant> {
        let (until, untaken) = self.change(|state, now| {
            state.counters.member_timeouts += 1;
            let until = state.roster.strike(grant, now);
            state.counters.ejections += u64::from(until.is_some());
            let untaken = if until.is_some() { put_out(state, grant.member.id, now) } else { Vec::new() };
            (until, untaken)
        });
        drop(untaken);
        if until.is_some() {
            grant.member.set_marked_down(true);
        }
        until
    }

    /// Whether the pool has a member besides this one that gets requests now.
    pub fn has_other_member(&self, id: MemberId) -> bool {
        let now = Instant::now();
        self.lock().roster.present().any(|state| state.member.id != id && !state.is_out(now))
    }

    /// Whether a lease is the only one of its member, and has been so for this long.
    pub fn is_alone(&self, id: MemberId, is_stream: bool, long: Duration) -> bool {
        let now = Instant::now();
        self.lock().roster.is_alone(id, is_stream, now, long)
    }

    /// A connection to the member was made.
    pub fn connected(&self, id: MemberId) {
        self.change(|state, now| state.roster.connected(id, now));
    }

    /// The member answered. Returns true if this ends an ejection.
    pub fn reached(&self, member: &Member<E>) -> bool {
        let (was_ejected, is_unhealthy) = self.change(|state, _| {
            let was_ejected = state.roster.reached(member.id);
            (was_ejected, state.roster.state(member.id).is_some_and(|one| one.unhealthy))
        });
        // Only the health check says when an unhealthy member is healthy again.
        if !is_unhealthy {
            member.set_marked_down(false);
        }
        was_ejected
    }

    /// Sets the health of a member. Returns true if it changed.
    pub fn set_health(&self, id: MemberId, healthy: bool) -> bool {
        let (changed, untaken) = self.change(|state, now| {
            let changed = state.roster.set_health(id, healthy);
            let became_unhealthy = changed.is_some() && !healthy;
            state.counters.unhealthy += u64::from(became_unhealthy);
            if became_unhealthy {
                state.roster.keep_one(false, now);
            }
            (changed, if became_unhealthy { put_out(state, id, now) } else { Vec::new() })
        });
        drop(untaken);
        if let Some(member) = &changed {
            member.set_marked_down(!healthy);
        }
        changed.is_some()
    }

    /// The member gets no new leases. `serves_bound`: except for requests that are bound to it, for a while.
    pub fn leave(&self, id: MemberId, serves_bound: bool) {
        let (untaken, refused) = self.change(|state, now| {
            let untaken = put_out(state, id, now);
            let bound_until = serves_bound.then(|| now + state.roster.settings().bound_drain);
            state.roster.leave(id, bound_until);
            state.roster.keep_one(false, now);
            (untaken, state.refuse_without_member())
        });
        refused.wake();
        drop(untaken);
    }

    /// The request at this position waits for any member from now on.
    pub fn unbind(&self, place: QueuePosition) {
        self.change(|state, _| state.queue.unbind(place));
    }

    /// Sets the number of slots of a member, which alone decides from now on. Leases above the new number end normally.
    pub fn set_slots(&self, id: MemberId, slots: usize) {
        self.change(|state, _| state.roster.set_slots(id, slots));
    }

    /// Observes the event loop of the member from now on. The member gets at most this many requests at once.
    pub fn observe(&self, id: MemberId, most: usize, event_loop: Arc<dyn EventLoop>) {
        self.change(|state, _| state.roster.observe(id, most, event_loop));
    }

    /// Reads or changes the members under the lock. The `WaitingGauge` tells how many requests wait.
    pub fn with_roster<T>(&self, act: impl FnOnce(&mut Roster<E>, WaitingGauge) -> T) -> T {
        self.change(|state, _| {
            let waiting = WaitingGauge { now: state.queue.len(), ever: state.counters.queued };
            act(&mut state.roster, waiting)
        })
    }

    /// Gives free slots to waiting requests after a time that no event tells, such as that of an ejection.
    pub fn redispatch(&self) {
        self.change(|_, _| ());
    }

    /// Changes the state, then gives every slot that came free to the waiting requests.
    pub fn change<T>(&self, change: impl FnOnce(&mut PoolState<E>, Instant) -> T) -> T {
        self.change_at(Instant::now(), change).0
    }

    /// Also says whether a wait has ended.
    fn change_at<T>(&self, now: Instant, change: impl FnOnce(&mut PoolState<E>, Instant) -> T) -> (T, bool) {
        let mut woken = Wakers::default();
        let (value, wake_requested) = {
            let mut state = self.lock();
            state.rest(now);
            let value = change(&mut state, now);
            state.note_members(now);
            self.note_pause(&state);
            if !state.queue.is_empty() {
                state.dispatch(now, &mut woken);
            }
            self.recheck_if_needed(&mut state);
            (value, state.request_wake(now))
        };
        let has_woken = woken.wake();
        wake_requested.iter().for_each(|owner| owner.notify_one());
        (value, has_woken)
    }

    /// Gives no slots from now on.
    pub fn pause(&self, now: Instant) {
        let mut state = self.lock();
        state.pause(now);
        self.note_pause(&state);
    }

    fn note_pause(&self, state: &PoolState<E>) {
        let ended = state.pause.ended().and_then(|ended| u64::try_from(ended.as_nanos()).ok());
        let pauses = ended.unwrap_or(PAUSED);
        if self.pauses.load(Ordering::Relaxed) != pauses {
            self.pauses.store(pauses, Ordering::Release);
        }
    }

    /// The sum of all pauses so far, including a running one. Takes the lock only while one runs.
    pub fn paused_time(&self) -> Duration {
        match self.pauses.load(Ordering::Acquire) {
            PAUSED => {
                let now = Instant::now();
                self.lock().pause.total(now)
            }
            ended => Duration::from_nanos(ended),
        }
    }

    fn recheck_if_needed(&self, state: &mut PoolState<E>) {
        if !state.rechecked && needs_recheck(state) {
            state.rechecked = recheck::add(self.this.clone());
        }
    }

    /// A poisoned lock is safe to use: no foreign code runs under it, so a panic elsewhere cannot have left the state
    /// half changed.
    pub fn lock(&self) -> MutexGuard<'_, PoolState<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The member is ejected, is found unhealthy, or leaves. Takes back its slots that were handed over and not taken yet, and starts the
/// measurement of overload again. Not for a member that has only hung up on a request: otherwise clients with such requests could prevent
/// every overload.
fn put_out<E>(state: &mut PoolState<E>, id: MemberId, now: Instant) -> Vec<Grant<E>> {
    // The waiting requests wait longer now for a reason that is not load.
    state.admission.interrupt(state.at(now).served);
    state.take_back(id, now)
}

/// Whether requests wait that an event loop may be able to begin later, without an event that tells so.
fn needs_recheck<E>(state: &PoolState<E>) -> bool {
    !state.queue.is_empty() && !state.pause.is_on() && !state.closed && state.roster.is_observed()
}

impl<E: Send + Sync> Recheck for PoolInner<E> {
    fn recheck(&self) -> Rechecked {
        let mut woken = Wakers::default();
        let (more, not_before) = {
            let (mut state, now) = (self.lock(), Instant::now());
            state.rest(now);
            state.dispatch(now, &mut woken);
            state.rechecked = needs_recheck(&state);
            (state.rechecked, state.roster.opens_at())
        };
        let gave = woken.wake();
        if more { Rechecked::Waits { gave, not_before } } else { Rechecked::Empty }
    }
}
