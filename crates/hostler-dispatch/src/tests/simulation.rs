//! A pool under load in virtual time: seeded arrivals, members with random service times, clients with deadlines.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::{Instant, advance};

use super::workload::{Holding, Labels, SlowSpell, exponential};
use super::*;
use crate::{CostLabel, FairKey, Membership, Policy, Priority};

/// The request's own timer fires this much late, as the gateway's may do.
const TIMER_LATE: Duration = Duration::from_millis(30);

/// The history of one request, in time since the start.
#[derive(Clone, Copy, Debug)]
pub struct Story {
    pub arrived: Duration,
    pub priority: Priority,
    /// The key under which it takes its share.
    pub key: u64,
    pub deadline: Duration,
    pub granted: Option<Duration>,
    pub answered: Option<Duration>,
    /// Refused by the pool, or ended by its own timer.
    pub refused: Option<(Duration, AcquireError)>,
}

impl Story {
    /// Answered in time.
    pub fn is_good(&self) -> bool {
        self.answered.is_some_and(|answered| answered <= self.deadline)
    }

    pub fn wait(&self) -> Option<Duration> {
        self.granted.map(|granted| granted - self.arrived)
    }

    pub fn latency(&self) -> Option<Duration> {
        self.answered.map(|answered| answered - self.arrived)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// With this key.
    Arrive(Priority, u64),
    Finish(usize),
    GiveUp(usize),
}

struct WokenTasks(Mutex<Vec<usize>>);

struct TaskWaker {
    woken: Arc<WokenTasks>,
    index: usize,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.woken.0.lock().unwrap().push(self.index);
    }
}

pub struct World {
    pub pool: Pool<()>,
    pub holding: Holding,
    pub time_limit: Duration,
    /// A client that was answered or refused sends its next request at once.
    pub comes_again: bool,
    /// The members are slow at times, as on a machine that other programs use.
    pub slow: Option<SlowSpell>,
    pub stories: Vec<Story>,
    /// The indices of the requests that got a slot, in that order.
    pub served: Vec<usize>,
    members: Vec<Membership<()>>,
    slots: usize,
    dice: fastrand::Rng,
    start: Instant,
    events: BinaryHeap<Reverse<(Duration, u64, Event)>>,
    serial: u64,
    waiting: Vec<Option<Acquire<()>>>,
    leases: Vec<Option<Lease<()>>>,
    /// How long each request holds its slot. Decided at arrival, so that it does not depend on the policy.
    holds: Vec<Duration>,
    woken: Arc<WokenTasks>,
    /// What the requests say about their cost. None: nothing.
    pub labels: Option<Labels>,
    labelled: Vec<CostLabel>,
}

impl World {
    pub fn new(policy: Policy, slots: usize, holding: Holding, time_limit: Duration) -> Self {
        Self::seeded(policy, slots, holding, time_limit, 7)
    }

    pub fn seeded(policy: Policy, slots: usize, holding: Holding, time_limit: Duration, seed: u64) -> Self {
        let settings = PoolSettings { policy, queue_limit: 100_000, ..PoolSettings::default() };
        Self::with(settings, slots, holding, time_limit, seed)
    }

    pub fn with(
        settings: PoolSettings,
        slots: usize,
        holding: Holding,
        time_limit: Duration,
        seed: u64,
    ) -> Self {
        let pool = Pool::new("simulated", settings);
        let members = (0..slots).map(|_| pool.join((), 1)).collect();
        Self {
            pool,
            holding,
            time_limit,
            comes_again: false,
            slow: None,
            stories: Vec::new(),
            served: Vec::new(),
            members,
            slots,
            dice: fastrand::Rng::with_seed(seed),
            start: Instant::now(),
            events: BinaryHeap::new(),
            serial: 0,
            waiting: Vec::new(),
            leases: Vec::new(),
            holds: Vec::new(),
            woken: Arc::new(WokenTasks(Mutex::default())),
            labels: None,
            labelled: Vec::new(),
        }
    }

    /// A member leaves, and another takes its place.
    pub fn replace_a_member(&mut self) {
        drop(self.members.remove(0));
        self.members.push(self.pool.join((), 1));
    }

    /// A member ends one of its requests without an answer.
    pub fn hang_up(&mut self) {
        if let Some(lease) = self.leases.iter_mut().find_map(Option::take) {
            lease.end(LeaseEnding::HungUp);
        }
    }

    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Answers per second at most.
    pub fn capacity(&self) -> f64 {
        self.slots as f64 / self.holding.mean().as_secs_f64()
    }

    /// Random arrivals at this multiple of the capacity, from now on for this time.
    pub fn pour(&mut self, load: f64, time: Duration, priority: Priority) {
        self.pour_for(load, time, priority, |_| 0);
    }

    /// As [`Self::pour`]. `key` gives each request its key, with the help of the dice.
    pub fn pour_for(
        &mut self,
        load: f64,
        time: Duration,
        priority: Priority,
        key: impl Fn(&mut fastrand::Rng) -> u64,
    ) {
        self.pour_bursts(load, time, 1, priority, key);
    }

    /// The same, and each time this many requests with one key come at once.
    pub fn pour_bursts(
        &mut self,
        load: f64,
        time: Duration,
        at_once: u32,
        priority: Priority,
        key: impl Fn(&mut fastrand::Rng) -> u64,
    ) {
        let gap = Duration::from_secs_f64(f64::from(at_once) / (load * self.capacity()));
        let mut at = self.now() + exponential(gap, &mut self.dice);
        let end = self.now() + time;
        while at < end {
            let key = key(&mut self.dice);
            for _ in 0..at_once {
                self.plan(at, Event::Arrive(priority, key));
            }
            at += exponential(gap, &mut self.dice);
        }
    }

    /// This many requests at once, now.
    pub fn burst(&mut self, count: usize) {
        for _ in 0..count {
            self.plan(self.now(), Event::Arrive(Priority::Normal, 0));
        }
    }

    /// Runs until this time, or until no request is left if it is `None`.
    pub async fn run(&mut self, time: Option<Duration>) {
        let until = time.map(|time| self.now() + time);
        while let Some(Reverse((at, ..))) = self.events.peek()
            && until.is_none_or(|until| *at <= until)
        {
            let Some(Reverse((at, _, event))) = self.events.pop() else { break };
            self.go_to(at).await;
            match event {
                Event::Arrive(priority, key) => self.arrive(priority, key),
                Event::Finish(index) => {
                    self.stories[index].answered = Some(at);
                    self.leases[index] = None;
                    if let (Some(labels), Some(granted)) = (&mut self.labels, self.stories[index].granted) {
                        labels.table.observe(self.labelled[index], at - granted, |_| ());
                    }
                    self.again(index);
                }
                Event::GiveUp(index) => {
                    if self.waiting[index].take().is_some() {
                        self.refuse(index, AcquireError::Expired);
                    }
                }
            }
            self.poll_woken();
        }
        if let Some(until) = until {
            self.go_to(until).await;
        }
    }

    async fn go_to(&mut self, at: Duration) {
        if let Some(gap) = at.checked_sub(self.now())
            && !gap.is_zero()
        {
            advance(gap).await;
        }
    }

    fn plan(&mut self, at: Duration, event: Event) {
        self.serial += 1;
        self.events.push(Reverse((at, self.serial, event)));
    }

    fn arrive(&mut self, priority: Priority, key: u64) {
        let (index, now) = (self.stories.len(), self.now());
        let deadline = now + self.time_limit;
        let fair = Some(FairKey::of(key));
        let hold = self.holding.roll(&mut self.dice);
        let label = self.labels.as_mut().map_or(CostLabel::default(), |labels| labels.of(hold));
        let expected = self.labels.as_ref().and_then(|labels| labels.table.expected(label));
        let deadline_at = Some(self.start + deadline);
        let claim = Claim { priority, fair, expected, deadline: deadline_at, ..Claim::default() };
        self.waiting.push(Some(self.pool.acquire(claim)));
        self.leases.push(None);
        self.holds.push(hold);
        self.labelled.push(label);
        self.stories.push(Story {
            arrived: now,
            priority,
            key,
            deadline,
            granted: None,
            answered: None,
            refused: None,
        });
        self.plan(deadline + TIMER_LATE, Event::GiveUp(index));
        self.poll(index);
    }

    fn poll(&mut self, index: usize) {
        let Some(acquire) = &mut self.waiting[index] else { return };
        let waker = Waker::from(Arc::new(TaskWaker { woken: Arc::clone(&self.woken), index }));
        let Poll::Ready(answer) = Pin::new(acquire).poll(&mut Context::from_waker(&waker)) else { return };
        self.waiting[index] = None;
        match answer {
            Ok(lease) => {
                let now = self.now();
                assert!(now < self.stories[index].deadline, "a slot after the deadline");
                self.stories[index].granted = Some(now);
                self.served.push(index);
                self.leases[index] = Some(lease);
                let slow = |slow: &SlowSpell| {
                    now.as_nanos() % slow.period.as_nanos() >= (slow.period - slow.part).as_nanos()
                };
                let factor = self.slow.filter(slow).map_or(1.0, |slow| slow.factor);
                self.plan(now + self.holds[index].mul_f64(factor), Event::Finish(index));
            }
            Err(error) => self.refuse(index, error),
        }
    }

    fn refuse(&mut self, index: usize, error: AcquireError) {
        self.stories[index].refused = Some((self.now(), error));
        self.again(index);
    }

    fn again(&mut self, index: usize) {
        if self.comes_again {
            self.plan(
                self.now() + Duration::from_millis(1),
                Event::Arrive(self.stories[index].priority, self.stories[index].key),
            );
        }
    }

    fn poll_woken(&mut self) {
        loop {
            let woken = std::mem::take(&mut *self.woken.0.lock().unwrap());
            if woken.is_empty() {
                return;
            }
            woken.into_iter().for_each(|index| self.poll(index));
        }
    }

    /// The good answers between two times, as a share of the capacity.
    pub fn goodput(&self, from: Duration, to: Duration) -> f64 {
        self.goodput_within(Duration::MAX, from, to)
    }

    /// As [`Self::goodput`], of the answers that came within this time.
    pub fn goodput_within(&self, most: Duration, from: Duration, to: Duration) -> f64 {
        let is_quick = |story: &&Story| story.latency().is_some_and(|latency| latency <= most);
        let good = self
            .stories
            .iter()
            .filter(is_quick)
            .filter(|story| story.is_good() && story.answered.is_some_and(|at| at >= from && at < to));
        good.count() as f64 / (self.capacity() * (to - from).as_secs_f64())
    }

    /// The time within which this share of the answers between two times came.
    pub fn latency(&self, share: f64, from: Duration, to: Duration) -> Duration {
        let mut latencies: Vec<_> = self
            .stories
            .iter()
            .filter(|story| story.answered.is_some_and(|at| at >= from && at < to))
            .filter_map(Story::latency)
            .collect();
        latencies.sort();
        let index = ((latencies.len() as f64 * share) as usize).min(latencies.len().saturating_sub(1));
        latencies.get(index).copied().unwrap_or_default()
    }

    pub fn refusals(&self) -> usize {
        self.stories.iter().filter(|story| story.refused.is_some()).count()
    }

    pub fn overloads(&self) -> u64 {
        self.pool.snapshot().counters.overloads
    }

    pub fn is_in_order(&self) -> bool {
        self.served.is_sorted()
    }
}
