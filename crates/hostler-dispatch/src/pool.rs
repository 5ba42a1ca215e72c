//! The pool, as those see it who bring members and requests. Knows not who comes before whom.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::acquire::Acquire;
use super::choice::MemberChoice;
use super::claim::{Claim, Policy};
use super::eject::{BackoffSettings, EjectSettings};
use super::membership::Membership;
use super::queue::{QueuePosition, Ticket};
use super::roster::MemberId;
use super::shared::PoolInner;
use super::snapshot::PoolSnapshot;

/// What of a pool can be set, also later by [`Pool::update`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// How it chooses among members with a free slot.
    pub choice: MemberChoice,
    /// How many may wait; a returning ticket does not count.
    pub queue_limit: usize,
    /// In which order they are served, and whom it refuses.
    pub policy: Policy,
    /// How long a member that could not be reached gets nothing.
    pub backoff: BackoffSettings,
    /// When and for how long a member gets nothing that lets requests wait in vain.
    pub eject: EjectSettings,
    /// How many tunnels one member may have.
    pub max_tunnels: usize,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            choice: MemberChoice::default(),
            queue_limit: 100,
            policy: Policy::default(),
            backoff: BackoffSettings::default(),
            eject: EjectSettings::default(),
            max_tunnels: usize::MAX,
        }
    }
}

/// A queue with members. Cheap to clone; all clones are the same pool.
pub struct Pool<E> {
    shared: Arc<PoolInner<E>>,
}

impl<E> Clone for Pool<E> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<E: Send + Sync + 'static> Pool<E> {
    /// An empty pool.
    pub fn new(name: impl Into<Arc<str>>, settings: PoolSettings) -> Self {
        Self { shared: Arc::new(PoolInner::new(name.into(), settings)) }
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

    /// How many of them are not unhealthy and have not failed a moment ago, and could be given requests.
    pub fn reachable_members(&self) -> usize {
        let now = Instant::now();
        self.shared.lock().roster.present().filter(|member_state| !member_state.is_out(now)).count()
    }

    /// The member for which `is_it` holds; of several, the one that joined last. It is asked under the pool's lock, and may only
    /// look.
    pub fn find(&self, is_it: impl Fn(&E) -> bool) -> Option<MemberId> {
        let state = self.shared.lock();
        state
            .roster
            .present()
            .rev()
            .find(|member_state| is_it(&member_state.member.endpoint))
            .map(|member_state| member_state.member.id)
    }

    /// All members for which `is_it` holds, which is asked as in [`Self::find`].
    pub fn find_all(&self, is_it: impl Fn(&E) -> bool) -> Vec<MemberId> {
        let state = self.shared.lock();
        let found = state.roster.present().filter(|member_state| is_it(&member_state.member.endpoint));
        found.map(|member_state| member_state.member.id).collect()
    }

    /// A slot at a member, in order of arrival. To give up (a deadline, a client that left), drop the future:
    /// it holds no timer of its own. A request that tries again shows its ticket and keeps its place.
    pub fn acquire(&self, claim: Claim) -> Acquire<E> {
        let serial = self.shared.next_number.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        let ticket = claim.ticket.unwrap_or(Ticket { number: serial, arrived: now });
        Acquire::new(
            Arc::clone(&self.shared),
            QueuePosition { priority: claim.priority, ticket, serial },
            claim,
            now,
        )
    }

    /// The figures of this moment.
    pub fn snapshot(&self) -> PoolSnapshot<()> {
        self.snapshot_with(|_| ())
    }

    /// The figures of this moment, with what `view` sees in each endpoint.
    pub fn snapshot_with<T>(&self, view: impl Fn(&E) -> T) -> PoolSnapshot<T> {
        let now = Instant::now();
        let (figures, members) = {
            let state = self.shared.lock();
            PoolSnapshot::take(&state, now)
        };
        figures.with_members(members, view)
    }

    /// Everybody who waits, and everybody who comes later, gets [`AcquireError::Closed`](super::AcquireError::Closed).
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

    /// Settings for what comes from now on; those who wait already stay.
    pub fn update(&self, settings: PoolSettings) {
        self.shared.lock().update(settings);
    }
}
