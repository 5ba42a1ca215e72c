//! Whose request is next when a pool shares its slots fairly among keys: that of the key whose requests have cost the least
//! (start-time fair queueing). Knows neither members nor time limits.
//!
//! Each key has a virtual time: the worker time that it has used. The pool has one, too: that of the request that got a slot
//! last. A key without a request keeps up with the pool's time, so it can save nothing up. A request that gets a slot is
//! charged with what such requests cost on average, and at its end with what it has really cost. The key with the least
//! virtual time is next.
//!
//! A key that has used more than the others has a debt. While the key has no request, its debt shrinks as fast as each of the waiting keys
//! is served: by the work that is done, divided by the number of waiting keys. So after an expensive request, a key waits until each key
//! that always waits has used as much. It does not wait for keys that have a request only now and then.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::time::Duration;

use foldhash::{HashMap, HashMapExt};
use tokio::time::Instant;

use super::bound_shares::BoundShares;
use super::claim::Priority;
use super::fair_key::FairKey;
use super::key_line::LEAST_COST;
use super::key_share::{KeyPlace, KeyRank, KeyShare, SpareLines, VirtualTime};
use super::place::QueuePosition;
use super::sorted_row::SortedRow;
use super::work_ahead::{WaitingWork, WorkAhead};

/// The most keys with a debt that are remembered while they have no request.
const MOST_DEBTORS: usize = 16_384;
/// How many of them are checked when a request has ended. More than one, because each request can add one: so the list shrinks when debts
/// are gone.
const LOOKED_AT: usize = 2;

/// What a request was charged when it got its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Charge {
    key: FairKey,
    micros: u32,
}

impl Charge {
    pub fn cost(self) -> Duration {
        Duration::from_micros(self.micros.into())
    }
}

/// The keys of a pool with what they have used, and their waiting requests.
pub(super) struct FairShares {
    shares: HashMap<FairKey, KeyShare>,
    spare: SpareLines,
    /// The virtual time of the pool.
    now: VirtualTime,
    /// The worker time that a key which always waits has got since the beginning. Debts shrink as this number grows.
    served: VirtualTime,
    /// The virtual time of a key that has had a request ever since no request waited last, if all keys got the same. New keys begin here if
    /// this is later than `now`. If they began at `now`, a stream of new keys could keep a key with a small debt waiting.
    flow: VirtualTime,
    /// The keys with a request.
    active: usize,
    /// The time of the last call of [`Self::rest`].
    rested: Instant,
    /// How much `now` was brought forward because no request waited.
    #[cfg(test)]
    pub forgiven: VirtualTime,
    /// What all requests have cost.
    #[cfg(test)]
    pub settled: VirtualTime,
    lines: [FairLine; Priority::COUNT],
    /// Keys that had a debt when their last request ended, in the order in which they are checked. A key whose debt is gone is forgotten.
    debtors: VecDeque<Debtor>,
}

/// A key with a debt.
#[derive(Clone, Copy)]
struct Debtor {
    key: FairKey,
    /// The value of [`FairShares::served`] at which the debt ends, as of the last check.
    until: VirtualTime,
}

/// The keys that wait in one class.
#[derive(Default)]
struct FairLine {
    /// Keys without a debt are appended: they begin at or behind the virtual time of the pool.
    next: SortedRow<KeyRank, FairKey>,
    /// By the virtual time after all their waiting requests. Only a full queue needs it: `None` until then, and when the line is empty.
    ends: Option<BTreeSet<(VirtualTime, FairKey)>>,
}

impl FairLine {
    fn change(&mut self, key: FairKey, from: Option<KeyPlace>, to: Option<KeyPlace>, begin: VirtualTime) {
        let keeps_its_rank = from.map(|from| from.rank) == to.map(|to| to.rank);
        if let Some(from) = from.filter(|_| !keeps_its_rank) {
            self.next.remove(&from.rank);
        }
        if let Some(to) = to.filter(|_| !keeps_its_rank) {
            match to.rank {
                (time, _) if time == begin => self.next.append(to.rank, key),
                _ => self.next.insert(to.rank, key),
            };
        }
        if let Some(ends) = &mut self.ends {
            if let Some(from) = from {
                ends.remove(&(from.end(), key));
            }
            ends.extend(to.map(|to| (to.end(), key)));
        }
        if self.next.is_empty() {
            self.ends = None;
        }
    }
}

impl FairShares {
    pub fn new(now: Instant) -> Self {
        Self {
            shares: HashMap::new(),
            spare: SpareLines::default(),
            now: 0,
            served: 0,
            flow: 0,
            active: 0,
            rested: now,
            #[cfg(test)]
            forgiven: 0,
            #[cfg(test)]
            settled: 0,
            lines: Default::default(),
            debtors: VecDeque::new(),
        }
    }

    /// A request waits from now on.
    pub fn insert(&mut self, place: QueuePosition, key: FairKey, work: Duration) {
        let begin = self.begin_of_newcomers();
        self.edit(key, |share, spare| {
            if !share.is_waiting() {
                share.time = share.time.max(begin);
            }
            share.insert(place, work, spare);
        });
    }

    /// The virtual time of a key that begins to wait and has no debt.
    fn begin_of_newcomers(&self) -> VirtualTime {
        self.now.max(self.flow)
    }

    /// A request waits no more, and gets no slot.
    pub fn remove(&mut self, place: QueuePosition, key: FairKey, work: Duration) {
        self.edit(key, |share, spare| share.remove(place, work, spare));
        self.forget();
    }

    /// The waiting request of a class that is next.
    pub fn first(&self, priority: Priority) -> Option<QueuePosition> {
        let (_, key) = self.lines[priority.index()].next.first()?;
        self.shares.get(key)?.line(priority)?.first
    }

    /// A request that has not waited here gets a slot, and will cost about this much.
    pub fn charge(&mut self, key: FairKey, estimate: Duration) -> Charge {
        self.begin(key, estimate, |_, _| ()).0
    }

    /// The request that is next gets a slot, and will cost about this much. It waits no more.
    pub fn serve(&mut self, place: QueuePosition, key: FairKey, estimate: Duration) -> Charge {
        let (charge, began) = self.begin(key, estimate, |share, spare| share.remove(place, estimate, spare));
        self.now = self.now.max(began);
        charge
    }

    /// Returns the virtual time at which the request begins, too.
    fn begin(
        &mut self,
        key: FairKey,
        estimate: Duration,
        change: impl FnOnce(&mut KeyShare, &mut SpareLines),
    ) -> (Charge, VirtualTime) {
        let micros = u32::try_from(estimate.max(LEAST_COST).as_micros()).unwrap_or(u32::MAX);
        let (mut began, now) = (0, self.now);
        self.edit(key, |share, spare| {
            began = share.time.max(now);
            share.time = began + if planted!(LateCharge) { 0 } else { virtual_time(micros) };
            share.running += 1;
            change(share, spare);
        });
        (Charge { key, micros }, began)
    }

    /// The slot of a request came back: it has cost this much.
    pub fn settle(&mut self, charge: Charge, cost: Duration) {
        let waiting: usize = self.lines.iter().map(|line| line.next.len()).sum();
        let nanos = u64::try_from(cost.as_nanos()).unwrap_or(u64::MAX);
        #[cfg(test)]
        {
            self.settled += cost.as_nanos();
        }
        self.served += VirtualTime::from(nanos.checked_div(waiting as u64).unwrap_or_default());
        self.flow += VirtualTime::from(nanos / self.active.max(1) as u64);
        self.edit(charge.key, |share, _| {
            if !planted!(LostCorrection) {
                share.time = (share.time + cost.as_nanos()).saturating_sub(virtual_time(charge.micros));
            }
            share.running = share.running.saturating_sub(1);
        });
        self.forget();
    }

    /// If no request waits, lets all debts shrink by the time since the last call, multiplied by `slots`. To be called before a request
    /// begins or ceases to wait: while requests wait, their costs move the pool's virtual time instead.
    pub fn rest(&mut self, now: Instant, slots: usize) {
        let rests = self.lines.iter().all(|line| line.next.is_empty());
        // Many requests come and go at the same moment of the clock: then no time has passed.
        if rests && now > self.rested {
            let work = now.duration_since(self.rested).as_nanos() * slots.max(1) as u128;
            (self.served, self.now) = (self.served + work, self.now + work);
            #[cfg(test)]
            {
                self.forgiven += work;
            }
        }
        self.flow = if rests { self.now } else { self.flow };
        if rests || !planted!(RestWhileWaiting) {
            // A slot comes back at a time that was perhaps read before the last change.
            self.rested = self.rested.max(now);
        }
    }

    /// How much work of a class is done before a new request of this key. All keys get the same share, so it is: the waiting work of the
    /// key, the same amount for each other key, and one average request of each other key. It is at most all work that waits. The debt of a
    /// key counts only if one of its requests waits already.
    pub fn work_ahead(&self, priority: Priority, key: FairKey, waiting: WaitingWork) -> WorkAhead {
        let own = self.shares.get(&key).map(|share| (share, share.work_of(priority)));
        let own = own.filter(|(_, work)| !work.is_zero());
        let keys = self.lines[priority.index()].next.len() + usize::from(own.is_none());
        let usual = waiting.work.as_nanos() / waiting.requests.max(1) as u128;
        let of_first = usual * keys.saturating_sub(1) as u128;
        let owed = |share: &KeyShare| share.time.saturating_sub(self.begin_of_newcomers());
        let own = own.map_or(0, |(share, work)| owed(share) + work.as_nanos());
        let at_most_all = |nanos: u128| match u64::try_from(nanos.min(waiting.work.as_nanos())) {
            Ok(nanos) => Duration::from_nanos(nanos),
            Err(_) => waiting.work,
        };
        WorkAhead { of_request: at_most_all(own * keys as u128 + of_first), of_first: at_most_all(of_first) }
    }

    /// Between which virtual times a new request of this key would have its turn. If others of the key wait, what they really cost moves the
    /// end, so it counts as far away.
    pub fn turn(&self, priority: Priority, key: FairKey, work: Duration) -> Range<u64> {
        let at = |time: VirtualTime| u64::try_from(time).unwrap_or(u64::MAX);
        match self.shares.get(&key) {
            Some(share) if share.is_waiting() => {
                at(share.time + share.work_of(priority).as_nanos())..u64::MAX
            }
            _ => {
                let begin = self.begin_of(key);
                at(begin)..at(begin + work.max(LEAST_COST).as_nanos())
            }
        }
    }

    /// The request of a class that gives way to a new one when the queue is full: the last one of the key that would be served last.
    /// `None` if that is the new request itself. Requests that are bound to a member count like the others.
    pub fn dearest(
        &mut self,
        priority: Priority,
        key: FairKey,
        work: Duration,
        bound: &BoundShares,
    ) -> Option<QueuePosition> {
        self.sort_ends(priority);
        let own = self.shares.get(&key).map_or(Duration::ZERO, |share| share.work_of(priority));
        let own = own + bound.work_of(key) + work.max(LEAST_COST);
        let last = self.lines[priority.index()].ends.as_ref().and_then(BTreeSet::last).copied();
        let last =
            last.and_then(|(end, key)| Some((end, key, self.shares.get(&key)?.line(priority)?.last()?)));
        let most =
            bound.most().map(|most| (self.begin_of(most.key) + most.work.as_nanos(), most.key, most.last));
        let (last_end, dearest, place) = last.into_iter().chain(most).max_by_key(|(end, ..)| *end)?;
        (last_end > self.begin_of(key) + own.as_nanos() && dearest != key).then_some(place)
    }

    /// The virtual time at which a new request of this key begins, if no other one of it waits.
    fn begin_of(&self, key: FairKey) -> VirtualTime {
        let newest = self.begin_of_newcomers();
        self.shares.get(&key).map_or(newest, |share| share.time_at(self.now, self.served).max(newest))
    }

    /// Sorts the waiting keys of a class by their ends, if they are not sorted already.
    fn sort_ends(&mut self, priority: Priority) {
        let shares = &self.shares;
        let line = &mut self.lines[priority.index()];
        if line.ends.is_none() && !line.next.is_empty() {
            let end = |key: &FairKey| Some((shares.get(key)?.place(priority)?.end(), *key));
            line.ends = Some(line.next.iter().filter_map(|(_, key)| end(key)).collect());
        }
    }

    /// Checks what is kept twice, and that the places of each class are these.
    #[cfg(test)]
    pub fn check(&self, newcomers: [BTreeSet<QueuePosition>; Priority::COUNT]) {
        for (index, line) in self.lines.iter().enumerate() {
            let own = self.shares.values().filter_map(|share| share.line(Priority::ALL[index]));
            let waiting = own.clone().flat_map(|line| line.first.iter().chain(&line.others).copied());
            assert_eq!(waiting.collect::<BTreeSet<_>>(), newcomers[index]);
            let keys = own.filter(|line| !line.is_empty()).count();
            assert_eq!(line.next.len(), keys);
            for (rank, key) in line.next.iter() {
                let place = self.shares[key].place(Priority::ALL[index]).unwrap();
                assert_eq!(place.rank, *rank);
                assert!(line.ends.as_ref().is_none_or(|ends| ends.contains(&(place.end(), *key))));
            }
            assert!(line.ends.as_ref().is_none_or(|ends| ends.len() == keys && keys > 0));
        }
        assert_eq!(self.active, self.shares.values().filter(|share| !share.is_idle()).count());
        let debtors = self.shares.values().filter(|share| share.is_debtor);
        assert_eq!(debtors.count(), self.debtors.len());
        let idle = self.shares.values().filter(|share| share.is_idle());
        assert!(
            idle.into_iter().all(|share| share.is_debtor),
            "a key without requests is kept for its debt only"
        );
    }

    /// How many keys are kept.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.shares.len()
    }

    /// Forgets debtors whose debt is gone.
    fn forget(&mut self) {
        let Self { shares, debtors, served, .. } = self;
        for _ in 0..LOOKED_AT {
            let Some(debtor) = debtors.pop_front() else { return };
            let (key, has_room) = (debtor.key, debtors.len() < MOST_DEBTORS);
            if debtor.until > *served && has_room {
                debtors.push_back(debtor);
                continue;
            }
            let Some(share) = shares.get_mut(&key) else { continue };
            share.is_debtor = share.is_idle() && share.debt_ends > *served && has_room;
            if share.is_debtor {
                debtors.push_back(Debtor { key, until: share.debt_ends });
            } else if share.is_idle() {
                shares.remove(&key);
            }
        }
    }

    /// Changes the share of a key, then moves the key to its new place in the lines and among the debtors.
    fn edit(&mut self, key: FairKey, change: impl FnOnce(&mut KeyShare, &mut SpareLines)) {
        let begin = self.begin_of_newcomers();
        let Self { shares, spare, now, served, active, lines, debtors, .. } = self;
        let share = shares.entry(key).or_default();
        let (was_idle, before) = (share.is_idle(), Priority::ALL.map(|priority| share.place(priority)));
        share.time = share.time_at(*now, *served);
        share.debt_ends = 0;
        change(share, spare);
        // Mostly no request of the key waits in a class, neither before nor after.
        for priority in Priority::ALL {
            let (from, to) = (before[priority.index()], share.place(priority));
            if (from.is_some() || to.is_some()) && from != to {
                lines[priority.index()].change(key, from, to, begin);
            }
        }
        *active = *active + usize::from(was_idle) - usize::from(share.is_idle());
        if !share.is_idle() {
            return;
        }
        if share.time > *now && !planted!(ForgottenDebt) {
            share.debt_ends = *served + (share.time - *now);
            if !share.is_debtor {
                share.is_debtor = true;
                debtors.push_back(Debtor { key, until: share.debt_ends });
            }
        } else if !share.is_debtor {
            shares.remove(&key);
        }
    }
}

fn virtual_time(micros: u32) -> VirtualTime {
    VirtualTime::from(micros) * 1000
}
