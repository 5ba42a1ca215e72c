//! Fair pools: whose request is next, who gives way when the queue is full, and shares under load in virtual time.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::time::{Instant, advance};

use super::simulation::{Story, World};
use super::workload::Holding;
use super::*;
use crate::{FairKey, Payer, Policy, Priority, SlotCost};

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

pub(super) fn fair_pool(queue_limit: usize) -> Pool<&'static str> {
    Pool::new("test", PoolSettings { queue_limit, fair: true, ..PoolSettings::default() })
}

pub(super) fn ask(pool: &Pool<&'static str>, key: u64) -> Request<&'static str> {
    let mut request = of(pool.acquire(Claim { fair: Some(FairKey::of(key)), ..Claim::default() }));
    request.assert_waits();
    request
}

pub(super) fn take(pool: &Pool<&'static str>, key: u64) -> Lease<&'static str> {
    of(pool.acquire(Claim { fair: Some(FairKey::of(key)), ..Claim::default() })).lease()
}

#[tokio::test(start_paused = true)]
async fn the_key_that_has_used_least_is_next_and_its_requests_stay_in_order() {
    let pool = fair_pool(99);
    let _member = pool.join("a", 1);
    let running = take(&pool, 1);
    let mut ones = [ask(&pool, 1), ask(&pool, 1)];
    let mut twos = [ask(&pool, 2), ask(&pool, 2)];
    advance(ms(10)).await;
    drop(running);
    // The first key has used 10 ms, the second nothing.
    let running = twos[0].lease();
    assert!(!ones[0].woken() && !twos[1].woken());
    advance(ms(30)).await;
    drop(running);
    let running = ones[0].lease();
    assert!(!ones[1].woken() && !twos[1].woken());
    advance(ms(5)).await;
    drop(running);
    // 15 ms against 30 ms.
    let running = ones[1].lease();
    advance(ms(1)).await;
    drop(running);
    twos[1].assert_served();
}

#[tokio::test(start_paused = true)]
async fn a_request_that_lost_its_member_comes_before_older_requests_of_other_keys() {
    let pool = fair_pool(99);
    let _member = pool.join("a", 1);
    let running = take(&pool, 1);
    let mut ones = [ask(&pool, 1), ask(&pool, 1)];
    let mut two = ask(&pool, 2);
    advance(ms(10)).await;
    drop(running);
    let lost = two.lease();
    let again = Claim { fair: Some(FairKey::of(2)), ..Claim::again(two.ticket()) };
    drop(lost);
    let running = ones[0].lease();
    let mut two = of(pool.acquire(again));
    two.assert_waits();
    advance(ms(10)).await;
    drop(running);
    assert!(!ones[1].woken(), "the older request has not had its turn");
    two.assert_served();
    ones[1].assert_served();
}

#[tokio::test(start_paused = true)]
async fn one_key_alone_gets_every_slot_in_order_of_arrival() {
    let pool = fair_pool(99);
    let _member = pool.join("a", 2);
    let running = [take(&pool, 1), take(&pool, 1)];
    let mut waiting: Vec<_> = (0..4).map(|_| ask(&pool, 1)).collect();
    advance(ms(50)).await;
    drop(running);
    let leases = [waiting[0].lease(), waiting[1].lease()];
    assert!(!waiting[2].woken());
    drop(leases);
    waiting[2].assert_served();
    waiting[3].assert_served();
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_the_last_request_of_the_dearest_key() {
    let pool = fair_pool(3);
    let _member = pool.join("a", 1);
    for knows_costs in [false, true] {
        if knows_costs {
            for _ in 0..20 {
                let lease = take(&pool, 9);
                advance(ms(10)).await;
                drop(lease);
            }
        }
        full_queue(&pool);
    }
}

fn full_queue(pool: &Pool<&'static str>) {
    let before = pool.snapshot().counters.refused_full;
    let _running = take(pool, 1);
    let mut crawler = [ask(pool, 1), ask(pool, 1), ask(pool, 1)];
    let mut person = ask(pool, 2);
    crawler[2].assert_refused(AcquireError::QueueFull { limit: 3 });
    crawler[0].assert_waits();
    crawler[1].assert_waits();
    person.assert_waits();
    // A request with a large body is told before it sends that.
    let early = |key: u64| pool.refuse_early(Priority::Normal, Some(FairKey::of(key)));
    assert_eq!((early(1), early(3)), (Some(AcquireError::QueueFull { limit: 3 }), None));
    // The crawler itself finds a full queue, and drives away no other.
    let mut again = of(pool.acquire(Claim { fair: Some(FairKey::of(1)), ..Claim::default() }));
    again.assert_refused(AcquireError::QueueFull { limit: 3 });
    person.assert_waits();
    assert_eq!(pool.snapshot().counters.refused_full - before, 3);
}

#[tokio::test(start_paused = true)]
async fn a_key_under_which_members_die_pays_for_the_deaths() {
    let pool = fair_pool(99);
    let _members = [pool.join("a", 1), pool.join("b", 1)];
    let (deadly, running) = (take(&pool, 1), take(&pool, 2));
    let (mut again, mut other) = (ask(&pool, 1), ask(&pool, 2));
    advance(ms(500)).await;
    deadly.end(LeaseEnding::HungUp);
    // Both have used 500 ms, and the first key the time of a new member, too.
    drop(running);
    other.assert_served();
    again.assert_served();
}

/// Adds up what is charged besides the time of the slot, in milliseconds.
#[derive(Default)]
struct ChargeSum(AtomicU64);

impl Payer for ChargeSum {
    fn pay(&self, _: u64, _: SlotCost) {}

    fn pay_besides(&self, charged: Duration) {
        self.0.fetch_add(u64::try_from(charged.as_millis()).unwrap(), Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn the_payer_is_told_of_a_death_also_if_the_slot_was_paid_for_before() {
    let pool = fair_pool(99);
    let _members = [pool.join("a", 1), pool.join("b", 1)];
    let payer = Arc::<ChargeSum>::default();
    let [mut deadly, mut fine] = [take(&pool, 1), take(&pool, 1)];
    deadly.charge_to(payer.clone(), 0);
    fine.charge_to(payer.clone(), 0);
    assert!(deadly.settle(Instant::now()).is_some() && deadly.settle(Instant::now()).is_none());
    deadly.end(LeaseEnding::HungUp);
    fine.end(LeaseEnding::Finished(Instant::now()));
    assert_eq!(payer.0.load(Ordering::Relaxed), 1000);
}

#[tokio::test(start_paused = true)]
async fn unused_slots_cost_nothing_and_keys_without_requests_are_forgotten() {
    let pool = fair_pool(99);
    let _member = pool.join("a", 1);
    for key in 0..1000 {
        let running = take(&pool, key);
        let waiting = ask(&pool, key + 1);
        drop(running);
        assert!(waiting.woken());
        drop(waiting);
    }
    advance(Duration::from_secs(10)).await;
    drop(take(&pool, 1));
    let state = pool.shared.lock();
    assert_eq!(state.queue.fair.as_ref().map(|fair| fair.len()), Some(0));
}

#[tokio::test(start_paused = true)]
async fn a_pool_becomes_fair_and_unfair_while_requests_wait() {
    let pool = fair_pool(99);
    let _member = pool.join("a", 1);
    let running = take(&pool, 1);
    let mut waiting = [ask(&pool, 1), ask(&pool, 2), ask(&pool, 1)];
    advance(ms(10)).await;
    pool.update(PoolSettings::default());
    drop(running);
    let running = waiting[0].lease();
    pool.update(PoolSettings { fair: true, ..PoolSettings::default() });
    drop(running);
    waiting[1].assert_served();
    waiting[2].assert_served();
    pool.close();
}

/// Four crawlers at twice what the pool can do, and people at 0.3 of it, each with a key of its own.
fn crowd(fair: bool, seed: u64) -> World {
    let settings = PoolSettings { queue_limit: 100, fair, ..PoolSettings::default() };
    let holding = Holding::Either(ms(3), 0.1, ms(29));
    let mut world = World::with(settings, 2, holding, Duration::from_secs(5), seed);
    world.pour_for(2.0, Duration::from_secs(120), Priority::Normal, |dice| dice.u64(1..=4));
    world.pour_for(0.3, Duration::from_secs(120), Priority::Normal, |dice| dice.u64(100..100_000));
    world
}

fn is_person(story: &&Story) -> bool {
    story.key >= 100
}

#[tokio::test(start_paused = true)]
async fn people_are_served_beside_crawlers_that_ask_for_everything() {
    for seed in 0..2 {
        let mut world = crowd(true, seed);
        world.run(None).await;
        let people: Vec<_> = world.stories.iter().filter(is_person).collect();
        let mut latencies: Vec<_> = people.iter().filter_map(|story| story.latency()).collect();
        latencies.sort();
        assert_eq!(latencies.len(), people.len(), "all people are served");
        let p99 = latencies[latencies.len() * 99 / 100];
        assert!(p99 <= ms(100), "{p99:?}");
        // The crawlers get what is left.
        assert!(world.goodput(Duration::ZERO, Duration::from_secs(120)) > 0.97);

        let mut unfair = crowd(false, seed);
        unfair.run(None).await;
        let mut good: Vec<_> = unfair
            .stories
            .iter()
            .filter(|story| is_person(story) && story.is_good())
            .filter_map(Story::latency)
            .collect();
        good.sort();
        let unfair_p99 = good[good.len() * 99 / 100];
        let share = |served: usize| 100 * served / people.len();
        println!(
            "fair: 100 % in time, p99 {p99:?}; order of arrival: {} %, p99 {unfair_p99:?}",
            share(good.len())
        );
        assert!(share(good.len()) < 75);
    }
}

/// Jain's index of fairness: 1 if all have the same.
fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = (shares.iter().sum::<f64>(), shares.iter().map(|share| share * share).sum::<f64>());
    sum * sum / (shares.len() as f64 * squares)
}

#[tokio::test(start_paused = true)]
async fn equal_keys_get_equal_worker_time_however_many_requests_they_send() {
    for policy in [Policy::Fifo, Policy::Adaptive] {
        let settings = PoolSettings { queue_limit: 200, fair: true, policy, ..PoolSettings::default() };
        let holding = Holding::Exponential(ms(20));
        let mut world = World::with(settings, 3, holding, Duration::from_secs(5), 11);
        // The eighth key sends eight times as many as the first, which alone asks for more than its share.
        world.pour_for(6.0, Duration::from_secs(120), Priority::Normal, |dice| {
            (1..=8).find(|key| dice.u64(0..36) < *key * 2).unwrap_or(8)
        });
        world.run(Some(Duration::from_secs(120))).await;
        let mut times = HashMap::<u64, f64>::new();
        for story in world.stories.iter().filter(|story| story.answered.is_some()) {
            let held = story.answered.unwrap() - story.granted.unwrap();
            *times.entry(story.key).or_default() += held.as_secs_f64();
        }
        let times: Vec<_> = times.into_values().collect();
        assert_eq!(times.len(), 8);
        assert!(jain(&times) >= 0.98, "{policy:?}: {times:?}");
    }
}

/// 40 requests always wait, each under the next of 2,000 keys. All cost 1 ms, and one in 97 costs 20 ms.
#[tokio::test(start_paused = true)]
async fn after_a_dear_request_a_key_among_thousands_does_not_wait_for_all_of_them() {
    let pool = fair_pool(99);
    let _member = pool.join("a", 1);
    let mut running = take(&pool, 0);
    let mut keys = (0..2_000).cycle();
    let mut ask_next = || ask(&pool, keys.next().unwrap());
    let mut waiting: Vec<_> = (0..40).map(|_| (0, ask_next())).collect();
    let mut longest = 0;
    for turn in 1..20_000 {
        advance(ms(if turn % 97 == 0 { 20 } else { 1 })).await;
        drop(running);
        let next = waiting.iter().position(|(_, request)| request.woken()).unwrap();
        let (since, mut request) = waiting.swap_remove(next);
        longest = longest.max(turn - since);
        running = request.lease();
        waiting.push((turn, ask_next()));
    }
    println!("the longest wait: {longest} turns; in order of arrival: 40");
    assert!(longest <= 80, "{longest}");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_comes_again_gets_its_turn_while_ever_new_keys_come() {
    let pool = fair_pool(99);
    let _member = pool.join("a", 1);
    let mut running = take(&pool, 0);
    let mut waiting: Vec<_> = (1..=40).map(|key| ask(&pool, key)).collect();
    let mut again: Option<(u64, Request<_>)> = None;
    let (mut longest, mut times) = (0, 0);
    for turn in 0..20_000 {
        advance(ms(1)).await;
        drop(running);
        if let Some((since, mut request)) = again.take_if(|(_, request)| request.woken()) {
            (longest, times) = (longest.max(turn - since), times + 1);
            running = request.lease();
        } else {
            let next = waiting.iter().position(Request::woken).unwrap();
            running = waiting.swap_remove(next).lease();
            waiting.push(ask(&pool, 1_000 + turn));
        }
        if again.is_none() && turn % 30 == 0 {
            again = Some((turn, ask(&pool, 1)));
        }
    }
    println!("the longest wait: {longest} turns, {times} times; in order of arrival: 40");
    assert!(times > 50 && longest <= 200, "{times}, {longest}");
}

/// Its debt goes only while it has no request, and no faster than the others are served.
#[tokio::test(start_paused = true)]
async fn a_key_that_comes_back_at_once_pays_its_debt() {
    let pool = fair_pool(99);
    let _member = pool.join("a", 1);
    let mut running = take(&pool, 1);
    let mut others: Vec<_> = (0..60).map(|turn| ask(&pool, 2 + turn % 2)).collect();
    advance(ms(100)).await;
    let dear = ask(&pool, 1);
    let mut served = 0;
    loop {
        drop(running);
        if dear.woken() {
            break;
        }
        let next = others.iter().position(Request::woken).unwrap();
        running = others.remove(next).lease();
        served += 1;
        advance(ms(10)).await;
    }
    // Both others have used 100 ms, too, and one request each is charged ahead.
    assert!((20..=22).contains(&served), "{served}");
}

/// The debt of a key does not go by the time in which the others wait, besides by what they cost.
#[tokio::test(start_paused = true)]
async fn a_queue_that_stands_and_drains_is_no_rest() {
    let pool = fair_pool(99);
    let _member = pool.join("a", 1);
    let mut running = take(&pool, 1);
    let mut others: Vec<_> = (0..40).map(|_| ask(&pool, 2)).collect();
    advance(ms(2000)).await;
    // No request comes while they are served, for a second.
    for other in &mut others {
        drop(running);
        running = other.lease();
        advance(ms(25)).await;
    }
    let (mut dear, mut cheap) = (vec![], vec![]);
    for _ in 0..8 {
        dear.push(ask(&pool, 1));
        cheap.push(ask(&pool, 2));
    }
    drop(running);
    for request in cheap.iter_mut().chain(&mut dear) {
        let lease = request.lease();
        advance(ms(25)).await;
        drop(lease);
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_was_quiet_has_saved_nothing_up() {
    let settings =
        PoolSettings { queue_limit: 500, fair: true, policy: Policy::Fifo, ..PoolSettings::default() };
    let mut world = World::with(settings, 2, Holding::Fixed(ms(10)), Duration::from_secs(60), 5);
    world.pour_for(1.5, Duration::from_secs(20), Priority::Normal, |_| 1);
    world.run(Some(Duration::from_secs(10))).await;
    world.pour_for(1.5, Duration::from_secs(10), Priority::Normal, |_| 2);
    let from = world.now();
    world.run(Some(Duration::from_secs(4))).await;
    let served = |key: u64| {
        world
            .stories
            .iter()
            .filter(|story| story.key == key && story.granted.is_some_and(|at| at >= from))
            .count()
    };
    let share = served(2) as f64 / (served(1) + served(2)) as f64;
    assert!((0.47..=0.53).contains(&share), "{share}");
}
