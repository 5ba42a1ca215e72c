//! One member: what its leases share, the state of its slots, and a slot that was given away. Knows neither the other members
//! nor the queue.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use slab::Slab;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::claim::{LongLived, MemberId};
use super::cpu::CpuAccount;
use super::eject::HangUps;
use super::end_order::{Beside, EndOrder};
use super::event_loop::LoopState;
use super::fair::Charge;
use super::kinds::WorkKind;
use super::settings::PoolSettings;

/// What leases, the membership and the pool share about one member.
pub(super) struct Member<E> {
    pub id: MemberId,
    pub endpoint: E,
    /// Failures in a row. Written under the pool's lock only. Read without it, so that an answer of a healthy member
    /// needs no lock.
    pub failures: AtomicU32,
    /// The member ended a request without an answer and has not answered any since. Written and read like `failures`.
    pub suspected: AtomicBool,
    /// Granted requests that have not been sent to the member yet. Counted only if its event loop is observed.
    pub unsent: AtomicUsize,
    /// Requests that it has answered. Counted only if its event loop is observed.
    pub answered: AtomicU64,
    /// The tunnels and streams are to end, because the member or the pool has left.
    pub dismissed: watch::Sender<bool>,
    /// The member is ejected, unhealthy or lost. Requests that wait for its answer should try another member.
    pub marked_down: watch::Sender<bool>,
    /// Divides its CPU time among its requests, if its clock is known.
    pub cpu: OnceLock<CpuAccount>,
    /// Tells that the last lease has ended. Dropped with the member, never under the pool's lock.
    pub _held: oneshot::Sender<()>,
}

impl<E> Member<E> {
    /// Granted requests that have not been sent yet.
    pub fn unsent(&self) -> usize {
        self.unsent.load(Ordering::Acquire)
    }

    /// A granted request has been sent.
    pub fn sent(&self) {
        self.unsent.fetch_sub(1, Ordering::Release);
    }

    pub fn is_doubted(&self) -> bool {
        self.failures.load(Ordering::Relaxed) > 0
    }

    /// Charges the CPU time that the member has used without a request. Never call it under the pool's lock.
    pub fn settle_idle(&self) {
        if let Some(cpu) = self.cpu.get() {
            cpu.settle_idle(Instant::now());
        }
    }

    /// Tells the tunnels and streams of the member to end. Wakes foreign tasks: never call it under the pool's lock.
    pub fn dismiss_tunnels(&self) {
        self.dismissed.send_replace(true);
    }

    /// Resolves when the tunnels and streams are to end.
    pub fn dismissal(&self) -> impl Future<Output = ()> + Send + use<E> {
        let mut dismissed = self.dismissed.subscribe();
        async move {
            // An error means that the member itself is gone, and with it its tunnels and streams.
            let _ = dismissed.wait_for(|dismissed| *dismissed).await;
        }
    }

    /// Tells requests that wait for the member's answer whether the member is marked down. Wakes foreign tasks: never call
    /// it under the pool's lock.
    pub fn set_marked_down(&self, marked_down: bool) {
        self.marked_down.send_if_modified(|before| std::mem::replace(before, marked_down) != marked_down);
    }

    /// True while the member is marked down.
    pub fn marked_down(&self) -> watch::Receiver<bool> {
        self.marked_down.subscribe()
    }

    /// Whether an answer of the member would change its state.
    pub fn is_under_watch(&self) -> bool {
        self.is_doubted() || self.suspected.load(Ordering::Relaxed)
    }
}

/// A slot in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldSlot {
    /// When it was given away.
    pub since: Instant,
    /// The kind of its request, as the claim says.
    pub kind: Option<WorkKind>,
}

/// A slot that was given away, as a plain value. Its holder must pass it to [`Roster::release`].
pub(super) struct Grant<E> {
    pub member: Arc<Member<E>>,
    pub since: Instant,
    pub trial: bool,
    /// The member was ejected and has not answered since.
    pub was_ejected: bool,
    /// The member gets no other request meanwhile.
    pub alone: bool,
    /// What may follow the lease.
    pub long_lived: Option<LongLived>,
    /// What the member had at the grant.
    pub beside: Beside,
    /// The place of the member among the members at the grant. It may have changed.
    pub place: u32,
    /// The key of the slot in [`MemberState::held`], where its kind is. A grant is kept small.
    pub held: u32,
    /// The pool waits to hear that the request has been sent.
    pub unsent: AtomicBool,
    /// The pool waits to hear that the member has answered.
    pub unanswered: AtomicBool,
    /// What the key of the request was charged, in a fair pool.
    pub charge: Option<Charge>,
}

impl<E> Grant<E> {
    /// The member, and the key of the slot there.
    pub fn slot(&self) -> (MemberId, u32) {
        (self.member.id, self.held)
    }

    /// The request has been sent to the member, or will not be. Returns whether this was not known yet.
    pub fn sent(&self) -> bool {
        let is_news = self.unsent.load(Ordering::Relaxed) && self.unsent.swap(false, Ordering::Relaxed);
        if is_news {
            self.member.sent();
        }
        is_news
    }

    /// The member has answered the request.
    pub fn answered(&self) {
        if self.unanswered.load(Ordering::Relaxed) && self.unanswered.swap(false, Ordering::Relaxed) {
            self.member.answered.fetch_add(1, Ordering::Release);
        }
    }

    /// Whether the member has answered the request. True for a member whose event loop is not observed.
    pub fn is_answered(&self) -> bool {
        !self.unanswered.load(Ordering::Relaxed)
    }
}

/// The tunnels or the streams of one member.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LongLivedCount {
    pub open: usize,
    /// Leases that may become one.
    pub reserved: usize,
}

impl LongLivedCount {
    /// Those that are open, and those that may be soon.
    pub fn all(self) -> usize {
        self.open + self.reserved
    }
}

/// When a member gets its next request, as far as its state tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// At once.
    Now,
    /// Not before this instant.
    At(Instant),
    /// Not before its state changes.
    Closed,
}

/// A member in its pool.
pub(super) struct MemberState<E> {
    pub member: Arc<Member<E>>,
    /// The most requests that it gets at the same time.
    pub slots: usize,
    /// Decides below that number whether it gets one more.
    pub event_loop: Option<LoopState>,
    /// Preferred by claims that ask for a near member.
    pub near: bool,
    pub in_use: usize,
    /// The slots in use, one entry each.
    pub held: Slab<HeldSlot>,
    pub tunnels: LongLivedCount,
    pub streams: LongLivedCount,
    /// Leases that requests have really taken.
    pub granted: u64,
    pub end_order: EndOrder,
    /// The value of the pool's turn counter when a slot was last given or returned.
    pub last_used: u64,
    pub ejected_until: Option<Instant>,
    /// When the last connection to it failed. None if that one was made, also by a member that takes connections and does not answer.
    pub out_of_reach: Option<Instant>,
    /// A member that is in doubt gets one request at a time, not all that wait.
    pub on_trial: bool,
    /// Its membership is gone. The state stays until the last lease has ended, so that the figures stay correct.
    pub left: bool,
    /// After it has left, and while it still has leases, it gets the requests that are bound to it until this time.
    pub bound_until: Option<Instant>,
    /// It has no lease and gets none for a moment (see `Hold`).
    pub held_back: bool,
    /// When the lease was granted that has the member alone.
    pub exclusive: Option<Instant>,
    /// When it last had more than one lease.
    pub shared_until: Option<Instant>,
    /// Requests in a row that timed out on it.
    pub late: u32,
    /// How often in a row it has ended requests without an answer.
    pub hang_ups: HangUps,
    /// Ejections in a row.
    pub ejections: u32,
    /// How long the last ejection lasts.
    pub ejected_for: Duration,
    /// Its health check reports that it is not healthy.
    pub unhealthy: bool,
    /// Its event loop does not turn, although it has requests.
    pub blocked: bool,
    pub joined: Instant,
    /// The sum of the times of all its leases, up to `counted`.
    pub lease_time: Duration,
    pub counted: Instant,
    /// The instant for which the index of free slots has noted it.
    pub returns_at: Option<Instant>,
}

impl<E> MemberState<E> {
    pub fn is_ejected(&self, now: Instant) -> bool {
        self.ejected_until.is_some_and(|until| now < until)
    }

    /// Whether it can begin a request now that is bound to it.
    pub fn has_bound_slot(&self, now: Instant) -> bool {
        self.has_room(now) && self.can_begin(|| Duration::ZERO, now)
    }

    /// Whether it may be able to begin a request now. Does not observe the event loop: after a `true`, ask
    /// [`Self::can_begin`].
    pub fn may_have_free_slot(&self, now: Instant) -> bool {
        let may_begin = |event_loop: &LoopState| event_loop.may_begin(self.in_use, self.member.unsent(), now);
        !self.left && self.has_room(now) && self.event_loop.as_ref().is_none_or(may_begin)
    }

    /// Whether its event loop, if that is observed, can begin one more request. `waited`: how long the oldest waiting request
    /// has waited.
    pub fn can_begin(&self, waited: impl FnOnce() -> Duration, now: Instant) -> bool {
        self.event_loop.as_ref().is_none_or(|event_loop| {
            event_loop.note_answered(self.member.answered.load(Ordering::Acquire));
            event_loop.can_begin(self.in_use, self.member.unsent(), waited, now)
        })
    }

    /// When the member gets its next request. Without `now`, as if no time had passed. From then on `may_have_free_slot` is true, with one
    /// exception: the pool still waits to hear that a request was sent, and the event loop was not observed since.
    pub fn opening(&self, now: Option<Instant>) -> Opening {
        if self.left || self.is_shut() {
            return Opening::Closed;
        }
        let closed_until = || self.event_loop.as_ref()?.closed_until(self.in_use, now);
        let later = |at: &Instant| now.is_none_or(|now| now < *at);
        let at = self.ejected_until.filter(later).or_else(|| closed_until().filter(later));
        at.map_or(Opening::Now, Opening::At)
    }

    /// Whether its number of slots and its state allow one more request.
    fn has_room(&self, now: Instant) -> bool {
        !self.is_shut() && !self.has_left(now) && !self.is_ejected(now)
    }

    /// It gets no request before its state changes. Apart from this, `has_room` depends on the time.
    fn is_shut(&self) -> bool {
        let is_held = self.held_back || self.exclusive.is_some();
        self.in_use >= self.slots || is_held || self.unhealthy || self.is_tried()
    }

    /// It is in doubt and has one request, which shows whether it responds. It gets no other.
    fn is_tried(&self) -> bool {
        self.on_trial && self.member.is_doubted()
    }

    /// Whether it gets no requests because requests have timed out on it.
    pub fn is_kept_out(&self, now: Instant) -> bool {
        self.ejections > 0 && (self.is_ejected(now) || self.is_tried())
    }

    /// It gets no requests any more, not even those that are bound to it.
    pub fn has_left(&self, now: Instant) -> bool {
        self.left && self.bound_until.is_none_or(|until| until <= now)
    }

    /// Whether requests that are bound to this member go to other members: it has left, is unhealthy, or is ejected after a failure. A
    /// suspense alone does not count.
    pub fn is_lost(&self, now: Instant) -> bool {
        let is_down = self.is_ejected(now) && (self.ejections > 0 || self.member.is_doubted());
        self.has_left(now) || self.unhealthy || is_down
    }

    /// The member was ejected and has not responded since. Until as much time again has passed as the ejection lasted,
    /// requests that cannot be repeated avoid it.
    pub fn is_unproven(&self, now: Instant) -> bool {
        let proves_until = self.ejected_until.map(|until| until + self.ejected_for);
        self.ejections > 0 && proves_until.is_some_and(|until| now < until)
    }

    /// It gets no requests at the moment, for any reason.
    pub fn is_out(&self, now: Instant) -> bool {
        self.unhealthy || self.is_ejected(now)
    }

    /// The requests that it works on at the same time, for estimates of the pool's speed. While requests wait, a member
    /// with an observed event loop has as many as it can take.
    pub fn parallel(&self) -> usize {
        if self.event_loop.is_some() { self.in_use.max(1) } else { self.slots }
    }

    /// The slots that the Status shows: not fewer than are in use, also after the number was lowered, and of a member that leaves those in use.
    pub fn shown_slots(&self) -> usize {
        if self.left { self.in_use } else { self.slots.max(self.in_use) }
    }

    /// Whether it takes one more of this kind. A member that leaves tells its tunnels and streams to end.
    pub fn takes(&self, kind: LongLived, settings: &PoolSettings) -> bool {
        !self.left && self.has_room_for(kind, settings)
    }

    /// Whether [`Self::forgive`] would change it.
    pub fn is_in_any_doubt(&self) -> bool {
        let has_failed = self.late > 0 || self.ejections > 0 || self.member.is_under_watch();
        has_failed || self.ejected_until.is_some() || self.on_trial
    }

    /// Counts a failure. Returns how many there are in a row.
    pub fn fail(&self) -> u32 {
        let failures = self.member.failures.load(Ordering::Relaxed).saturating_add(1);
        self.member.failures.store(failures, Ordering::Relaxed);
        failures
    }

    /// Ends ejections and doubts.
    pub fn forgive(&mut self) {
        self.member.failures.store(0, Ordering::Relaxed);
        self.member.suspected.store(false, Ordering::Relaxed);
        self.ejected_until = None;
        (self.out_of_reach, self.on_trial) = (None, false);
        (self.late, self.hang_ups.count, self.ejections) = (0, 0, 0);
    }

    pub fn count(&mut self, kind: LongLived) -> &mut LongLivedCount {
        match kind {
            LongLived::Tunnel => &mut self.tunnels,
            LongLived::Stream => &mut self.streams,
        }
    }

    /// Whether it may have one more of this kind.
    pub fn has_room_for(&self, kind: LongLived, settings: &PoolSettings) -> bool {
        match kind {
            LongLived::Tunnel => self.tunnels.all() < settings.max_tunnels,
            LongLived::Stream => self.streams.all() < settings.max_streams,
        }
    }

    /// Its tunnels and streams, and its leases that may become one.
    pub fn all_long_lived(&self) -> usize {
        self.tunnels.all() + self.streams.all()
    }

    /// Whether it has a tunnel or a stream.
    pub fn has_long_lived(&self) -> bool {
        self.tunnels.open > 0 || self.streams.open > 0
    }

    /// The sum of the times of all its leases up to now. Call it before each change of their number.
    pub fn lease_time(&mut self, now: Instant) -> Duration {
        let leases = u32::try_from(self.in_use).unwrap_or(u32::MAX);
        self.lease_time += now.saturating_duration_since(self.counted) * leases;
        self.counted = now;
        self.lease_time
    }
}
