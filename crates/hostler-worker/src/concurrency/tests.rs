//! The controller against simulated apps: one thread, a queue inside Node, clients that always have another request.

use std::collections::VecDeque;

use super::*;

/// The step of simulated time, and the length of a round, in microseconds.
const STEP: u64 = 100;
const ROUND: u64 = 500_000;

/// One request: its time on the thread, then its time elsewhere, in microseconds.
type Request = (u64, u64);

/// A worker under load. Its slots limit the load, or `arrivals` sets it.
struct App {
    request: Box<dyn Fn(&mut fastrand::Rng) -> Request>,
    /// The chance of a new request in each step. `None`: a request is always waiting.
    arrivals: Option<f64>,
    chance: fastrand::Rng,
    controller: Controller,
    waiting: usize,
    /// On the thread, in turn: the time left there, and the time elsewhere after it.
    thread: VecDeque<Request>,
    /// Elsewhere: the time left.
    elsewhere: Vec<u64>,
    finished: u64,
}

fn app(request: impl Fn(&mut fastrand::Rng) -> Request + 'static) -> App {
    App {
        request: Box::new(request),
        arrivals: None,
        chance: fastrand::Rng::with_seed(3),
        controller: Controller::default(),
        waiting: 0,
        thread: VecDeque::new(),
        elsewhere: Vec::new(),
        finished: 0,
    }
}

impl App {
    fn per_second(mut self, requests: f64) -> Self {
        self.arrivals = Some(requests * STEP as f64 / 1e6);
        self
    }

    fn with_slots(mut self, slots: usize) -> Self {
        self.controller.slots = slots;
        self
    }

    /// Runs one round and returns the slots after it.
    fn round(&mut self) -> usize {
        let (mut busy, mut leases, mut short) = (0, 0, false);
        for _ in 0..ROUND / STEP {
            match self.arrivals {
                None => self.waiting = 1,
                Some(arrivals) => self.waiting += usize::from(self.chance.f64() < arrivals),
            }
            while self.waiting > 0 && self.in_use() < self.controller.slots {
                self.waiting -= usize::from(self.arrivals.is_some());
                self.thread.push_back((self.request)(&mut self.chance));
            }
            short |= self.waiting > 0;
            leases += self.in_use() as u64;
            busy += u64::from(!self.thread.is_empty());
            self.step();
        }
        let steps = (ROUND / STEP) as f64;
        self.controller.observe(Round {
            utilisation: busy as f64 / steps,
            leases: leases as f64 / steps,
            short,
        });
        self.controller.slots
    }

    fn step(&mut self) {
        let before = self.in_use();
        self.elsewhere.iter_mut().for_each(|left| *left = left.saturating_sub(STEP));
        self.elsewhere.retain(|left| *left > 0);
        if let Some((left, after)) = self.thread.front_mut() {
            *left = left.saturating_sub(STEP);
            if *left == 0 {
                self.elsewhere.extend(Some(*after).filter(|after| *after > 0));
                self.thread.pop_front();
            }
        }
        self.finished += (before - self.in_use()) as u64;
    }

    fn in_use(&self) -> usize {
        self.thread.len() + self.elsewhere.len()
    }

    fn rounds(&mut self, rounds: usize) -> Vec<usize> {
        (0..rounds).map(|_| self.round()).collect()
    }

    /// How many requests end in this many rounds.
    fn throughput(&mut self, rounds: usize) -> u64 {
        let before = self.finished;
        self.rounds(rounds);
        self.finished - before
    }
}

fn cpu_bound() -> App {
    app(|_| (20_000, 0))
}

/// Waits 100 ms and works 1 ms.
fn waiting() -> App {
    app(|_| (1_000, 100_000))
}

/// Half of its requests work for 5 ms, the others wait for 100 ms.
fn mixed() -> App {
    app(|chance| if chance.bool() { (5_000, 0) } else { (200, 100_000) })
}

#[test]
fn a_busy_app_stays_at_one_slot() {
    assert!(cpu_bound().with_slots(1).rounds(100).iter().all(|slots| *slots == 1));
    assert!(cpu_bound().with_slots(1).per_second(30.0).rounds(100).iter().all(|slots| *slots == 1));
}

#[test]
fn a_busy_app_has_one_slot_within_ten_seconds_after_its_start() {
    assert_eq!(cpu_bound().rounds(20).last(), Some(&1));
}

#[test]
fn a_first_burst_to_a_waiting_app_is_served_within_two_rounds() {
    let mut app = waiting().per_second(0.0);
    app.waiting = 100;
    app.rounds(2);
    assert_eq!((app.waiting, app.finished), (0, 100));
}

#[test]
fn a_waiting_app_gets_the_slots_that_its_loop_has_room_for_within_seconds() {
    let mut app = waiting();
    assert!(app.rounds(8).last().is_some_and(|slots| *slots >= 64), "4 s");
    let fixed = waiting().with_slots(100).throughput(60);
    assert!(app.throughput(60) as f64 > 0.95 * fixed as f64);
    let settled = app.rounds(60);
    assert!(settled.iter().all(|slots| (64..200).contains(slots)), "{settled:?}");
}

/// Long polls end only after 25 s, or when another request gets through.
#[test]
fn long_polls_in_all_slots_leave_room_for_others_within_seconds() {
    let mut app = app(|_| (1_000, 25_000_000)).per_second(0.0);
    app.waiting = 500;
    app.rounds(12);
    assert_eq!((app.waiting, app.in_use()), (0, 500), "6 s");
}

#[test]
fn a_mixed_app_settles_and_keeps_its_thread_busy() {
    let best = mixed().with_slots(64).throughput(20);
    for seed in 0..3 {
        let mut app = mixed();
        app.chance = fastrand::Rng::with_seed(seed);
        app.rounds(20);
        let settled = app.rounds(100);
        let changes = settled.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(changes <= 5, "{changes} changes: {settled:?}");
        let reached = app.throughput(20);
        assert!(reached as f64 > 0.85 * best as f64, "{reached} of {best}");
    }
}

#[test]
fn too_many_slots_shrink_even_if_the_thread_is_always_busy() {
    assert_eq!(cpu_bound().with_slots(64).rounds(200).last(), Some(&1));
    assert_eq!(cpu_bound().with_slots(8).per_second(30.0).rounds(200).last(), Some(&1));
}

#[test]
fn slots_do_not_grow_while_no_request_waits() {
    let slots = waiting().per_second(5.0).with_slots(4).rounds(50);
    assert!(slots.iter().all(|slots| *slots == 4), "{slots:?}");
}

#[test]
fn an_idle_app_keeps_its_slots() {
    let mut app = waiting().with_slots(40).per_second(0.0);
    assert!(app.rounds(50).iter().all(|slots| *slots == 40));
}

#[test]
fn the_reason_for_the_slots_is_a_sentence() {
    let mut controller = Controller::default();
    assert_eq!(controller.to_string(), "the worker has not reported yet: 8 slots");
    controller.slots = 11;
    controller.observe(Round { utilisation: 0.35, leases: 4.0, short: false });
    assert_eq!(controller.to_string(), "event loop 35 % busy at 4.0 requests: 11 slots");
}

#[test]
fn a_worker_that_nothing_measures_gets_as_many_requests_as_a_member() {
    let tuner = ConcurrencyTuner::default();
    assert_eq!(tuner.slots(), 8, "its reports will change it");
    tuner.is_blind("nothing measures it");
    assert_eq!(tuner.slots(), 64);
    assert_eq!(tuner.reason(9), "nothing measures it: 9 slots");
    tuner.sees();
    assert_eq!(tuner.slots(), 8);
}
