//! Pools that serve short requests first: the order, the bound of the delay, and what labels are worth, in virtual time.
//! docs/concepts/order.md quotes the printed figures.

use std::time::Duration;

use tokio::time::advance;

use super::simulation::{Story, World};
use super::workload::{Holding, Labels};
use super::*;
use crate::{CostTable, Order, Policy, Priority};

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

const DELAY: Duration = ms(500);
const SHORT_FIRST: Order = Order::ShortFirst { delay: DELAY };
/// Nine of ten take 3 ms, the others 29 ms.
const PAGES: Holding = Holding::Either(ms(3), 0.1, ms(29));
const TIME: Duration = Duration::from_secs(100);

fn short_first(delay: Duration) -> Pool<&'static str> {
    let order = Order::ShortFirst { delay };
    Pool::new("test", PoolSettings { queue_limit: 2000, order, ..PoolSettings::default() })
}

fn claim(cost: u64) -> Claim {
    Claim { expected: Some(ms(cost)), ..Claim::default() }
}

fn ask(pool: &Pool<&'static str>, cost: u64) -> Request<&'static str> {
    let mut request = of(pool.acquire(claim(cost)));
    request.assert_waits();
    request
}

#[tokio::test(start_paused = true)]
async fn short_requests_overtake_long_ones_and_equal_ones_keep_their_order() {
    let pool = short_first(DELAY);
    let _member = pool.join("a", 1);
    let running = of(pool.acquire(claim(10))).lease();
    let mut long = [ask(&pool, 30), ask(&pool, 30)];
    advance(ms(5)).await;
    let mut short = [ask(&pool, 3), ask(&pool, 3)];
    drop(running);
    for request in short.iter_mut().chain(&mut long) {
        assert!(request.woken());
        request.assert_served();
    }
}

#[tokio::test(start_paused = true)]
async fn the_older_a_long_request_is_the_fewer_overtake_it() {
    let pool = short_first(DELAY);
    let _member = pool.join("a", 1);
    let running = lease(&pool);
    let mut long = ask(&pool, 30);
    // Twelve times 27 ms.
    advance(ms(323)).await;
    let mut short = ask(&pool, 3);
    advance(ms(2)).await;
    let mut late = ask(&pool, 3);
    drop(running);
    short.assert_served();
    assert!(!late.woken());
    long.assert_served();
    late.assert_served();
}

#[tokio::test(start_paused = true)]
async fn a_crowd_of_short_requests_delays_a_long_one_by_no_more_than_is_allowed() {
    let pool = short_first(ms(100));
    let _member = pool.join("a", 1);
    let running = lease(&pool);
    let mut long = ask(&pool, 30);
    let mut crowd: Vec<_> = (0..1000).map(|_| ask(&pool, 4)).collect();
    drop(running);
    let mut served = 0;
    let mut all = crowd.iter_mut();
    while !long.woken() {
        let one = all.next().expect("the long request is served before the crowd is");
        let lease = one.lease();
        advance(ms(4)).await;
        drop(lease);
        served += 1;
    }
    assert_eq!(served, 25, "100 ms");
    long.assert_served();
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cost_more_than_expected_uses_up_more_of_the_delay() {
    let pool = short_first(ms(100));
    let _member = pool.join("a", 1);
    let running = lease(&pool);
    let mut long = ask(&pool, 30);
    let mut short: Vec<_> = (0..5).map(|_| ask(&pool, 1)).collect();
    drop(running);
    for cost in [20, 90] {
        let lease = short.remove(0).lease();
        advance(ms(cost)).await;
        drop(lease);
    }
    assert!(!short[0].woken(), "110 of 100 ms are used up");
    long.assert_served();
    short[0].assert_served();
}

#[tokio::test(start_paused = true)]
async fn an_order_changes_while_requests_wait() {
    let pool = short_first(DELAY);
    let _member = pool.join("a", 1);
    let running = lease(&pool);
    let (mut long, mut short) = (ask(&pool, 30), ask(&pool, 3));
    pool.update(PoolSettings::default());
    drop(running);
    let running = long.lease();
    let mut long = ask(&pool, 30);
    pool.update(PoolSettings { order: SHORT_FIRST, ..PoolSettings::default() });
    drop(running);
    short.assert_served();
    long.assert_served();
}

#[tokio::test(start_paused = true)]
async fn the_slots_of_members_that_get_no_requests_do_not_lengthen_the_delay() {
    let pool = short_first(ms(100));
    let members = ["a", "b", "c", "d"].map(|name| pool.join(name, 1));
    members[1..].iter().for_each(|member| _ = member.set_health(false));
    let running = lease(&pool);
    let mut long = ask(&pool, 30);
    let mut crowd: Vec<_> = (0..100).map(|_| ask(&pool, 4)).collect();
    drop(running);
    let mut all = crowd.iter_mut();
    let began = tokio::time::Instant::now();
    while !long.woken() {
        let lease = all.next().expect("the long request is served before the crowd is").lease();
        advance(ms(4)).await;
        drop(lease);
    }
    assert_eq!(began.elapsed(), ms(100));
    long.assert_served();
}

#[tokio::test(start_paused = true)]
async fn what_is_used_up_of_the_delay_counts_on_when_a_reload_changes_it() {
    let pool = short_first(ms(100));
    let _member = pool.join("a", 1);
    let running = lease(&pool);
    let mut long = ask(&pool, 30);
    let mut short: Vec<_> = (0..5).map(|_| ask(&pool, 4)).collect();
    drop(running);
    for used in [4, 8, 12] {
        let lease = short.remove(0).lease();
        advance(ms(4)).await;
        if used == 12 {
            let order = Order::ShortFirst { delay: ms(12) };
            pool.update(PoolSettings { queue_limit: 2000, order, ..PoolSettings::default() });
        }
        drop(lease);
    }
    assert!(!short[0].woken(), "12 of 12 ms are used up");
    long.assert_served();
    short[0].assert_served();
}

/// Requests at this part of the capacity of two workers. `wrong`: the part of the labels that are wrong.
async fn world(order: Order, load: f64, holding: Holding, wrong: f64, seed: u64) -> World {
    let policy = Policy::Fifo;
    let settings = PoolSettings { queue_limit: 100_000, order, policy, ..PoolSettings::default() };
    let mut world = World::with(settings, 2, holding, Duration::from_secs(60), seed);
    let (table, dice) = (CostTable::default(), fastrand::Rng::with_seed(seed + 1));
    world.labels = Some(Labels { table, long: ms(10), wrong, dice });
    world.pour(load, TIME, Priority::Normal);
    world.run(None).await;
    world
}

/// How many times longer a request took than it held its slot.
fn slowdown(story: &Story) -> f64 {
    let held = story.answered.unwrap() - story.granted.unwrap();
    story.latency().unwrap().as_secs_f64() / held.as_secs_f64()
}

fn p99(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() * 99 / 100]
}

/// The 99th percentiles: the slowdown, and the milliseconds of all, of short and of long requests.
#[derive(Clone, Copy, Debug)]
struct Figures {
    slowdown: f64,
    all: f64,
    short: f64,
    long: f64,
}

impl Figures {
    fn of(world: &World) -> Self {
        let is_long = |story: &Story| story.answered.unwrap() - story.granted.unwrap() > ms(10);
        let millis = |fits: &dyn Fn(&Story) -> bool| {
            let stories = world.stories.iter().filter(|story| fits(story));
            p99(stories.map(|story| story.latency().unwrap().as_secs_f64() * 1e3).collect())
        };
        Self {
            slowdown: p99(world.stories.iter().map(slowdown).collect()),
            all: millis(&|_| true),
            short: millis(&|story| !is_long(story)),
            long: millis(&|story| is_long(story)),
        }
    }
}

async fn both(load: f64, holding: Holding, wrong: f64) -> [Figures; 2] {
    let arrival = Figures::of(&world(Order::Arrival, load, holding, wrong, 5).await);
    let short = Figures::of(&world(SHORT_FIRST, load, holding, wrong, 5).await);
    println!(
        "load {load}, {wrong} of the labels wrong:\n  arrival     {arrival:.1?}\n  short first {short:.1?}"
    );
    [arrival, short]
}

#[tokio::test(start_paused = true)]
async fn with_right_labels_short_requests_are_much_faster_and_long_ones_pay() {
    for load in [0.7, 0.9] {
        let [arrival, short] = both(load, PAGES, 0.0).await;
        assert!(short.slowdown <= 0.6 * arrival.slowdown, "{load}");
        assert!(short.short <= 0.6 * arrival.short, "{load}");
        assert!(short.long <= arrival.long + DELAY.as_secs_f64() * 1e3, "{load}");
    }
}

#[tokio::test(start_paused = true)]
async fn with_a_fifth_of_the_labels_wrong_it_is_never_much_worse_than_the_order_of_arrival() {
    for load in [0.7, 0.9] {
        let [arrival, short] = both(load, PAGES, 0.2).await;
        assert!(short.slowdown <= 1.1 * arrival.slowdown, "{load}");
        assert!(short.all <= 1.1 * arrival.all, "{load}");
        assert!(short.short <= 1.1 * arrival.short, "{load}");
    }
}

#[tokio::test(start_paused = true)]
async fn labels_that_say_nothing_leave_the_order_of_arrival() {
    for load in [0.7, 0.9] {
        for holding in [PAGES, Holding::Exponential(ms(6))] {
            let [arrival, short] = both(load, holding, 0.5).await;
            assert!(short.slowdown <= 1.05 * arrival.slowdown, "{load} {holding:?}");
            assert!(short.all <= 1.05 * arrival.all, "{load} {holding:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_request_waits_longer_than_the_delay_beyond_the_order_of_arrival() {
    let mut worst = Duration::ZERO;
    for seed in 0..30 {
        let delay = ms(20 + 20 * (seed % 4));
        let slots = 1 + (seed % 3) as usize;
        let run = async |order: Order| {
            let policy = Policy::Fifo;
            let settings = PoolSettings { queue_limit: 100_000, order, policy, ..PoolSettings::default() };
            let mut world = World::with(settings, slots, PAGES, Duration::from_secs(60), seed);
            let (table, dice) = (CostTable::default(), fastrand::Rng::with_seed(seed));
            world.labels = Some(Labels { table, long: ms(10), wrong: 0.0, dice });
            // The labels are learnt first.
            world.pour(0.5, Duration::from_secs(2), Priority::Normal);
            world.run(None).await;
            for _ in 0..3 {
                world.burst(200);
                world.pour(1.2, Duration::from_secs(1), Priority::Normal);
                world.run(None).await;
            }
            world
        };
        let (arrival, short) = (run(Order::Arrival).await, run(Order::ShortFirst { delay }).await);
        assert_ne!(arrival.served, short.served);
        for (one, other) in arrival.stories.iter().zip(&short.stories) {
            assert_eq!(one.arrived, other.arrived);
            let later = other.granted.unwrap().saturating_sub(one.granted.unwrap());
            worst = worst.max(later.saturating_sub(delay));
        }
    }
    println!("at most {worst:?} beyond the allowed delay");
    // A request that has begun is not interrupted.
    assert!(worst <= ms(29), "{worst:?}");
}
