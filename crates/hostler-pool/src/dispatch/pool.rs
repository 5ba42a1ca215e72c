//! The pool and its one lock: what is woken or dropped is so after unlocking. Knows not who comes before whom.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::acquire::{Acquire, AcquireError};
use super::bench::{BenchSettings, SUSPENSE};
use super::choice::Choice;
use super::claim::{Claim, Policy};
use super::gauge::Waiting;
use super::membership::Membership;
use super::queue::{Outcome, Place, Ticket};
use super::roster::{Grant, Member, MemberId, Roster};
use super::snapshot::PoolSnapshot;
use super::state::State;

/// What of a pool can be set, also later by [`Pool::update`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// How it chooses among members with a free slot.
    pub choice: Choice,
    /// How many may wait; a returning ticket does not count.
    pub queue_limit: usize,
    /// In which order they are served, and whom it refuses.
    pub policy: Policy,
    /// How long a member that could not be reached gets nothing.
    pub bench: BenchSettings,
    /// How many tunnels one member may have.
    pub max_tunnels: usize,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            choice: Choice::default(),
            queue_limit: 100,
            policy: Policy::default(),
            bench: BenchSettings::default(),
            max_tunnels: usize::MAX,
        }
    }
}

/// A queue with members. Cheap to clone; all clones are the same pool.
pub struct Pool<E> {
    shared: Arc<Shared<E>>,
}

impl<E> Clone for Pool<E> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<E: Send + Sync + 'static> Pool<E> {
    /// An empty pool.
    pub fn new(name: impl Into<Arc<str>>, settings: PoolSettings) -> Self {
        Self {
            shared: Arc::new(Shared {
                name: name.into(),
                next_number: AtomicU64::new(1),
                state: Mutex::new(State::new(settings)),
            }),
        }
    }

    /// The name it was made with.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Adds a member with so many slots; it stays for as long as the returned membership is kept.
    pub fn join(&self, endpoint: E, slots: usize) -> Membership<E> {
        self.join_as(endpoint, slots, false)
    }

    /// Adds a member that comes before others for claims that aim at near ones.
    pub fn join_near(&self, endpoint: E, slots: usize) -> Membership<E> {
        self.join_as(endpoint, slots, true)
    }

    fn join_as(&self, endpoint: E, slots: usize, near: bool) -> Membership<E> {
        let (held, gone) = oneshot::channel();
        let member = self.shared.change(|state, _| state.roster.add(endpoint, slots, near, held));
        Membership::new(Arc::clone(&self.shared), member, gone)
    }

    /// How many members there are, whatever state they are in.
    pub fn members(&self) -> usize {
        self.shared.lock().roster.present().count()
    }

    /// The member for which `is_it` holds; of several, the one that joined last. It is asked under the pool's lock, and may only
    /// look.
    pub fn find(&self, is_it: impl Fn(&E) -> bool) -> Option<MemberId> {
        let state = self.shared.lock();
        state.roster.present().rev().find(|seat| is_it(&seat.member.endpoint)).map(|seat| seat.member.id)
    }

    /// All members for which `is_it` holds, which is asked as in [`Self::find`].
    pub fn find_all(&self, is_it: impl Fn(&E) -> bool) -> Vec<MemberId> {
        let state = self.shared.lock();
        let found = state.roster.present().filter(|seat| is_it(&seat.member.endpoint));
        found.map(|seat| seat.member.id).collect()
    }

    /// A slot at a member, in order of arrival. To give up (a deadline, a client that left), drop the future:
    /// it holds no timer of its own. A request that tries again shows its ticket and keeps its place.
    pub fn acquire(&self, claim: Claim) -> Acquire<E> {
        let serial = self.shared.next_number.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        let ticket = claim.ticket.unwrap_or(Ticket { number: serial, arrived: now });
        Acquire::new(Arc::clone(&self.shared), Place { priority: claim.priority, ticket, serial }, claim, now)
    }

    /// The figures of this moment.
    pub fn snapshot(&self) -> PoolSnapshot<()> {
        self.snapshot_with(|_| ())
    }

    /// The figures of this moment, with what `view` sees in each endpoint.
    pub fn snapshot_with<T>(&self, view: impl Fn(&E) -> T) -> PoolSnapshot<T> {
        let now = Instant::now();
        let figures = {
            let state = self.shared.lock();
            PoolSnapshot::take(&state, now)
        };
        figures.map(|member: Arc<Member<E>>| view(&member.endpoint))
    }

    /// Everybody who waits, and everybody who comes later, gets [`AcquireError::Closed`].
    pub fn close(&self) {
        let waiting = {
            let mut state = self.shared.lock();
            state.closed = true;
            state.queue.drain()
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// No slot is given from now on: those who come wait, as many as the queue takes. Leases that run, and slots that are on
    /// their way already, end by themselves; `in_use` says when the last one has.
    pub fn pause(&self) {
        let now = Instant::now();
        self.shared.lock().pause(now);
    }

    /// The end of a pause: free slots go to those who wait.
    pub fn resume(&self) {
        self.shared.change(|state, now| state.pause.end(now));
    }

    /// Whether it is paused.
    pub fn is_paused(&self) -> bool {
        self.shared.lock().pause.is_on()
    }

    /// All pauses so far, added up, a running one included: what a request that waits may be given back.
    pub fn paused_time(&self) -> Duration {
        let now = Instant::now();
        self.shared.lock().pause.total(now)
    }

    /// Tells every tunnel of the members of this moment to end.
    pub fn dismiss_tunnels(&self) {
        let members: Vec<_> =
            self.shared.lock().roster.seats().iter().map(|seat| Arc::clone(&seat.member)).collect();
        members.iter().for_each(|member| member.dismiss_tunnels());
    }

    /// Settings for what comes from now on; those who wait already stay.
    pub fn update(&self, settings: PoolSettings) {
        self.shared.lock().update(settings);
    }
}

pub(super) struct Shared<E> {
    name: Arc<str>,
    next_number: AtomicU64,
    state: Mutex<State<E>>,
}

impl<E> Shared<E> {
    /// One poll of an [`Acquire`]; `queued` remembers whether its place is in the queue.
    pub fn poll_grant(
        &self,
        place: Place,
        claim: &Claim,
        queued: &mut bool,
        waker: &Waker,
        now: Instant,
    ) -> Poll<Result<Grant<E>, AcquireError>> {
        if *queued {
            return self.poll_queued(place, waker, now);
        }
        let mut woken = Vec::new();
        let answer = self.lock().enter(place, claim, waker, now, &mut woken);
        *queued = answer.is_pending();
        woken.into_iter().for_each(Waker::wake);
        answer
    }

    fn poll_queued(&self, place: Place, waker: &Waker, now: Instant) -> Poll<Result<Grant<E>, AcquireError>> {
        let mut state = self.lock();
        match state.outcome(place, now) {
            Some(Ok(grant)) => return Poll::Ready(Ok(grant)),
            Some(Err(late)) => {
                drop(state);
                if let Some(grant) = late.grant {
                    self.untake(&grant);
                }
                return Poll::Ready(Err(late.error));
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

    /// The [`Acquire`] at this place is dropped. A slot it was handed and has not taken goes to the next.
    pub fn give_up(&self, place: Place) {
        let (waker, outcome) = {
            let mut state = self.lock();
            let waker = state.queue.leave(place);
            let outcome = state.queue.take_outcome(place);
            let left = waker.is_some() || matches!(outcome, Some(Outcome::Handed(..)));
            state.counters.left_queue += u64::from(left);
            (waker, outcome)
        };
        drop(waker);
        if let Some(Outcome::Handed(grant, _)) = outcome {
            self.untake(&grant);
        }
    }

    /// A slot comes back and goes straight to the next who waits.
    pub fn release(&self, grant: &Grant<E>, now: Instant) {
        self.change_at(now, |state, now| state.release(grant, now));
    }

    /// A slot comes back, and what was begun with it goes on.
    pub fn tether(&self, grant: &Grant<E>) {
        self.change(|state, now| {
            state.counters.tunnels += 1;
            state.roster.tether(grant.member.id);
            state.release(grant, now);
        });
    }

    /// What went on without a slot has ended.
    pub fn untether(&self, id: MemberId) {
        self.change(|state, _| state.roster.untether(id));
    }

    /// A slot comes back that nobody has used.
    fn untake(&self, grant: &Grant<E>) {
        self.change(|state, now| state.roster.release(grant, now));
    }

    /// The member could not be reached: returns the slot and says until when the member is benched, if it is.
    pub fn fail(&self, grant: &Grant<E>) -> Option<Instant> {
        self.change(|state, now| {
            state.counters.member_failures += 1;
            let bench = state.settings.bench;
            let until = state.roster.bench(grant, bench, now);
            state.roster.release(grant, now);
            let untaken = if until.is_some() { state.take_back(grant.member.id, now) } else { Vec::new() };
            (until, untaken)
        })
        .0
    }

    /// The member ended a request without an answer: returns the slot and says until when the member gets nothing.
    pub fn suspect(&self, grant: &Grant<E>) -> Instant {
        self.change(|state, now| {
            let until = now + SUSPENSE;
            state.roster.suspend(grant.member.id, until);
            state.roster.release(grant, now);
            (until, state.take_back(grant.member.id, now))
        })
        .0
    }

    /// The member answered.
    pub fn reached(&self, id: MemberId) {
        self.change(|state, _| state.roster.reached(id));
    }

    /// No new leases for this member.
    pub fn leave(&self, id: MemberId) {
        self.change(|state, now| {
            let untaken = state.take_back(id, now);
            state.roster.leave(id);
            untaken
        });
    }

    /// Another number of slots for this member; leases beyond it end by themselves.
    pub fn set_slots(&self, id: MemberId, slots: usize) {
        self.change(|state, _| state.roster.set_slots(id, slots));
    }

    /// Looks at the members and changes what is to be changed; `Waiting` says who waits for them.
    pub fn with_roster<T>(&self, act: impl FnOnce(&mut Roster<E>, Waiting) -> T) -> T {
        self.change(|state, _| {
            let waiting = Waiting { now: state.queue.len(), ever: state.counters.queued };
            act(&mut state.roster, waiting)
        })
    }

    /// Gives free slots to those who wait: a bench is over.
    pub fn redispatch(&self) {
        self.change(|_, _| ());
    }

    /// Changes the state and then gives every slot that has become free to those who wait.
    fn change<T>(&self, change: impl FnOnce(&mut State<E>, Instant) -> T) -> T {
        self.change_at(Instant::now(), change)
    }

    fn change_at<T>(&self, now: Instant, change: impl FnOnce(&mut State<E>, Instant) -> T) -> T {
        let mut woken = Vec::new();
        let value = {
            let mut state = self.lock();
            let value = change(&mut state, now);
            if !state.queue.is_empty() {
                state.dispatch(now, &mut woken);
            }
            value
        };
        woken.into_iter().for_each(Waker::wake);
        value
    }

    /// No foreign code runs under this lock, so a panic elsewhere cannot have left the state half changed.
    fn lock(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Dispatches when the bench is over. Should this runtime end before, the next arrival or release does it.
pub(super) fn redispatch_at<E: Send + Sync + 'static>(shared: &Arc<Shared<E>>, until: Instant) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    let shared: Weak<Shared<E>> = Arc::downgrade(shared);
    runtime.spawn(async move {
        tokio::time::sleep_until(until).await;
        if let Some(shared) = shared.upgrade() {
            shared.redispatch();
        }
    });
}
