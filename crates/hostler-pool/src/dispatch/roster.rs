//! The members of a pool and the state of their slots; knows nothing of those who wait.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::bench::BenchSettings;

/// A member's number; never given twice in a pool's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct MemberId(NonZeroU64);

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What leases, the membership and the pool share of one member.
pub(super) struct Member<E> {
    pub id: MemberId,
    pub endpoint: E,
    /// Failures in a row. Written under the pool's lock only; read without it, so that the answer of a healthy
    /// member costs no lock.
    failures: AtomicU32,
    /// It hung up on a request and has not answered any since; written and read as `failures` are.
    suspected: AtomicBool,
    /// Its tunnels are to end: it has left, or its pool has.
    dismissed: watch::Sender<bool>,
    /// Dropped with the member, never under the pool's lock: tells that its last lease has ended.
    _held: oneshot::Sender<()>,
}

impl<E> Member<E> {
    pub fn is_doubted(&self) -> bool {
        self.failures.load(Ordering::Relaxed) > 0
    }

    /// Its tunnels are to end. Wakes foreign tasks: never under the pool's lock.
    pub fn dismiss_tunnels(&self) {
        self.dismissed.send_replace(true);
    }

    /// True from then on.
    pub fn dismissed(&self) -> watch::Receiver<bool> {
        self.dismissed.subscribe()
    }

    /// Whether an answer would be news.
    pub fn is_under_watch(&self) -> bool {
        self.is_doubted() || self.suspected.load(Ordering::Relaxed)
    }
}

/// A slot that has been given away, as a plain value: whoever holds it must give it to [`Roster::release`].
pub(super) struct Grant<E> {
    pub member: Arc<Member<E>>,
    pub since: Instant,
    pub trial: bool,
    /// A tether may follow.
    pub tunnel: bool,
}

pub(super) struct Seat<E> {
    pub member: Arc<Member<E>>,
    pub slots: usize,
    /// Before the others for a claim that says so.
    pub near: bool,
    pub in_use: usize,
    /// Tethers that are held, and those that leases in use may become.
    pub tunnels: usize,
    pub reserved: usize,
    /// Leases that were really taken.
    pub granted: u64,
    /// The pool's turn counter when it was last given or got back a slot.
    pub last_used: u64,
    pub benched_until: Option<Instant>,
    /// A doubted member is tried with one request at a time, not with all that wait.
    pub on_trial: bool,
    /// Its membership is gone; the seat stays until the last lease has ended, so that the figures stay true.
    pub left: bool,
    /// It has no lease and is to have none for a moment.
    pub held_back: bool,
    /// The time that all its leases have taken, up to `counted`.
    pub lease_time: Duration,
    pub counted: Instant,
}

impl<E> Seat<E> {
    pub fn is_benched(&self, now: Instant) -> bool {
        self.benched_until.is_some_and(|until| now < until)
    }

    pub fn has_free_slot(&self, now: Instant) -> bool {
        let is_tried = self.on_trial && self.member.is_doubted();
        self.in_use < self.slots && !self.left && !self.held_back && !is_tried && !self.is_benched(now)
    }

    /// Whether it may be the member of one more tunnel.
    pub fn has_room_for_tunnel(&self, most: usize) -> bool {
        self.all_tunnels() < most
    }

    /// Whatever kept it from being tried is forgotten.
    fn forgive(&mut self) {
        self.member.failures.store(0, Ordering::Relaxed);
        self.member.suspected.store(false, Ordering::Relaxed);
        self.benched_until = None;
        self.on_trial = false;
    }

    /// Those that it has, and those that it may be about to have.
    pub fn all_tunnels(&self) -> usize {
        self.tunnels + self.reserved
    }

    /// The time that all its leases have taken up to now. To be asked before each change of their number.
    pub fn lease_time(&mut self, now: Instant) -> Duration {
        let leases = u32::try_from(self.in_use).unwrap_or(u32::MAX);
        self.lease_time += now.saturating_duration_since(self.counted) * leases;
        self.counted = now;
        self.lease_time
    }
}

/// Ordered by id, as ids only grow.
pub(super) struct Roster<E> {
    seats: Vec<Seat<E>>,
    turns: u64,
    next_id: NonZeroU64,
}

impl<E> Roster<E> {
    pub fn new() -> Self {
        Self { seats: Vec::new(), turns: 0, next_id: NonZeroU64::MIN }
    }

    pub fn seats(&self) -> &[Seat<E>] {
        &self.seats
    }

    pub fn seat_mut(&mut self, id: MemberId) -> Option<&mut Seat<E>> {
        let index = self.index_of(id)?;
        self.seats.get_mut(index)
    }

    pub fn index_of(&self, id: MemberId) -> Option<usize> {
        self.seats.binary_search_by_key(&id, |seat| seat.member.id).ok()
    }

    /// Those that have not left.
    pub fn present(&self) -> impl DoubleEndedIterator<Item = &Seat<E>> {
        self.seats.iter().filter(|seat| !seat.left)
    }

    pub fn add(
        &mut self,
        endpoint: E,
        slots: usize,
        near: bool,
        held: oneshot::Sender<()>,
    ) -> Arc<Member<E>> {
        let id = MemberId(self.next_id);
        self.next_id = self.next_id.saturating_add(1);
        let (failures, suspected) = (AtomicU32::new(0), AtomicBool::new(false));
        let dismissed = watch::Sender::new(false);
        let member = Arc::new(Member { id, endpoint, failures, suspected, dismissed, _held: held });
        self.seats.push(Seat {
            member: Arc::clone(&member),
            slots,
            near,
            in_use: 0,
            tunnels: 0,
            reserved: 0,
            granted: 0,
            last_used: 0,
            benched_until: None,
            on_trial: false,
            left: false,
            held_back: false,
            lease_time: Duration::ZERO,
            counted: Instant::now(),
        });
        member
    }

    /// The seat at `index` gives away a slot.
    pub fn grant(&mut self, index: usize, tunnel: bool, now: Instant) -> Grant<E> {
        self.turns += 1;
        let seat = &mut self.seats[index];
        debug_assert!(seat.has_free_slot(now), "only a free slot is granted");
        seat.lease_time(now);
        seat.in_use += 1;
        seat.reserved += usize::from(tunnel);
        seat.last_used = self.turns;
        let trial = seat.member.is_doubted();
        seat.on_trial |= trial;
        Grant { member: Arc::clone(&seat.member), since: now, trial, tunnel }
    }

    /// A slot comes back. The caller holds the member, so no endpoint is dropped in here, under the lock.
    pub fn release(&mut self, grant: &Grant<E>, now: Instant) {
        self.turns += 1;
        let (id, turns) = (grant.member.id, self.turns);
        let Some(seat) = self.seat_mut(id) else { return };
        seat.lease_time(now);
        seat.in_use -= 1;
        seat.reserved -= usize::from(grant.tunnel);
        seat.last_used = turns;
        seat.on_trial &= !grant.trial;
        self.forget_if_gone(id);
    }

    /// Something goes on at the member without a slot; to be said while it still has one.
    pub fn tether(&mut self, id: MemberId) {
        if let Some(seat) = self.seat_mut(id) {
            seat.tunnels += 1;
        }
    }

    /// It has ended; the caller holds the member, as in [`Self::release`].
    pub fn untether(&mut self, id: MemberId) {
        if let Some(seat) = self.seat_mut(id) {
            seat.tunnels -= 1;
        }
        self.forget_if_gone(id);
    }

    /// No new leases; the caller holds the member, as in [`Self::release`].
    pub fn leave(&mut self, id: MemberId) {
        if let Some(seat) = self.seat_mut(id) {
            seat.left = true;
        }
        self.forget_if_gone(id);
    }

    /// The member could not be reached. Returns until when it is benched, if this failure was news: what was
    /// granted before a bench ended was granted before it began, and says nothing new.
    pub fn bench(&mut self, grant: &Grant<E>, settings: BenchSettings, now: Instant) -> Option<Instant> {
        let seat = self.seat_mut(grant.member.id)?;
        if seat.left || seat.benched_until.is_some_and(|until| grant.since < until) {
            return None;
        }
        let failures = seat.member.failures.load(Ordering::Relaxed).saturating_add(1);
        seat.member.failures.store(failures, Ordering::Relaxed);
        let until = now + settings.after(failures);
        seat.benched_until = Some(until);
        Some(until)
    }

    /// The member gets nothing until then, unless it answers another request before. That is no failure.
    pub fn suspend(&mut self, id: MemberId, until: Instant) {
        if let Some(seat) = self.seat_mut(id) {
            seat.member.suspected.store(true, Ordering::Relaxed);
            seat.benched_until = seat.benched_until.max(Some(until));
        }
    }

    /// Whatever kept members from being tried is forgotten, as if all had answered.
    pub fn forgive(&mut self) {
        for seat in &mut self.seats {
            seat.forgive();
        }
    }

    pub fn set_slots(&mut self, id: MemberId, slots: usize) {
        if let Some(seat) = self.seat_mut(id) {
            seat.slots = slots;
        }
    }

    /// The member answered: no more doubt.
    pub fn reached(&mut self, id: MemberId) {
        if let Some(seat) = self.seat_mut(id) {
            seat.forgive();
        }
    }

    fn forget_if_gone(&mut self, id: MemberId) {
        if let Some(index) = self.index_of(id)
            && self.seats[index].left
            && self.seats[index].in_use == 0
            && self.seats[index].tunnels == 0
        {
            self.seats.remove(index);
        }
    }
}
