//! The policy with a model of an app: it grows in time, shrinks later, and does not flap.

use super::*;

/// Between two looks.
const STEP: Duration = Duration::from_millis(250);
const BOOT: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// An app whose workers compute, on a machine with some cores. Requests arrive evenly, with a little chance.
struct Model {
    limits: ScalingLimits,
    policy: ScalingPolicy,
    now: Instant,
    count: usize,
    /// When each worker is ready.
    ready_at: Vec<Instant>,
    cores: f64,
    /// Requests a second that one worker serves.
    capacity: f64,
    queue: f64,
    granted: f64,
    tunnels: bool,
    failing: bool,
    chance: fastrand::Rng,
    /// The numbers of workers, whenever they changed.
    counts: Vec<usize>,
}

impl Model {
    fn new(least: usize, most: usize, cores: f64) -> Self {
        let now = Instant::now();
        Self {
            limits: ScalingLimits { least, most, shrink_after: 5 * MINUTE },
            policy: ScalingPolicy::new(now),
            now,
            count: least,
            ready_at: vec![now; least],
            cores,
            capacity: 100.0,
            queue: 0.0,
            granted: 0.0,
            tunnels: false,
            failing: false,
            chance: fastrand::Rng::with_seed(7),
            counts: vec![least],
        }
    }

    /// So many requests a second arrive, for this time.
    fn load(&mut self, rate: f64, long: Duration) -> &mut Self {
        let until = self.now + long;
        while self.now < until {
            self.step(rate);
        }
        self
    }

    fn step(&mut self, rate: f64) {
        self.now += STEP;
        let arrive = rate * STEP.as_secs_f64() * (0.7 + 0.6 * self.chance.f64());
        let ready = if self.failing { 0 } else { self.ready_at.iter().filter(|at| **at <= self.now).count() };
        let workers = (ready as f64).min(self.cores);
        let able = workers * self.capacity * STEP.as_secs_f64();
        let served = (self.queue + arrive).min(able);
        self.queue = (self.queue + arrive - served).max(0.0);
        self.granted += served;
        let used_cores = if able > 0.0 { workers * served / able } else { 0.0 };
        // On a full machine the workers wait for the CPU and look busy.
        let slowness = ready as f64 / workers.max(1.0);
        let look = ScalingLook {
            ready,
            aside: 0,
            failing: self.failing && self.count > 0,
            failed: 0,
            failed_last: 0,
            restarting: false,
            wait: Duration::from_secs_f64(if able > 0.0 {
                self.queue / able * STEP.as_secs_f64()
            } else {
                0.0
            }),
            used: arrive > 0.0 || self.queue > 0.0 || self.tunnels,
            load: (used_cores * slowness).min(ready as f64),
            granted: self.granted as u64,
            last_is_idle: !self.tunnels,
            free_cpu: (self.cores - used_cores).max(0.0),
            memory_is_short: false,
        };
        match self.policy.step(self.limits, self.count, look, self.now) {
            ScalingVerdict::Stay => {}
            ScalingVerdict::Grow { to, .. } | ScalingVerdict::Shrink { to, .. } => self.set(to),
        }
    }

    fn set(&mut self, to: usize) {
        self.count = to;
        self.ready_at.resize(to, self.now + BOOT);
        self.counts.push(to);
    }

    fn assert_counts(&mut self, counts: &[usize]) -> &mut Self {
        assert_eq!(self.counts, counts);
        self
    }
}

#[test]
fn a_pool_grows_with_its_load_and_shrinks_later() {
    let mut model = Model::new(1, 8, 8.0);
    model.load(50.0, 10 * MINUTE).assert_counts(&[1]);
    // Within seconds; then there is no more change under the same load.
    model.load(250.0, Duration::from_secs(30)).assert_counts(&[1, 2, 3, 4]);
    model.load(250.0, 30 * MINUTE).assert_counts(&[1, 2, 3, 4]);
    model.counts = vec![4];
    model.load(60.0, 4 * MINUTE).assert_counts(&[4]);
    model.load(60.0, 60 * MINUTE);
    assert!(model.count == 2 && model.counts.is_sorted_by(|a, b| a > b), "{:?}", model.counts);
}

#[test]
fn no_steady_load_makes_a_pool_flap() {
    for rate in (20..700).step_by(20) {
        let mut model = Model::new(1, 8, 8.0);
        model.load(f64::from(rate), 20 * MINUTE);
        model.counts.clear();
        model.load(f64::from(rate), 120 * MINUTE);
        let changes = model.counts.len();
        assert!(changes <= 1, "{rate} requests a second: {:?}", model.counts);
    }
}

#[test]
fn a_pool_grows_much_faster_than_it_shrinks() {
    let mut model = Model::new(1, 8, 8.0);
    let began = model.now;
    while model.count < 8 {
        model.step(2_000.0);
    }
    assert!(model.now - began < MINUTE / 3, "{:?}", model.now - began);
    assert!(model.counts.windows(2).all(|pair| pair[1] <= pair[0] * 2), "{:?}", model.counts);
    (model.queue, model.counts) = (0.0, vec![]);
    model.load(10.0, 4 * MINUTE).assert_counts(&[]);
}

#[test]
fn a_full_cpu_stops_growth() {
    let mut model = Model::new(1, 8, 2.0);
    model.load(500.0, 10 * MINUTE).assert_counts(&[1, 2]);
    assert_eq!(model.policy.held(), Some(ScalingReason::CpuIsFull));
}

/// One worker is ready and busy, and requests wait.
const WAITING: ScalingLook = ScalingLook {
    ready: 1,
    aside: 0,
    failing: false,
    failed: 0,
    failed_last: 0,
    restarting: false,
    wait: Duration::from_secs(1),
    used: true,
    load: 1.0,
    granted: 0,
    last_is_idle: false,
    free_cpu: 7.0,
    memory_is_short: false,
};

#[test]
fn a_growth_that_did_not_help_is_not_repeated_for_a_minute() {
    // Each worker is idle: a database is slow, and the requests wait for slots.
    let mut model = Model::new(1, 8, 8.0);
    for step in 0..(2 * 60 * 4) {
        model.now += STEP;
        let look = ScalingLook { ready: model.count, load: 0.1, granted: step * 5, ..WAITING };
        if let ScalingVerdict::Grow { to, .. } = model.policy.step(model.limits, model.count, look, model.now)
        {
            model.set(to);
        }
    }
    assert!(model.counts.len() <= 4, "{:?}", model.counts);
    assert_eq!(model.policy.held(), Some(ScalingReason::NoHelp));
}

#[test]
fn a_pool_that_has_shrunk_grows_at_once_when_the_load_comes_back() {
    let mut model = Model::new(1, 8, 8.0);
    model.limits.shrink_after = MINUTE / 12;
    model.load(250.0, MINUTE / 3).load(0.0, MINUTE / 6);
    assert_eq!((model.counts.iter().max() > Some(&2), model.count), (true, 1), "{:?}", model.counts);
    model.counts.clear();
    // Less than what the pool served when it grew the last time.
    model.load(130.0, MINUTE / 4);
    assert_eq!((model.counts.first(), model.policy.held()), (Some(&2), None));
}

#[test]
fn a_growth_without_a_shortage_for_a_minute_has_helped_also_if_requests_get_dearer_later() {
    let mut model = Model::new(1, 8, 8.0);
    model.load(130.0, 2 * MINUTE);
    model.counts.clear();
    model.capacity = 30.0;
    model.load(110.0, MINUTE / 6);
    assert!(!model.counts.is_empty(), "{:?}", model.policy.held());
}

#[test]
fn shortage_of_memory_stops_growth() {
    let mut model = Model::new(1, 8, 8.0);
    let look = ScalingLook { memory_is_short: true, ..WAITING };
    for _ in 0..100 {
        model.now += STEP;
        assert_eq!(model.policy.step(model.limits, 1, look, model.now), ScalingVerdict::Stay);
    }
    let calm = ScalingLook { memory_is_short: false, ..look };
    model.now += STEP;
    assert!(matches!(
        model.policy.step(model.limits, 1, calm, model.now),
        ScalingVerdict::Grow { to: 2, .. }
    ));
}

#[test]
fn a_pool_grows_in_place_of_a_worker_that_is_out_of_rotation_and_not_of_one_that_boots() {
    for (aside, grows) in [(1, true), (0, false)] {
        let mut model = Model::new(2, 8, 8.0);
        let look = ScalingLook { aside, ..WAITING };
        let grown = (0..100).any(|_| {
            model.now += STEP;
            matches!(model.policy.step(model.limits, 2, look, model.now), ScalingVerdict::Grow { to: 3, .. })
        });
        assert_eq!(grown, grows, "{aside} out of rotation");
    }
}

#[test]
fn a_pool_without_requests_shrinks_to_its_least_number_at_once() {
    let mut model = Model::new(0, 8, 8.0);
    model.set(6);
    model.load(400.0, MINUTE);
    model.load(0.0, 5 * MINUTE - 2 * STEP).assert_counts(&[0, 6]);
    model.load(0.0, MINUTE).assert_counts(&[0, 6, 0]);
}

#[test]
fn a_tunnel_keeps_the_last_worker() {
    let mut model = Model::new(0, 4, 8.0);
    model.set(1);
    model.tunnels = true;
    model.load(0.0, 60 * MINUTE).assert_counts(&[0, 1]);
    model.tunnels = false;
    model.load(0.0, 6 * MINUTE).assert_counts(&[0, 1, 0]);
}

#[test]
fn a_worker_that_boots_is_not_sent_away_and_one_that_fails_is_after_a_minute() {
    let mut model = Model::new(0, 4, 8.0);
    model.limits.shrink_after = STEP;
    model.set(1);
    model.ready_at = vec![model.now + MINUTE];
    model.load(0.0, MINUTE / 2).assert_counts(&[0, 1]);
    model.policy.woken(model.now);
    model.failing = true;
    model.load(0.0, MINUTE - 2 * STEP).assert_counts(&[0, 1]);
    model.load(0.0, MINUTE).assert_counts(&[0, 1, 0]);
}

#[test]
fn a_worker_whose_boots_fail_does_not_keep_the_others_and_none_that_serves_goes_in_its_place() {
    // The first of two workers is ready, and the second one cannot have a port of the app.
    let idle = ScalingLook { wait: Duration::ZERO, used: false, load: 0.0, last_is_idle: true, ..WAITING };
    let second = ScalingLook { failed: 1, failed_last: 1, ..idle };
    let first = ScalingLook { failed_last: 0, ..second };
    let after = |least, look, pause| {
        let mut model = Model::new(least, 4, 8.0);
        model.policy.step(model.limits, 2, look, model.now + pause)
    };
    let to = |verdict: ScalingVerdict| {
        if let ScalingVerdict::Shrink { to, .. } = verdict { Some(to) } else { None }
    };
    let shrinks = |least, look| to(after(least, look, 5 * MINUTE));
    assert_eq!((shrinks(0, second), shrinks(1, second)), (Some(0), Some(1)));
    assert_eq!((shrinks(0, first), shrinks(1, first)), (Some(0), None));
    assert_eq!((shrinks(0, idle), shrinks(1, idle)), (None, None), "it boots");

    let evicted = |least, look| {
        let mut model = Model::new(least, 4, 8.0);
        to(model.policy.evicted(model.limits, 2, look, model.now + MINUTE))
    };
    assert_eq!((evicted(0, second), evicted(1, second)), (Some(0), Some(1)));
    assert_eq!((evicted(0, first), evicted(1, first)), (Some(0), None));

    let shrinks_under_little_load = |look| {
        let mut model = Model::new(1, 4, 8.0);
        let look = ScalingLook { used: true, load: 0.2, ..look };
        (0..6 * 60 * 4).any(|_| {
            model.now += STEP;
            to(model.policy.step(model.limits, 2, look, model.now)) == Some(1)
        })
    };
    assert!(shrinks_under_little_load(second) && !shrinks_under_little_load(first));
}

#[test]
fn an_idle_pool_makes_room_for_another_and_a_busy_one_does_not() {
    let model = Model::new(0, 4, 8.0);
    let look = ScalingLook {
        ready: 1,
        aside: 0,
        failing: false,
        failed: 0,
        failed_last: 0,
        restarting: false,
        wait: Duration::ZERO,
        used: false,
        load: 0.0,
        granted: 9,
        last_is_idle: true,
        free_cpu: 1.0,
        memory_is_short: false,
    };
    let verdict = |look| model.policy.clone().evicted(model.limits, 1, look, model.now);
    assert!(matches!(verdict(look), ScalingVerdict::Shrink { to: 0, .. }));
    assert_eq!(verdict(ScalingLook { used: true, ..look }), ScalingVerdict::Stay);
    assert_eq!(verdict(ScalingLook { aside: 1, ..look }), ScalingVerdict::Stay, "worker 1 is drained");
    assert_eq!(verdict(ScalingLook { restarting: true, ..look }), ScalingVerdict::Stay);
    let idle_since = |look| model.policy.idle_since(model.limits, 1, look);
    assert_eq!(idle_since(look), Some(model.now));
    assert_eq!(idle_since(ScalingLook { restarting: true, ..look }), None, "others can give more at once");
}

#[test]
fn a_request_during_a_restart_keeps_the_pool_awake() {
    let mut model = Model::new(0, 4, 8.0);
    model.policy.woken(model.now);
    let idle = ScalingLook { wait: Duration::ZERO, used: false, load: 0.0, last_is_idle: true, ..WAITING };
    // The restart takes longer than `shrink_after`.
    for minute in 0..10 {
        let look = ScalingLook { used: minute == 9, restarting: true, ..idle };
        let now = model.now + minute * MINUTE;
        assert_eq!(model.policy.step(model.limits, 1, look, now), ScalingVerdict::Stay);
    }
    let verdict = |now| model.policy.clone().step(model.limits, 1, idle, now);
    assert_eq!(verdict(model.now + 10 * MINUTE), ScalingVerdict::Stay);
    assert!(matches!(verdict(model.now + 14 * MINUTE), ScalingVerdict::Shrink { to: 0, .. }));
}

#[test]
fn a_request_that_is_seen_only_when_another_pool_needs_memory_counts() {
    let mut model = Model::new(0, 4, 8.0);
    model.policy.woken(model.now);
    let idle = ScalingLook { wait: Duration::ZERO, used: false, load: 0.0, last_is_idle: true, ..WAITING };
    let later = model.now + 9 * MINUTE;
    let used = ScalingLook { used: true, ..idle };
    assert_eq!(model.policy.evicted(model.limits, 1, used, later), ScalingVerdict::Stay);
    assert_eq!(model.policy.step(model.limits, 1, idle, later + STEP), ScalingVerdict::Stay);
    assert_eq!(model.policy.idle_since(model.limits, 1, idle), Some(later));
}

#[test]
fn a_pool_whose_only_worker_is_drained_does_not_fall_asleep() {
    let mut model = Model::new(0, 4, 8.0);
    model.policy.woken(model.now);
    let now = model.now + 60 * MINUTE;
    let idle = ScalingLook { wait: Duration::ZERO, used: false, load: 0.0, last_is_idle: true, ..WAITING };
    // Its crash may be hours ago.
    let look = ScalingLook { ready: 0, failing: true, ..idle };
    let verdict = |look| model.policy.clone().step(model.limits, 1, look, now);
    assert_eq!(verdict(ScalingLook { aside: 1, ..look }), ScalingVerdict::Stay);
    assert!(matches!(verdict(look), ScalingVerdict::Shrink { to: 0, .. }));
}
