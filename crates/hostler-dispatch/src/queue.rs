//! The waiting requests in their order, and the results of waits that their owners have not polled yet. Knows neither
//! members nor when a pool is overloaded.

use std::task::Waker;
use std::time::Duration;

use foldhash::{HashMap, HashMapExt};
use tokio::time::Instant;

use super::claim::{MemberId, MemberPreference, Priority};
use super::fair::FairShares;
use super::kinds::WorkKind;
use super::line::Line;
use super::place::QueuePosition;
use super::short_first::ShortFirst;
use super::span::QueueSpan;
use super::wait_list::{WaitList, Waiter};

/// While a class waits, at most this many slots in a row go to other classes.
const MOST_PASSED_OVER: u32 = 8;

/// Why a request gets no lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AcquireError {
    /// The queue already holds as many requests as its limit allows.
    #[error("the queue is full: {limit} requests wait already")]
    QueueFull {
        /// The pool's queue limit.
        limit: usize,
    },
    /// The pool is overloaded, and it could not have served this request in time. It refuses the request on arrival or
    /// after a short wait.
    #[error("the pool is overloaded")]
    Overloaded,
    /// The request may become a tunnel, and every member it may use already has the most tunnels allowed.
    #[error("no member takes another tunnel")]
    TooManyTunnels,
    /// The answer is expected to be a stream, and every member that the request may use already has the most streams
    /// allowed.
    #[error("no member takes another stream")]
    TooManyStreams,
    /// The pool has no member, or not the member that the claim requires.
    #[error("the pool has no such member")]
    NoMember,
    /// The claim requires one member, and that member has no free slot.
    #[error("the member has no free slot")]
    MemberBusy,
    /// The claim's deadline has passed.
    #[error("no slot became free before the deadline")]
    Expired,
    /// The pool was closed.
    #[error("the pool is closed")]
    Closed,
}

/// A wait that ended without a lease.
pub(super) struct WaitFailure<G> {
    pub error: AcquireError,
    /// A slot that came too late.
    pub grant: Option<G>,
}

/// How a wait has ended.
#[derive(Debug)]
pub(super) enum WaitOutcome<G> {
    /// With a slot. The request has not taken it yet.
    Handed(G, QueueSpan),
    /// Without a slot.
    Refused(AcquireError),
}

/// Which slots are free for waiting requests.
pub(super) struct FreeSlots {
    /// A member has a free slot for a request that any member may serve.
    pub any: bool,
    /// The members with a free slot for a request that waits for this member.
    pub awaited: Vec<MemberId>,
}

/// The waiting requests of a pool, by class.
///
/// Ordered maps instead of deques: a request leaves from any position at once. So nothing remains of requests that have
/// left, however many come and go while every member is stuck.
pub(super) struct Queue<G> {
    pub(super) lines: [Line; Priority::COUNT],
    /// The order of the newcomers that wait for any member, if it is by shares.
    pub fair: Option<Box<FairShares>>,
    /// The same, if short requests come first.
    pub short: Option<Box<ShortFirst>>,
    len: usize,
    /// By serial number. A hash map keeps its memory, so a hand-over allocates nothing.
    ended: HashMap<u64, (QueuePosition, WaitOutcome<G>)>,
}

/// Whether a waiting request takes its turn among the keys of a fair pool: it is bound to no member, and has lost none.
pub(super) fn is_shared(place: QueuePosition, span: QueueSpan) -> bool {
    span.preference.bound.is_none() && !place.returns()
}

impl<G> Queue<G> {
    pub fn new() -> Self {
        Self { lines: Default::default(), fair: None, short: None, len: 0, ended: HashMap::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// How many requests of a class wait for any member.
    pub fn len_of(&self, priority: Priority) -> usize {
        let line = &self.lines[priority.index()];
        line.newcomers.len() + line.returned.len()
    }

    /// How many requests of a class wait for one member.
    pub fn bound_of(&self, priority: Priority) -> usize {
        self.lines[priority.index()].bound.len()
    }

    /// How many waiting requests count against the queue limit.
    pub fn newcomers(&self) -> usize {
        self.lines.iter().map(|line| line.newcomers.len() + line.bound.newcomers()).sum()
    }

    /// The newest request that counts against the queue limit, of the lowest class below this one that has any.
    pub fn newest_below(&self, priority: Priority) -> Option<QueuePosition> {
        let mut lower = Priority::ALL.into_iter().rev().take_while(|class| *class > priority);
        lower.find_map(|class| self.lines[class.index()].newest())
    }

    /// Whether a request with this preference would wait behind no other request.
    pub fn is_empty_for(&self, preference: &MemberPreference) -> bool {
        match preference.bound {
            _ if self.len == 0 => true,
            Some(member) => self.lines.iter().all(|line| line.bound.first_of(member).is_none()),
            None => self.lines.iter().all(Line::is_empty),
        }
    }

    /// The members for which requests wait.
    pub fn awaited(&self) -> Vec<MemberId> {
        let mut members: Vec<_> = self.lines.iter().flat_map(|line| line.bound.members()).collect();
        members.sort_unstable();
        members.dedup();
        members
    }

    /// Whether a request waits for one member.
    pub fn has_bound(&self) -> bool {
        self.lines.iter().any(|line| !line.bound.is_empty())
    }

    /// The requests that wait for this member wait for any member from now on, at their places.
    pub fn unbind_all(&mut self, member: MemberId) {
        for index in 0..self.lines.len() {
            for (place, waiter) in self.lines[index].take_bound(member) {
                self.admit(place, waiter);
            }
        }
    }

    /// A bound request comes to those that wait for any member.
    fn admit(&mut self, place: QueuePosition, mut waiter: Waiter) {
        (waiter.span.preference.bound, waiter.span.for_room) = (None, false);
        self.line_up(place, waiter);
    }

    fn line_up(&mut self, place: QueuePosition, waiter: Waiter) -> Option<Waiter> {
        if let Some(fair) = self.fair.as_mut().filter(|_| !place.returns()) {
            fair.insert(place, waiter.span.work.key(), waiter.span.work.time);
        }
        if let Some(short) = self.short.as_mut().filter(|_| !place.returns()) {
            short.insert(place, waiter.span.label());
        }
        self.lines[place.priority.index()].insert(place, waiter)
    }

    /// The request waits for any member from now on, at its place.
    pub fn unbind(&mut self, place: QueuePosition) {
        if let Some(waiter) = self.lines[place.priority.index()].remove_bound(place) {
            self.admit(place, waiter);
        }
    }

    /// The request waits for this member from now on, at its place: no other has room for its tunnel or stream.
    pub fn bind(&mut self, place: QueuePosition, member: MemberId) {
        if let Some(mut waiter) = self.remove(place) {
            (waiter.span.preference.bound, waiter.span.for_room) = (Some(member), true);
            self.lines[place.priority.index()].insert_bound(member, place, waiter);
            self.len += 1;
        }
    }

    /// What the requests of a class cost that wait for any member.
    pub fn work_of(&self, priority: Priority) -> Duration {
        self.lines[priority.index()].work
    }

    /// How many requests of a class wait for this member.
    pub fn len_bound_to(&self, priority: Priority, member: MemberId) -> usize {
        self.lines[priority.index()].bound.len_of(member)
    }

    /// When the oldest waiting request arrived.
    pub fn oldest(&self) -> Option<Instant> {
        let any = self.lines.iter().filter_map(Line::first).map(|(place, _)| place.ticket.arrived);
        any.chain(self.lines.iter().filter_map(|line| line.bound.oldest())).min()
    }

    /// When the oldest request arrived that one more member could serve.
    pub fn oldest_for_any(&self) -> Option<Instant> {
        self.lines.iter().filter_map(Line::oldest_for_any).min()
    }

    /// The waiting requests that arrived first, at most `most` of them: when each arrived, and its kind.
    pub fn first_arrivals(&self, most: usize) -> Vec<(Instant, Option<WorkKind>)> {
        let of = |(place, waiter): (QueuePosition, &Waiter)| (place.ticket.arrived, waiter.span.work.kind);
        let mut arrivals: Vec<_> = self
            .lines
            .iter()
            .flat_map(|line| {
                let sides = [&line.returned, &line.newcomers].into_iter();
                sides.flat_map(|side| side.iter().take(most)).chain(line.bound.iter().take(most))
            })
            .map(of)
            .collect();
        arrivals.sort_unstable_by_key(|(arrived, _)| *arrived);
        arrivals.truncate(most);
        arrivals
    }

    pub fn push(&mut self, place: QueuePosition, span: QueueSpan, waker: Waker) {
        let waiter = Waiter { waker, span };
        let before = match span.preference.bound {
            Some(member) => self.lines[place.priority.index()].insert_bound(member, place, waiter),
            None => self.line_up(place, waiter),
        };
        debug_assert!(before.is_none(), "a place is taken once");
        self.len += 1;
    }

    /// The class that gets the next slot. `free` says which slots are free: of any member, and of members for which
    /// requests wait.
    pub fn next_class(&self, free: &FreeSlots) -> Option<Priority> {
        let waiting = |priority: &Priority| {
            let line = &self.lines[priority.index()];
            (free.any && !line.is_empty()) || free.awaited.iter().any(|member| line.bound.has(*member))
        };
        let owed = |priority: &Priority| self.lines[priority.index()].passed_over >= MOST_PASSED_OVER;
        let classes = || Priority::ALL.into_iter().filter(waiting);
        let next = classes().find(owed).or_else(|| classes().next());
        next.filter(|_| !planted!(IdleSlot) || self.ended.is_empty())
    }

    /// The request of a class that gets the next slot: one that waits for any member, or one that waits for a member with
    /// a free slot, whichever comes first.
    pub fn next_free_of(&self, priority: Priority, free: &FreeSlots) -> Option<(QueuePosition, QueueSpan)> {
        let line = &self.lines[priority.index()];
        let any = if free.any { self.first_for_any(priority) } else { None };
        // If short requests come first, the requests for any member have the rank of their oldest one together.
        let rank = |place: QueuePosition| match &self.short {
            Some(_) => line.first().map_or(place, |(oldest, _)| oldest),
            None => place,
        };
        let any = any.map(|(place, waiter)| (rank(place), place, waiter));
        let bound = free.awaited.iter().filter_map(|member| line.bound.first_of(*member));
        let bound = bound.map(|(place, waiter)| (place, place, waiter));
        let next = any.into_iter().chain(bound).min_by_key(|(rank, ..)| *rank);
        next.map(|(_, place, waiter)| (place, waiter.span))
    }

    /// The next request of a class, of those for any member. A request that lost its member has had its turn, so it comes first.
    fn first_for_any(&self, priority: Priority) -> Option<(QueuePosition, &Waiter)> {
        let line = &self.lines[priority.index()];
        if planted!(WrongOrder) && line.newcomers.len() > 1 {
            return line.newcomers.iter().nth(1);
        }
        if let Some(short) = &self.short {
            return self.shortest(short, priority);
        }
        let Some(fair) = &self.fair else { return line.first() };
        let next = || line.newcomers.get(fair.first(priority)?);
        line.returned.first().or_else(next)
    }

    /// The same in a pool that serves short requests first: the oldest one is next if the other may not overtake it.
    fn shortest(&self, short: &ShortFirst, priority: Priority) -> Option<(QueuePosition, &Waiter)> {
        let line = &self.lines[priority.index()];
        let first = short.first(priority).and_then(|place| line.newcomers.get(place));
        let (place, waiter) = line.returned.first().or(first)?;
        let is_oldest = line.newcomers.first().is_none_or(|(oldest, _)| place <= oldest);
        if is_oldest || short.may_overtake(priority, waiter.span.label().cost) {
            Some((place, waiter))
        } else {
            line.first()
        }
    }

    /// Hands a grant of this member to a waiting request, which [`charge`](Self::charge) has charged. The caller wakes the returned waker
    /// after unlocking.
    pub fn hand(&mut self, place: QueuePosition, member: MemberId, grant: G) -> Option<Waker> {
        let waiter = self.take_out(place)?;
        for priority in Priority::ALL {
            let line = &mut self.lines[priority.index()];
            if priority == place.priority || !line.has_waiting() || planted!(StarvedClass) {
                line.passed_over = 0;
            } else {
                line.passed_over += u32::from(line.can_use(member));
            }
        }
        self.ended.insert(place.serial, (place, WaitOutcome::Handed(grant, waiter.span)));
        Some(waiter.waker).filter(|_| !planted!(LostWake))
    }

    /// Ends a wait without a slot. The caller wakes the returned waker after unlocking.
    pub fn refuse(&mut self, place: QueuePosition, error: AcquireError) -> Option<Waker> {
        let waiter = self.remove(place)?;
        self.ended.insert(place.serial, (place, WaitOutcome::Refused(error)));
        Some(waiter.waker)
    }

    /// How the wait has ended; returned once. `None` while it goes on.
    pub fn take_outcome(&mut self, place: QueuePosition) -> Option<WaitOutcome<G>> {
        self.ended.remove(&place.serial).map(|(_, outcome)| outcome)
    }

    /// Takes back the grants for which `is_void` returns true and which were not taken yet. Their requests wait again at
    /// their old positions. These were woken and have not been polled since, so they need no waker until that poll.
    pub fn take_back(&mut self, is_void: impl Fn(&G) -> bool) -> Vec<G> {
        let is_void =
            |outcome: &WaitOutcome<G>| matches!(outcome, WaitOutcome::Handed(grant, _) if is_void(grant));
        let ended = self.ended.values().filter(|(_, outcome)| is_void(outcome));
        let mut void: Vec<QueuePosition> = ended.map(|(place, _)| *place).collect();
        void.sort_unstable();
        let mut grants = Vec::with_capacity(void.len());
        for place in void {
            if let Some(WaitOutcome::Handed(grant, span)) = self.take_outcome(place) {
                if !planted!(ForgottenRequest) {
                    self.push(place, span, Waker::noop().clone());
                }
                grants.push(grant);
            }
        }
        grants
    }

    /// Removes a request. The caller drops the returned waiter after unlocking, because dropping its waker may run foreign code.
    pub fn leave(&mut self, place: QueuePosition) -> Option<Waiter> {
        self.remove(place)
    }

    /// Makes `waker` the one to wake. Returns the replaced waker, to be dropped as in [`Self::leave`].
    pub fn renew(&mut self, place: QueuePosition, waker: &Waker) -> Option<Waker> {
        let current = &mut self.lines[place.priority.index()].waiter_mut(place)?.waker;
        (!current.will_wake(waker)).then(|| std::mem::replace(current, waker.clone()))
    }

    pub fn drain(&mut self) -> Vec<Waker> {
        self.len = 0;
        (self.fair, self.short) = (None, None);
        self.lines.iter_mut().for_each(|line| line.work = Duration::ZERO);
        let bound: Vec<_> = self.lines.iter_mut().flat_map(|line| line.drain_bound()).collect();
        let bound = bound.into_iter().map(|(_, waiter)| waiter);
        let sides = self.lines.iter_mut().flat_map(|line| [&mut line.returned, &mut line.newcomers]);
        sides.flat_map(WaitList::drain).chain(bound).map(|waiter| waiter.waker).collect()
    }

    /// The request waits no more, and gets no slot.
    fn remove(&mut self, place: QueuePosition) -> Option<Waiter> {
        let waiter = self.take_out(place)?;
        if let Some(fair) = self.fair.as_mut().filter(|_| is_shared(place, waiter.span)) {
            fair.remove(place, waiter.span.work.key(), waiter.span.work.time);
        }
        Some(waiter)
    }

    fn take_out(&mut self, place: QueuePosition) -> Option<Waiter> {
        let line = &mut self.lines[place.priority.index()];
        let unbound = line.remove(place);
        if let (Some(short), Some(_)) = (&mut self.short, &unbound) {
            short.remove(place);
        }
        let waiter = unbound.or_else(|| line.remove_bound(place))?;
        self.len -= 1;
        Some(waiter)
    }

    /// The waiting requests by class, and the ends of waits that their owners have not polled yet.
    #[cfg(test)]
    pub fn parts(
        &self,
    ) -> (&[Line; Priority::COUNT], impl Iterator<Item = &(QueuePosition, WaitOutcome<G>)>) {
        (&self.lines, self.ended.values())
    }
}
