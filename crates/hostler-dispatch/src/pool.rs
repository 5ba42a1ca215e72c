//! A pool as its requests see it: the wait for a slot, and the slot itself. Does not decide the order of requests, and sets
//! no deadline: to give up, the caller drops the future.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::Instant;

use super::claim::{Claim, MemberId, MemberPreference, Priority, Ticket};
use super::fair_key::FairKey;
use super::lease::Lease;
use super::occupancy::{Occupancy, OccupancyLimits};
use super::place::QueuePosition;
use super::queue::AcquireError;
use super::settings::PoolSettings;
use super::shared::PoolInner;
use super::snapshot::PoolSnapshot;

/// A queue with members. A clone is cheap and is the same pool.
pub struct Pool<E> {
    pub(super) shared: Arc<PoolInner<E>>,
}

impl<E> Clone for Pool<E> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<E: Send + Sync + 'static> Pool<E> {
    /// An empty pool.
    pub fn new(name: impl Into<Arc<str>>, settings: PoolSettings) -> Self {
        Self { shared: PoolInner::new(name.into(), settings) }
    }

    /// The name given to [`Self::new`].
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Waits for a slot, in order of arrival.
    ///
    /// To give up (after a deadline, or when the client leaves), drop the future; it has no timer. A request that tries
    /// again shows its ticket in the claim and keeps its position.
    pub fn acquire(&self, claim: Claim) -> Acquire<E> {
        self.acquire_at(claim, Instant::now())
    }

    /// As [`Self::acquire`], for a caller that has just read the clock. The first poll follows at once.
    pub fn acquire_at(&self, claim: Claim, now: Instant) -> Acquire<E> {
        let serial = self.shared.next_number.fetch_add(1, Ordering::Relaxed);
        let ticket = claim.ticket.unwrap_or(Ticket { number: serial, arrived: now });
        Acquire::new(
            Arc::clone(&self.shared),
            QueuePosition { priority: claim.priority, ticket, serial },
            claim,
            now,
        )
    }

    /// Refuses a request that is not complete yet, if its pool would refuse it now: the pool is closed, or its queue is
    /// full. `None`: ask again by [`Self::acquire`] when it is complete.
    pub fn refuse_early(&self, priority: Priority, key: Option<FairKey>) -> Option<AcquireError> {
        let mut state = self.shared.lock();
        if state.closed {
            return Some(AcquireError::Closed);
        }
        // With a limit of 0 no request waits, so nothing tells whether a slot is free.
        if state.roster.settings().queue_limit == 0 || !state.is_full_for(priority, key) {
            return None;
        }
        // Those that wait may all be bound to a busy member, while another one has a free slot.
        let now = state.at(Instant::now());
        if state.queue.is_empty_for(&MemberPreference::default()) && state.has_free_slot(now) {
            return None;
        }
        state.counters.refused_full += 1;
        Some(AcquireError::QueueFull { limit: state.queue_limit() })
    }

    /// Refuses a request that is not complete yet, if the pool has no member that it requires. `None`: ask again by [`Self::acquire`] when it
    /// is complete.
    pub fn refuse_without_member(&self, preference: &MemberPreference) -> Option<AcquireError> {
        let mut state = self.shared.lock();
        let is_lacking = state.roster.lacks(preference);
        is_lacking.then(|| state.counters.refuse_aim(AcquireError::NoMember))
    }

    /// Between which virtual times a request would have its turn that comes now and may use any member. `None`: the pool is not fair.
    pub fn turn(&self, claim: &Claim) -> Option<Range<u64>> {
        let mut state = self.shared.lock();
        state.rest(Instant::now());
        let work = state.work_of(claim);
        Some(state.queue.fair.as_ref()?.turn(claim.priority, work.key(), work.time))
    }

    /// The figures of this moment.
    pub fn snapshot(&self) -> PoolSnapshot<()> {
        self.snapshot_with(|_| ())
    }

    /// The figures of this moment, with the result of `view` for each endpoint.
    pub fn snapshot_with<T>(&self, view: impl Fn(&E) -> T) -> PoolSnapshot<T> {
        let now = Instant::now();
        let (figures, members) = {
            let state = self.shared.lock();
            PoolSnapshot::take(&state, now)
        };
        figures.with_members(members, view)
    }

    /// Who waits and who holds a slot now, with the result of `view` for each endpoint.
    pub fn occupancy<T>(&self, limits: OccupancyLimits, view: impl Fn(&E) -> T) -> Occupancy<T> {
        let now = Instant::now();
        let occupancy = Occupancy::take(&self.shared.lock(), now, limits);
        occupancy.viewed(view)
    }

    /// Whether a member has ever joined the pool.
    pub fn has_had_members(&self) -> bool {
        self.shared.lock().roster.has_had_members()
    }

    /// Whether the last connection to each member has failed. False without a member, and for members that take connections and do not
    /// answer.
    pub fn is_unreachable(&self) -> bool {
        let state = self.shared.lock();
        let mut members = state.roster.present().peekable();
        members.peek().is_some() && members.all(|member| member.out_of_reach.is_some())
    }

    /// The same for one member.
    pub fn cannot_reach(&self, member: MemberId) -> bool {
        self.shared.lock().roster.state(member).is_some_and(|member| member.out_of_reach.is_some())
    }

    /// Closes the pool. Every waiting and every later request gets [`AcquireError::Closed`].
    pub fn close(&self) {
        let waiting = {
            let mut state = self.shared.lock();
            state.closed = true;
            state.queue.drain()
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Pauses the pool: it gives no slots. New requests wait, as many as the queue holds. Running leases, and slots that
    /// were already handed out, end normally; `in_use` in the snapshot tells when the last one has ended.
    pub fn pause(&self) {
        self.shared.pause(Instant::now());
    }

    /// Ends a pause. Free slots go to the waiting requests.
    pub fn resume(&self) {
        self.shared.change(|state, now| state.pause.end(now));
    }

    /// Whether the pool is paused.
    pub fn is_paused(&self) -> bool {
        self.shared.lock().pause.is_on()
    }

    /// The sum of all pauses so far, including a running one, and of the times in which the pool slept without a member. A
    /// caller can extend the time limit of a waiting request by it.
    pub fn paused_time(&self) -> Duration {
        self.shared.paused_time()
    }

    /// Tells all tunnels and streams of the current members to end.
    pub fn dismiss_tunnels(&self) {
        let members: Vec<_> = self
            .shared
            .lock()
            .roster
            .states()
            .iter()
            .map(|member_state| Arc::clone(&member_state.member))
            .collect();
        members.iter().for_each(|member| member.dismiss_tunnels());
    }

    /// Changes the settings from now on. Requests that already wait keep waiting.
    pub fn update(&self, settings: PoolSettings) {
        self.shared.change(|state, now| state.update(settings, now));
    }
}

/// Resolves to a [`Lease`].
///
/// The first poll enters the queue, at the position that the ticket gives. Dropping the future leaves the queue. If a
/// slot was already handed to this request, it goes to the next waiter.
#[must_use = "a future does nothing unless polled"]
pub struct Acquire<E> {
    /// `None` after the future has resolved.
    shared: Option<Arc<PoolInner<E>>>,
    place: QueuePosition,
    claim: Claim,
    /// The time of the call to `acquire`. The first poll uses it, as that follows at once.
    asked: Option<Instant>,
    queued: bool,
    ahead: Option<usize>,
}

impl<E> Acquire<E> {
    fn new(shared: Arc<PoolInner<E>>, place: QueuePosition, claim: Claim, asked: Instant) -> Self {
        Self { shared: Some(shared), place, claim, asked: Some(asked), queued: false, ahead: None }
    }

    /// The arrival number. The same request shows it when it tries again.
    pub fn ticket(&self) -> Ticket {
        self.place.ticket
    }

    /// A request that is bound to a member waits for any member from now on, at its place.
    pub fn unbind(mut self: Pin<&mut Self>) {
        self.claim.preference.bound = None;
        if let Some(shared) = self.shared.as_ref().filter(|_| self.queued) {
            shared.unbind(self.place);
        }
    }

    /// How many requests waited when this one arrived. `None` before the first poll.
    pub fn ahead(&self) -> Option<usize> {
        self.ahead
    }
}

impl<E: Send + Sync + 'static> Future for Acquire<E> {
    type Output = Result<Lease<E>, AcquireError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let shared = this.shared.take().expect("invariant: a future is not polled after it has resolved");
        let now = this.asked.take().unwrap_or_else(Instant::now);
        let place = (this.place, &mut this.ahead);
        match shared.poll_grant(place, &this.claim, &mut this.queued, context.waker(), now) {
            Poll::Ready(Ok(grant)) => Poll::Ready(Ok(Lease::new(shared, grant))),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                this.shared = Some(shared);
                Poll::Pending
            }
        }
    }
}

impl<E> Drop for Acquire<E> {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared
            && self.queued
        {
            shared.give_up(self.place);
        }
    }
}
