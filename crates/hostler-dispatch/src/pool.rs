//! A pool as its requests see it: the wait for a slot, and the slot itself. Does not decide the order of requests, and sets
//! no deadline: to give up, the caller drops the future.

use std::fmt;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::Instant;

use super::claim::{Claim, LongLived, MemberId, Ticket};
use super::member::Grant;
use super::place::QueuePosition;
use super::queue::AcquireError;
use super::settings::PoolSettings;
use super::shared::PoolInner;
use super::snapshot::PoolSnapshot;
use super::tunnel_guard::TunnelGuard;

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
    pub fn refuse_early(&self) -> Option<AcquireError> {
        let mut state = self.shared.lock();
        if state.closed {
            return Some(AcquireError::Closed);
        }
        let limit = state.settings.queue_limit;
        // With a limit of 0 no request waits, so nothing tells whether a slot is free.
        if limit == 0 || state.queue.newcomers() < limit {
            return None;
        }
        state.counters.refused_full += 1;
        Some(AcquireError::QueueFull { limit })
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
        self.shared.lock().update(settings);
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
            Poll::Ready(Ok(grant)) => Poll::Ready(Ok(Lease::new(shared, this.place.ticket, grant))),
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

/// How a lease ends. Each ending returns the slot at once. They differ in what the pool then does with the member. A lease can also
/// become a [`TunnelGuard`].
#[derive(Debug, Clone, Copy)]
pub enum LeaseEnding {
    /// The member has finished, or the slot was not used. The member gets the next request. A dropped lease ends in this way.
    Finished(Instant),
    /// The member could not be reached. This is a failure of the member: it gets no request until its back-off ends.
    Unreachable,
    /// The member ended the request without an answer, and may be about to die. It gets no request for a moment. Otherwise the same request
    /// would go to it again at once.
    HungUp,
}

/// What a lease holds of its member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holding {
    Slot,
    /// The member, without a slot.
    Stream,
    /// Nothing any more.
    Nothing,
}

/// One slot at one member, returned when dropped; or a stream there, which ends when dropped. Derefs to the member's endpoint.
#[must_use = "dropping a lease returns the slot"]
pub struct Lease<E> {
    shared: Arc<PoolInner<E>>,
    ticket: Ticket,
    grant: Grant<E>,
    holds: Holding,
}

impl<E> Lease<E> {
    fn new(shared: Arc<PoolInner<E>>, ticket: Ticket, grant: Grant<E>) -> Self {
        Self { shared, ticket, grant, holds: Holding::Slot }
    }

    /// The member.
    pub fn member(&self) -> MemberId {
        self.grant.member.id
    }

    /// When the slot was granted.
    pub fn since(&self) -> Instant {
        self.grant.since
    }

    /// The request has been sent to the member. If the pool observes the member's event loop, the loop shows from now on
    /// whether it has begun the request.
    pub fn sent(&self) {
        let _ = self.grant.sent();
    }

    /// How many other slots of the member were in use when this one was granted.
    pub fn beside(&self) -> usize {
        self.grant.beside as usize
    }

    /// The arrival number of the request. The request shows it when it tries again.
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Returns the slot and keeps the member: the returned guard stands for a tunnel. Tunnels have their own count. A member that leaves waits
    /// until the guard is dropped.
    pub fn tunnel_guard(mut self) -> TunnelGuard<E> {
        self.holds = Holding::Nothing;
        self.shared.begin_tunnel(&self.grant);
        TunnelGuard::new(Arc::clone(&self.shared), Arc::clone(&self.grant.member))
    }

    /// Returns the slot and keeps the member: from now on the lease stands for a stream. Streams have their own count. A member that leaves
    /// waits until the lease is dropped. False if the member has too many streams: then the lease keeps its slot.
    pub fn begin_stream(&mut self) -> bool {
        debug_assert_eq!(self.holds, Holding::Slot, "a stream begins once");
        let has_begun = self.shared.begin_stream(&self.grant);
        if has_begun {
            self.holds = Holding::Stream;
        }
        has_begun
    }

    /// Whether the lease stands for a stream.
    pub fn is_stream(&self) -> bool {
        self.holds == Holding::Stream
    }

    /// Waits until a stream is to end: the member leaves, or all streams of the pool are dismissed. Ready at once if that has already
    /// happened.
    pub fn dismissed(&self) -> impl Future<Output = ()> + Send + use<E> {
        self.grant.member.dismissal()
    }

    /// The member answered: its earlier failures no longer count. Takes no lock if there were none. Returns true if this ends an ejection.
    pub fn reached(&self) -> bool {
        self.grant.member.is_under_watch() && self.shared.reached(&self.grant.member)
    }

    /// Whether this is a trial: the member was ejected before, and this request shows whether it answers again.
    pub fn is_wary(&self) -> bool {
        self.grant.wary
    }

    /// Whether this is the member's only lease, and has been so for this long. A stream is alone if the member has no other stream either.
    pub fn is_alone(&self, long: Duration) -> bool {
        self.shared.is_alone(self.grant.member.id, self.is_stream(), long)
    }

    /// Resolves when the member is ejected, unhealthy or lost. A request that waits for its answer should then try another member.
    pub fn forsaken(&self) -> impl Future<Output = ()> + Send + use<E> {
        let mut forsaken = self.grant.member.forsaken();
        async move {
            if forsaken.wait_for(|forsaken| *forsaken).await.is_err() {
                std::future::pending().await
            }
        }
    }
}

impl<E: Send + Sync + 'static> Lease<E> {
    /// The member has finished: ends the lease as [`LeaseEnding::Finished`] does. True if a waiting request has got a slot by that, so
    /// that its task has been woken.
    pub fn finish(mut self, now: Instant) -> bool {
        if self.holds != Holding::Slot {
            return false;
        }
        self.holds = Holding::Nothing;
        self.shared.release(&self.grant, now)
    }

    /// Returns the slot, or ends the stream.
    pub fn end(mut self, how: LeaseEnding) {
        let was = std::mem::replace(&mut self.holds, Holding::Nothing);
        let until = match how {
            LeaseEnding::HungUp if was == Holding::Stream => {
                Some(self.shared.end_broken_stream(self.grant.member.id))
            }
            _ if was == Holding::Stream => {
                self.shared.end_long_lived(self.grant.member.id, LongLived::Stream);
                None
            }
            LeaseEnding::Finished(now) => {
                self.shared.release(&self.grant, now);
                None
            }
            LeaseEnding::Unreachable => self.shared.fail(&self.grant),
            LeaseEnding::HungUp => Some(self.shared.suspect(&self.grant)),
        };
        if let Some(until) = until {
            redispatch_at(&self.shared, until);
        }
    }

    /// The request timed out on the member. Returns how long the member is ejected, if this timeout ejects it. The slot is not returned.
    pub fn strike(&self) -> Option<Duration> {
        let until = self.shared.strike(&self.grant)?;
        redispatch_at(&self.shared, until);
        Some(until.saturating_duration_since(Instant::now()))
    }
}

impl<E> Deref for Lease<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.grant.member.endpoint
    }
}

impl<E> Drop for Lease<E> {
    fn drop(&mut self) {
        match self.holds {
            Holding::Slot => drop(self.shared.release(&self.grant, Instant::now())),
            Holding::Stream => self.shared.end_long_lived(self.grant.member.id, LongLived::Stream),
            Holding::Nothing => {}
        }
    }
}

impl<E> fmt::Debug for Lease<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("member", &self.member()).finish_non_exhaustive()
    }
}

/// Dispatches when the ejection has ended. If this runtime ends before, the next arrival or release does it.
fn redispatch_at<E: Send + Sync + 'static>(shared: &Arc<PoolInner<E>>, until: Instant) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    let shared: Weak<PoolInner<E>> = Arc::downgrade(shared);
    runtime.spawn(async move {
        tokio::time::sleep_until(until).await;
        if let Some(shared) = shared.upgrade() {
            shared.redispatch();
        }
    });
}
