//! The lease of one slot: what a request holds while its member works, and the ways in which that ends. Does not know how slots are chosen.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, sleep_until};

use super::claim::{LongLived, MemberId};
use super::cost::{Payer, Payment, SlotCost};
use super::cpu::CpuClock;
use super::fair::Charge;
use super::member::Grant;
use super::shared::{COST_OF_DEATH, PoolInner};
use super::tunnel_guard::TunnelGuard;

/// How often a member that has ended a request without an answer is looked at. An app that ends a connection is soon at its event loop again.
const LOOK_PAUSE: Duration = Duration::from_millis(2);

/// How a lease ends. Each ending returns the slot at once. They differ in what the pool then does with the member. A lease can also
/// become a [`TunnelGuard`].
#[derive(Debug, Clone, Copy)]
pub enum LeaseEnding {
    /// The member has finished, or the slot was not used. The member gets the next request. A dropped lease ends in this way.
    Finished(Instant),
    /// The request has ended early, because its client has left, and the member may still work for it. Its payer is told. In a fair pool its key pays
    /// at least what such requests cost on average.
    Abandoned(Instant),
    /// The member could not be reached. This is a failure of the member: it gets no request until its back-off ends.
    Unreachable,
    /// The member ended the request without an answer, and may be about to die. It gets no request for a moment, or until its clock shows that
    /// it lives. Otherwise the same request would go to it again at once.
    HungUp,
    /// The member ended the request without an answer, and probably lives: another system runs it, and nothing tells when one of its processes
    /// dies. It gets the next request at once, unless it has ended many in a row so. A dead one refuses the next connection.
    Unanswered,
    /// As [`LeaseEnding::HungUp`], but the member has not processed the request: it says so, or has ended without reading it. So the request is
    /// not the cause, and in a fair pool its key is charged nothing besides.
    Unprocessed,
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
    grant: Grant<E>,
    holds: Holding,
    /// The payer of the slot.
    payment: Option<Payment>,
    /// The payer was told the cost.
    is_paid: bool,
    /// The key of the request in the member's CPU account.
    under_way: Option<u32>,
}

impl<E> Lease<E> {
    pub(super) fn new(shared: Arc<PoolInner<E>>, grant: Grant<E>) -> Self {
        let (payment, under_way) = (None, None);
        Self { shared, grant, holds: Holding::Slot, payment, is_paid: false, under_way }
    }

    /// Sets the payer of the slot. When the slot comes back, `payer` gets `mark` and the cost of the slot.
    pub fn charge_to(&mut self, payer: Arc<dyn Payer>, mark: u64) {
        let payment = Payment { payer, mark };
        let cpu = self.grant.member.cpu.get();
        self.under_way = cpu.and_then(|cpu| u32::try_from(cpu.begin(self.since())).ok());
        self.payment = Some(payment);
    }

    /// The member has finished: tells the payer what the slot has cost, and returns that. `None` without a payer, or if it was
    /// told before. The slot is not returned.
    pub fn settle(&mut self, now: Instant) -> Option<SlotCost> {
        let payment = self.payment.as_ref().filter(|_| !self.is_paid)?;
        self.is_paid = !planted!(PaidTwice);
        let (cpu, under_way) = (self.grant.member.cpu.get(), self.under_way.take());
        let cpu = cpu.zip(under_way).map(|(cpu, key)| cpu.end(key as usize, now, payment));
        let cost = SlotCost { hold: now.saturating_duration_since(self.since()), cpu };
        payment.pay(cost);
        Some(cost)
    }

    fn settle_now(&mut self) {
        if self.payment.is_some() && !self.is_paid {
            self.settle(Instant::now());
        }
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

    /// The clock of the member's CPU time. None: it has none.
    pub fn clock(&self) -> Option<Arc<dyn CpuClock>> {
        self.grant.member.cpu.get().map(|cpu| Arc::clone(cpu.clock()))
    }

    /// How many other slots of the member were in use when this one was granted.
    pub fn others_in_use(&self) -> usize {
        usize::from(self.grant.beside.others)
    }

    /// Returns the slot and keeps the member: the returned guard stands for a tunnel. Tunnels have their own count. A member that leaves waits
    /// until the guard is dropped.
    pub fn tunnel_guard(mut self) -> TunnelGuard<E> {
        self.settle(Instant::now());
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
            self.settle(Instant::now());
            self.holds = Holding::Stream;
        }
        has_begun
    }

    /// Whether the lease stands for a stream.
    pub fn is_stream(&self) -> bool {
        self.holds == Holding::Stream
    }

    /// Whether the pool has another member that gets requests now.
    pub fn has_other_member(&self) -> bool {
        self.shared.has_other_member(self.grant.member.id)
    }

    /// Waits until a stream is to end: the member leaves, or all streams of the pool are dismissed. Ready at once if that has already
    /// happened.
    pub fn dismissed(&self) -> impl Future<Output = ()> + Send + use<E> {
        self.grant.member.dismissal()
    }

    /// A connection to the member was made for this request. If only connections had failed before, the member gets more requests from now
    /// on. Takes no lock unless the member was in doubt.
    pub fn connected(&self) {
        if self.grant.trial {
            self.shared.connected(self.grant.member.id);
        }
    }

    /// The member answered: its earlier failures no longer count. Takes no lock if there were none. Returns true if this ends an ejection.
    pub fn reached(&self) -> bool {
        self.grant.answered();
        self.grant.member.is_under_watch() && self.shared.reached(&self.grant.member)
    }

    /// Whether the member was ejected and has not answered since: this request shows whether it answers again.
    pub fn was_ejected(&self) -> bool {
        self.grant.was_ejected
    }

    /// Whether this is the member's only lease, and has been so for this long. A stream is alone if the member has no other stream either.
    pub fn is_alone(&self, long: Duration) -> bool {
        self.shared.is_alone(self.grant.member.id, self.is_stream(), long)
    }

    /// Resolves when the member is ejected, unhealthy or lost. A request that waits for its answer should then try another member.
    pub fn marked_down(&self) -> impl Future<Output = ()> + Send + use<E> {
        let mut marked_down = self.grant.member.marked_down();
        async move {
            if marked_down.wait_for(|marked_down| *marked_down).await.is_err() {
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
        self.settle(now);
        self.holds = Holding::Nothing;
        self.shared.release(&self.grant, now)
    }

    /// What ends, when called, that the request has its member alone. It does nothing after the end of the lease.
    pub fn sharing(&self) -> impl FnOnce() + Send + use<E> {
        let (shared, id, since) = (Arc::downgrade(&self.shared), self.member(), self.since());
        move || {
            if let Some(shared) = shared.upgrade() {
                shared.share(id, since);
            }
        }
    }

    /// Returns the slot, or ends the stream.
    pub fn end(mut self, how: LeaseEnding) {
        self.settle_now();
        let was = std::mem::replace(&mut self.holds, Holding::Nothing);
        let until = match how {
            LeaseEnding::HungUp if was == Holding::Stream => {
                self.shared.end_broken_stream(self.grant.member.id)
            }
            _ if was == Holding::Stream => {
                self.shared.end_long_lived(self.grant.member.id, LongLived::Stream);
                None
            }
            LeaseEnding::Finished(now) => {
                self.shared.release(&self.grant, now);
                None
            }
            LeaseEnding::Abandoned(now) => {
                if let Some(payment) = self.payment.as_ref().filter(|_| !planted!(UntoldReset)) {
                    let held = now.saturating_duration_since(self.grant.since);
                    let charged = self.grant.charge.map_or(Duration::ZERO, Charge::cost);
                    payment.payer.pay_early(held, charged.saturating_sub(held));
                }
                self.shared.release_early(&self.grant, now);
                None
            }
            LeaseEnding::Unreachable => self.shared.fail(&self.grant),
            LeaseEnding::HungUp => {
                if let Some(payment) = &self.payment {
                    payment.payer.pay_besides(COST_OF_DEATH);
                }
                self.shared.suspect(&self.grant, COST_OF_DEATH, false)
            }
            LeaseEnding::Unanswered => self.shared.suspect(&self.grant, Duration::ZERO, true),
            LeaseEnding::Unprocessed => {
                let besides = if planted!(PaidUnprocessed) { COST_OF_DEATH } else { Duration::ZERO };
                self.shared.suspect(&self.grant, besides, false)
            }
        };
        if let Some(until) = until {
            if matches!(how, LeaseEnding::HungUp | LeaseEnding::Unprocessed) {
                self.look_for_life(until);
            }
            redispatch_at(&self.shared, until);
        }
    }

    /// Ends the suspense of a member that has hung up on a request but lives: its main thread waits for events again. The main thread of a
    /// process that dies does not do that any more once its connections end. Without this, clients could keep all others from the workers
    /// by requests on which the app hangs up, such as WebSockets that it does not know.
    fn look_for_life(&self, until: Instant) {
        let (Some(clock), Ok(runtime)) = (self.clock(), Handle::try_current()) else { return };
        let (shared, id) = (Arc::downgrade(&self.shared), self.member());
        runtime.spawn(async move {
            loop {
                sleep(LOOK_PAUSE).await;
                if Instant::now() >= until {
                    return;
                }
                if clock.waits() {
                    break;
                }
            }
            if let Some(shared) = shared.upgrade() {
                shared.end_suspense(id, until);
            }
        });
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
        self.settle_now();
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

/// Dispatches at this time, such as the end of an ejection. If this runtime ends before, the next arrival or release does it.
pub(super) fn redispatch_at<E: Send + Sync + 'static>(shared: &Arc<PoolInner<E>>, until: Instant) {
    let Ok(runtime) = Handle::try_current() else { return };
    let shared: Weak<PoolInner<E>> = Arc::downgrade(shared);
    runtime.spawn(async move {
        sleep_until(until).await;
        if let Some(shared) = shared.upgrade() {
            shared.redispatch();
        }
    });
}
