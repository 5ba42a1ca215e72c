//! The adaptive queue beside a queue in order of arrival: the same requests at many loads, in virtual time. The decision
//! about adaptive queues quotes the printed figures.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::simulation::World;
use super::workload::{Holding, SlowSpell};
use crate::{Policy, Priority};

const SECOND: Duration = Duration::from_secs(1);
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// Pages of 3 ms, and one of ten of 29 ms: the pages that the benchmark renders.
const PAGES: Holding = Holding::Either(Duration::from_millis(3), 0.1, Duration::from_millis(29));
const HOLDINGS: [Holding; 3] =
    [PAGES, Holding::Exponential(Duration::from_millis(6)), Holding::Fixed(Duration::from_millis(6))];

#[derive(Clone, Copy, Debug)]
struct LoadCase {
    slots: usize,
    holding: Holding,
    load: f64,
    time: Duration,
    slow: Option<SlowSpell>,
    seed: u64,
}

/// What came of one run.
#[derive(Debug)]
struct LoadOutcome {
    p50: Duration,
    p99: Duration,
    refused: usize,
    overloads: u64,
    in_order: bool,
    /// Answers in time, and answers within a second, as shares of the capacity.
    goodput: f64,
    quick: f64,
}

impl LoadCase {
    async fn run(self, policy: Policy) -> LoadOutcome {
        let mut world = World::seeded(policy, self.slots, self.holding, TIME_LIMIT, self.seed);
        world.slow = self.slow;
        world.pour(self.load, self.time, Priority::Normal);
        world.run(None).await;
        let all = (Duration::ZERO, self.time * 2);
        LoadOutcome {
            p50: world.latency(0.5, all.0, all.1),
            p99: world.latency(0.99, all.0, all.1),
            refused: world.refusals(),
            overloads: world.overloads(),
            in_order: world.is_in_order(),
            goodput: world.goodput(Duration::ZERO, self.time),
            quick: world.goodput_within(SECOND, Duration::ZERO, self.time),
        }
    }

    /// Runs both policies and prints what came of it: first in order of arrival, then adaptive.
    async fn both(self) -> (LoadOutcome, LoadOutcome) {
        let (fifo, adaptive) = (self.run(Policy::Fifo).await, self.run(Policy::Adaptive).await);
        let Self { slots, holding, load, seed, slow, .. } = self;
        for (policy, outcome) in [("fifo", &fifo), ("adaptive", &adaptive)] {
            let LoadOutcome { p50, p99, refused, overloads, goodput, quick, .. } = outcome;
            println!(
                "{slots} slots, {holding:?}, load {load}, slow {:?}, seed {seed}, {policy}: goodput {goodput:.3}, within 1 s {quick:.3}, \
                 p50 {p50:.1?}, p99 {p99:.1?}, refused {refused}, overloads {overloads}",
                slow.map(|slow| slow.part)
            );
        }
        (fifo, adaptive)
    }
}

/// `HOSTLER_SEEDS=10` runs more seeds than the usual one.
#[expect(clippy::disallowed_methods, reason = "how long a test runs is no configuration of Hostler's")]
fn seeds() -> RangeInclusive<u64> {
    1..=std::env::var("HOSTLER_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(1)
}

/// The runs in which the adaptive queue is slower than order of arrival, or refuses a request, although order of arrival refuses
/// none.
async fn losses(loads: &[f64], slow: Option<SlowSpell>, slots: &[usize], time: Duration) -> Vec<String> {
    let mut losses = Vec::new();
    for seed in seeds() {
        for slots in slots.iter().copied() {
            for holding in HOLDINGS {
                for load in loads.iter().copied() {
                    let case = LoadCase { slots, holding, load, time: time * 2 / slots as u32, slow, seed };
                    let (fifo, adaptive) = case.both().await;
                    let is_loss =
                        adaptive.p99 > fifo.p99.mul_f64(1.05) || adaptive.refused > 0 || !adaptive.in_order;
                    if fifo.refused == 0 && is_loss {
                        losses.push(format!("{case:?}: {fifo:?} {adaptive:?}"));
                    }
                }
            }
        }
    }
    losses
}

#[tokio::test(start_paused = true)]
async fn up_to_its_capacity_the_adaptive_queue_is_the_order_of_arrival() {
    let losses = losses(&[0.7, 0.8, 0.9, 0.95, 1.0, 1.05], None, &[2, 8], 20 * SECOND).await;
    assert!(losses.is_empty(), "{losses:#?}");
}

/// On a machine that other programs use, the workers are slow at times. The pool works the queue off afterwards.
#[tokio::test(start_paused = true)]
async fn a_pool_that_is_slow_for_a_moment_is_not_overloaded() {
    for (period, part, factor) in [(10 * SECOND, 2 * SECOND, 2.5), (10 * SECOND, SECOND, 3.0)] {
        let losses =
            losses(&[0.7, 0.8, 0.85], Some(SlowSpell { period, part, factor }), &[2], 30 * SECOND).await;
        assert!(losses.is_empty(), "{losses:#?}");
    }
}

/// More than the pool can do comes for some seconds, and then less. All of it can be done in time.
#[tokio::test(start_paused = true)]
async fn a_peak_that_the_pool_works_off_in_time_is_not_an_overload() {
    for seed in 1..=10 {
        for (peak, time) in [(1.2, 5 * SECOND), (1.3, 3 * SECOND), (1.5, SECOND)] {
            for policy in [Policy::Fifo, Policy::Adaptive] {
                let mut world = World::seeded(policy, 2, PAGES, TIME_LIMIT, seed);
                for (load, time) in [(0.5, 5 * SECOND), (peak, time), (0.7, 20 * SECOND)] {
                    world.pour(load, time, Priority::Normal);
                    world.run(Some(time)).await;
                }
                assert_eq!(world.refusals(), 0, "{policy:?}, {peak} for {time:?}, seed {seed}");
            }
        }
    }
}

/// The queue is long for a while after many requests came at once. It does not grow, so it is not an overload.
#[tokio::test(start_paused = true)]
async fn requests_behind_a_burst_are_not_refused() {
    for seed in 1..=10 {
        for load in [0.3, 0.8] {
            let mut world = World::seeded(Policy::Adaptive, 2, PAGES, TIME_LIMIT, seed);
            world.pour(0.5, 5 * SECOND, Priority::Normal);
            world.run(None).await;
            world.burst((2.0 * world.capacity()) as usize);
            world.pour(load, 20 * SECOND, Priority::Normal);
            world.run(None).await;
            assert_eq!(world.refusals(), 0, "load {load}, seed {seed}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn members_that_are_replaced_again_and_again_hide_an_overload_only_at_first() {
    let mut world = World::new(Policy::Adaptive, 4, Holding::Fixed(Duration::from_millis(20)), TIME_LIMIT);
    world.pour(1.6, 40 * SECOND, Priority::Normal);
    for _ in 0..80 {
        world.run(Some(SECOND / 2)).await;
        world.replace_a_member();
    }
    world.run(None).await;
    let slowest = world.latency(0.99, 20 * SECOND, 50 * SECOND);
    let goodput = world.goodput(20 * SECOND, 40 * SECOND);
    assert!(world.overloads() > 0 && slowest < TIME_LIMIT / 10, "{} {slowest:?}", world.overloads());
    assert!(goodput > 0.95, "{goodput}");
}

#[tokio::test(start_paused = true)]
async fn beyond_its_capacity_the_pool_serves_as_much_as_it_can_and_quickly() {
    for (slots, holding) in [(2, HOLDINGS[0]), (2, HOLDINGS[1]), (2, HOLDINGS[2]), (8, PAGES)] {
        for (load, least_quick) in [(1.2, 0.4), (1.5, 0.85), (2.0, 0.9)] {
            for seed in seeds() {
                let case = LoadCase { slots, holding, load, time: 30 * SECOND, slow: None, seed };
                let (fifo, adaptive) = case.both().await;
                assert!(
                    adaptive.goodput >= 0.95 && adaptive.goodput >= fifo.goodput - 0.02,
                    "{case:?}: {adaptive:?}"
                );
                assert!(adaptive.quick >= least_quick, "{case:?}: {adaptive:?}");
                assert!(adaptive.p99 <= fifo.p99, "{case:?}: {adaptive:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn members_that_end_requests_without_an_answer_do_not_hide_an_overload() {
    let holding = Holding::Fixed(Duration::from_millis(20));
    let mut world = World::new(Policy::Adaptive, 4, holding, TIME_LIMIT);
    world.pour(1.6, 20 * SECOND, Priority::Normal);
    for _ in 0..40 {
        world.run(Some(SECOND / 2)).await;
        world.hang_up();
    }
    world.run(None).await;
    let slowest = world.latency(0.99, Duration::ZERO, 30 * SECOND);
    assert!(world.overloads() > 0 && slowest < TIME_LIMIT / 2, "{} {slowest:?}", world.overloads());
}
