//! A pool with its clients and its members, all moved by the steps of a history.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::time::{Instant, advance};

use super::actors::{Running, TestLoop, Waiting, count, leavers};
use super::bill::Bill;
use super::look::Look;
use super::steps::{Arrival, History, Joining, Parting, Pick, Wish};
use crate::place::QueuePosition;
use crate::queue::WaitOutcome;
use crate::recheck::Recheck;
use crate::{
    AcquireError, Claim, FairKey, Hold, Lease, MemberId, MemberPreference, Membership, Pool, PoolCounters,
    Priority, Tried, TunnelGuard, WorkKind,
};

/// The least charge, and the grain of a charge: see `fair.rs`. Written down again, so that a change there is noticed here.
const LEAST: Duration = Duration::from_micros(1);

pub struct World<'a> {
    runtime: &'a Runtime,
    pub pool: Pool<u8>,
    members: Vec<(Membership<u8>, Arc<TestLoop>)>,
    ids: Vec<MemberId>,
    pub waiting: Vec<Waiting>,
    pub running: Vec<Running>,
    pub tunnels: Vec<TunnelGuard<u8>>,
    pub holds: Vec<Hold<u8>>,
    pub wake_requested: Arc<Notify>,
    pub is_closed: bool,
    /// For how long the pool's clock has stood still.
    stopped: Duration,
    /// What the pool must have counted.
    pub counted: PoolCounters,
    /// Requests that got a slot in this step without a wait.
    pub at_once: Vec<(QueuePosition, Option<MemberId>)>,
    /// Requests whose slot came back in this step, and what they cost.
    pub ended: Vec<(u64, Duration)>,
    /// The classes of requests that found the queue full in this step.
    pub refused_full: Vec<Priority>,
    /// How many requests ended in this step before they had cost what their keys were charged.
    pub early: u64,
    pub error: Option<String>,
}

pub fn take<T>(list: &mut Vec<T>, pick: Pick) -> Option<T> {
    (!list.is_empty()).then(|| list.remove(pick % list.len()))
}

impl<'a> World<'a> {
    pub fn new(history: &History, runtime: &'a Runtime) -> Self {
        let pool = Pool::new("history", history.settings);
        let mut state = pool.shared.lock();
        // The thread that asks pools again knows no virtual time. The world asks in its place.
        state.rechecked = true;
        if history.is_warm {
            (0..20).for_each(|_| state.admission.observe(Some(WorkKind::of(1)), Duration::from_millis(10)));
        }
        drop(state);
        Self {
            runtime,
            pool,
            members: vec![],
            ids: vec![],
            waiting: vec![],
            running: vec![],
            tunnels: vec![],
            holds: vec![],
            wake_requested: Arc::default(),
            is_closed: false,
            stopped: Duration::ZERO,
            counted: PoolCounters::default(),
            at_once: vec![],
            ended: vec![],
            refused_full: vec![],
            early: 0,
            error: None,
        }
    }

    /// Asks the pool again, as its thread does.
    pub fn recheck(&self) {
        self.pool.shared.recheck();
        self.pool.shared.lock().rechecked = true;
    }

    fn served_now(&self) -> Instant {
        Instant::now() - self.stopped
    }

    fn preference(&self, wish: Wish) -> MemberPreference {
        let any = MemberPreference::default();
        let id = |pick: Pick| self.ids.get(pick % self.ids.len().max(1)).copied();
        match wish {
            Wish::Any => any,
            Wish::Bound(pick) => MemberPreference { bound: id(pick), ..any },
            Wish::Wanted(pick) => MemberPreference { wanted: id(pick), ..any },
            Wish::Only(pick) => MemberPreference { only: id(pick), ..any },
            Wish::Near => MemberPreference { near: true, ..any },
            Wish::Tried(pick) => {
                let mut tried = Tried::default();
                id(pick).into_iter().for_each(|id| tried.add(id));
                MemberPreference { tried, ..any }
            }
            Wish::Cautious => MemberPreference { cautious: true, ..any },
            Wish::Alone => MemberPreference { alone: true, ..any },
            Wish::Spread => MemberPreference { spread: true, ..any },
            Wish::Present => MemberPreference { present: true, ..any },
            Wish::Forgiving => MemberPreference { forgiving: true, ..any },
        }
    }

    pub fn arrive(&mut self, arrival: Arrival) {
        let Arrival { priority, key, kind, expected, time_limit, long_lived, wish } = arrival;
        let claim = Claim {
            priority,
            deadline: time_limit.map(|limit| Instant::now() + Duration::from_millis(limit)),
            long_lived,
            preference: self.preference(wish),
            kind: Some(WorkKind::of(kind)),
            expected: expected.map(Duration::from_millis),
            fair: Some(FairKey::of(key)),
            ..Claim::default()
        };
        self.enter(claim);
    }

    pub fn enter(&mut self, claim: Claim) {
        let (serial, refused_full) =
            (self.pool.shared.next_number.load(Ordering::Relaxed), self.counted.refused_full);
        let acquire = self.pool.acquire(claim);
        let place = QueuePosition { priority: claim.priority, ticket: acquire.ticket(), serial };
        let until = claim.deadline.map(|deadline| deadline - self.stopped);
        self.waiting.push(Waiting { place, claim, until, acquire, wakes: Arc::default(), seen: 0 });
        if self.poll(self.waiting.len() - 1) {
            if let Some(running) = self.running.last().filter(|running| running.place.serial == serial) {
                let bound = claim.preference.bound.filter(|id| *id == running.lease.member());
                self.at_once.push((place, bound));
            }
            if self.counted.refused_full > refused_full {
                self.refused_full.push(claim.priority);
            }
        } else {
            self.counted.queued += 1;
        }
    }

    /// Whether the wait has ended.
    pub fn poll(&mut self, index: usize) -> bool {
        let charged = self.charge(&self.waiting[index]);
        let waiting = &mut self.waiting[index];
        let waker = waiting.waker();
        let answer = std::pin::Pin::new(&mut waiting.acquire).poll(&mut Context::from_waker(&waker));
        let Poll::Ready(answer) = answer else { return false };
        let Waiting { place, claim, until, .. } = self.waiting.remove(index);
        let is_late = until.is_some_and(|until| until <= self.served_now());
        match answer {
            Ok(mut lease) => {
                if is_late {
                    self.error = Some(format!("request {} got a slot after its deadline", place.serial));
                }
                self.counted.granted += 1;
                let bill = Arc::<Bill>::default();
                lease.charge_to(bill.clone(), place.serial);
                self.running.push(Running { place, claim, lease, bill, charged });
            }
            Err(error) => {
                if error == AcquireError::Expired && !is_late {
                    self.error = Some(format!("request {} expired before its deadline", place.serial));
                }
                self.count(error);
            }
        }
        true
    }

    pub fn count(&mut self, error: AcquireError) {
        count(&mut self.counted, error);
    }

    /// What the key of this request is charged if it gets its slot now, before its cost is known. `None`: no key is charged.
    fn charge(&self, waiting: &Waiting) -> Option<Duration> {
        let state = self.pool.shared.lock();
        let (_, mut ended) = state.queue.parts();
        let handed = ended.find(|(place, _)| place.serial == waiting.place.serial);
        let (is_charged, work) = match handed {
            Some((_, WaitOutcome::Handed(grant, span))) => (grant.charge.is_some(), span.work.time),
            _ => (state.queue.fair.is_some(), state.admission.time_of(waiting.claim.kind)),
        };
        let work = work.max(LEAST);
        is_charged.then(|| work - Duration::from_nanos(u64::from(work.subsec_nanos() % 1000)))
    }

    /// For how long such a request is expected to hold its slot.
    pub fn estimate(&self, claim: &Claim) -> Duration {
        self.pool.shared.lock().admission.time_of(claim.kind)
    }

    /// Whose share such a request takes.
    pub fn key(&self, claim: &Claim) -> FairKey {
        claim.fair.unwrap_or(FairKey::of(0))
    }

    pub fn leave(&mut self, pick: Pick) {
        if self.waiting.is_empty() {
            return;
        }
        let at = pick % self.waiting.len();
        let look = Look::take(&self.pool);
        let serial = self.waiting[at].place.serial;
        let left = leavers(&mut self.counted, self.waiting[at].until, Instant::now() - self.stopped);
        match look.end_of(serial) {
            Some(Err(error)) => self.count(error),
            Some(Ok(_)) => {
                *left += 1;
                self.ended.push((serial, Duration::ZERO));
            }
            None => *left += u64::from(!self.is_closed),
        }
        drop(self.waiting.remove(at));
    }

    pub fn join(&mut self, how: Joining) {
        let event_loop = Arc::<TestLoop>::default();
        let member = match how {
            Joining::Plain(slots) => self.pool.join(0, slots),
            Joining::Near(slots) => self.pool.join_near(1, slots),
            Joining::Observed(most) => self.pool.join_observed(2, most, event_loop.clone()),
        };
        self.ids.push(member.id());
        self.members.push((member, event_loop));
    }

    pub fn part(&mut self, pick: Pick, how: Parting) {
        let Some((member, _)) = take(&mut self.members, pick) else { return };
        match how {
            Parting::Lost => drop(member),
            Parting::Drains => drop(member.leave()),
            Parting::GivenUp => drop(member.give_up()),
            Parting::KeepsTunnels => drop(member.leave_tunnels()),
        }
    }

    pub fn with_member(&mut self, pick: Pick, act: impl FnOnce(&(Membership<u8>, Arc<TestLoop>))) {
        if let Some(member) = self.members.get(pick % self.members.len().max(1)) {
            act(member);
        }
    }

    pub fn with_lease(&mut self, pick: Pick, act: impl FnOnce(&Lease<u8>)) {
        if let Some(running) = self.running.get(pick % self.running.len().max(1)) {
            act(&running.lease);
        }
    }

    /// Time passes. The pool's clock stands still while it is paused, or sleeps without a member.
    pub fn pass(&mut self, time: Duration) {
        let is_asleep = self.pool.is_asleep() && self.pool.members() == 0;
        if is_asleep || self.pool.is_paused() {
            self.stopped += time;
        }
        self.runtime.block_on(async {
            advance(time).await;
            // The tasks that wait for the end of an ejection.
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
        });
    }

    pub fn poll_woken(&mut self, newest_first: bool) {
        let mut woken: Vec<_> =
            self.waiting.iter().filter(|one| one.is_woken()).map(|one| one.place.serial).collect();
        if newest_first {
            woken.reverse();
        }
        for serial in woken {
            if let Some(at) = self.waiting.iter().position(|one| one.place.serial == serial) {
                self.poll(at);
            }
        }
    }

    /// All clients leave, and then all members.
    pub fn finish(mut self) -> Pool<u8> {
        self.waiting.clear();
        self.running.clear();
        self.tunnels.clear();
        self.holds.clear();
        self.members.clear();
        self.pool.clone()
    }
}
