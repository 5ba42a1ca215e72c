//! How the CPU time of a member is divided among its requests.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::cost::Payer;
use crate::{Pool, PoolSettings};

const MS: Duration = Duration::from_millis(1);

/// A member whose clock a test sets. Times in microseconds.
#[derive(Default)]
struct TestClock {
    all: AtomicU64,
    /// What the threads beside the main thread have used.
    helpers: AtomicU64,
    delayed: AtomicU64,
    turns: AtomicU64,
    waits: AtomicU64,
    is_gone: AtomicU64,
}

impl CpuClock for TestClock {
    fn read(&self) -> Option<CpuReading> {
        let time = |value: &AtomicU64| Duration::from_micros(value.load(Ordering::SeqCst));
        let helpers = time(&self.helpers);
        let reading = CpuReading {
            all: time(&self.all) + helpers,
            main: time(&self.all),
            delayed: time(&self.delayed),
            turns: self.turns.load(Ordering::SeqCst),
        };
        (self.is_gone.load(Ordering::SeqCst) == 0).then_some(reading)
    }

    fn waits(&self) -> bool {
        self.waits.load(Ordering::SeqCst) == 1
    }
}

/// What a route has paid, in nanoseconds.
#[derive(Default)]
struct TestPayer {
    paid: AtomicU64,
    unowned: AtomicU64,
}

impl Payer for TestPayer {
    fn pay(&self, _: u64, cost: SlotCost) {
        self.paid.fetch_add(nanos(cost.cpu.unwrap_or_default()), Ordering::SeqCst);
    }

    fn pay_besides(&self, _: Duration) {}
}

impl IdlePayer for TestPayer {
    fn pay_unowned(&self, cpu: Duration) {
        self.unowned.fetch_add(nanos(cpu), Ordering::SeqCst);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap()
}

struct Member {
    clock: Arc<TestClock>,
    account: CpuAccount,
    idle: Arc<TestPayer>,
    began: Instant,
}

impl Member {
    fn new() -> Self {
        let (clock, began) = (Arc::new(TestClock::default()), Instant::now());
        let idle = Arc::new(TestPayer::default());
        let account = CpuAccount::new(clock.clone(), Some(idle.clone()), began).unwrap();
        Self { clock, account, idle, began }
    }

    fn at(&self, micros: u64) -> Instant {
        self.began + Duration::from_micros(micros)
    }

    /// The main thread has used this much, and has waited for events since.
    fn used(&self, micros: u64) {
        self.clock.all.fetch_add(micros, Ordering::SeqCst);
        self.clock.turns.fetch_add(2, Ordering::SeqCst);
    }

    fn begin(&self, micros: u64) -> usize {
        self.account.begin(self.at(micros))
    }

    /// Ends a request, pays, and returns the cost in microseconds.
    fn end(&self, key: usize, micros: u64, payer: &Arc<TestPayer>) -> u128 {
        let cpu = self.account.end(key, self.at(micros), &payment(payer));
        payer.pay(0, SlotCost { hold: Duration::ZERO, cpu: Some(cpu) });
        cpu.as_micros()
    }
}

fn payment(payer: &Arc<TestPayer>) -> Payment {
    Payment { payer: payer.clone(), mark: 0 }
}

fn micros(value: &AtomicU64) -> u64 {
    value.load(Ordering::SeqCst) / 1000
}

#[test]
fn a_request_that_is_alone_pays_what_the_clock_shows() {
    let (member, route) = (Member::new(), Arc::new(TestPayer::default()));
    let key = member.begin(10_000);
    member.used(3_000);
    member.clock.helpers.store(500, Ordering::SeqCst);
    assert_eq!(member.end(key, 60_000, &route), 3_500, "with the threads of the garbage collector");
    let next = member.begin(60_000);
    member.used(0);
    assert_eq!(member.end(next, 70_000, &route), 0, "it has only waited");
}

#[test]
fn a_reading_that_lags_behind_is_made_up_for_and_paid_once() {
    let (member, dear, cheap) =
        (Member::new(), Arc::new(TestPayer::default()), Arc::new(TestPayer::default()));
    let key = member.begin(10_000);
    member.clock.turns.store(1, Ordering::SeqCst);
    member.clock.delayed.store(200, Ordering::SeqCst);
    assert_eq!(
        member.end(key, 13_200, &dear),
        3_000,
        "it has run since 10.2 ms, and the clock shows nothing"
    );
    let next = member.begin(13_200);
    member.used(3_400);
    assert_eq!(member.end(next, 14_000, &cheap), 400);
    assert_eq!(micros(&dear.paid) + micros(&cheap.paid), 3_400);
}

/// It was put on a CPU once: it was running at the first reading, waited for 100 ms, and now writes its answer.
#[test]
fn a_main_thread_that_has_waited_in_the_middle_does_not_pay_for_the_wait() {
    let (member, route) = (Member::new(), Arc::new(TestPayer::default()));
    let key = member.begin(10_000);
    member.clock.all.store(300, Ordering::SeqCst);
    member.clock.turns.store(1, Ordering::SeqCst);
    assert_eq!(member.end(key, 112_000, &route), 300);
    let next = member.begin(140_000);
    member.used(100_000);
    assert_eq!(member.end(next, 240_000, &route), 100_000, "nothing was paid ahead");
}

#[test]
fn a_main_thread_that_waits_for_events_is_believed() {
    let (member, route) = (Member::new(), Arc::new(TestPayer::default()));
    let key = member.begin(10_000);
    member.clock.turns.store(1, Ordering::SeqCst);
    member.clock.all.store(100, Ordering::SeqCst);
    member.clock.waits.store(1, Ordering::SeqCst);
    assert_eq!(member.end(key, 20_000, &route), 100);
}

#[test]
fn several_requests_share_by_the_time_for_which_they_were_under_way() {
    let (member, long, short) =
        (Member::new(), Arc::new(TestPayer::default()), Arc::new(TestPayer::default()));
    let first = member.begin(10_000);
    let second = member.begin(16_000);
    member.used(6_000);
    // 10 ms of one and 4 ms of the other share 6 ms.
    assert_eq!(member.end(second, 20_000, &short), 1_714);
    member.used(4_000);
    assert_eq!(member.end(first, 30_000, &long), 4_285 + 4_000);
    let sum = long.paid.load(Ordering::SeqCst) + short.paid.load(Ordering::SeqCst);
    assert!(sum.abs_diff(10_000_000) < 10, "{sum}");
}

#[test]
fn work_after_an_answer_belongs_to_its_request_and_later_work_to_none() {
    let (member, route, other) =
        (Member::new(), Arc::new(TestPayer::default()), Arc::new(TestPayer::default()));
    let key = member.begin(0);
    member.used(2_000);
    member.end(key, 5_000, &route);
    member.used(300);
    let key = member.begin(10_000);
    assert_eq!((micros(&route.paid), micros(&other.paid)), (2_300, 0));
    member.used(0);
    member.end(key, 20_000, &other);
    // A timer of the app computes for 50 ms.
    member.used(50_000);
    member.begin(1_000_000);
    assert_eq!((micros(&other.paid), micros(&member.idle.unowned)), (1_000, 49_000));
}

#[test]
fn work_after_an_answer_is_paid_by_the_last_payer_with_its_mark() {
    #[derive(Default)]
    struct MarkList(Mutex<Vec<u64>>);
    impl Payer for MarkList {
        fn pay(&self, mark: u64, _: SlotCost) {
            self.0.lock().unwrap().push(mark);
        }

        fn pay_besides(&self, _: Duration) {}
    }
    let (member, one, other) = (Member::new(), Arc::new(MarkList::default()), Arc::new(MarkList::default()));
    let mut began = 0;
    for (payer, mark) in [(&one, 1), (&one, 1), (&one, 2), (&other, 2)] {
        began += 10_000;
        let key = member.begin(began);
        member.used(0);
        let payment = Payment { payer: payer.clone(), mark };
        member.account.end(key, member.at(began + 1_000), &payment);
        member.used(300);
    }
    member.begin(began + 10_000);
    assert_eq!(*one.0.lock().unwrap(), [1, 1, 2]);
    assert_eq!(*other.0.lock().unwrap(), [2]);
}

#[test]
fn a_member_that_is_gone_has_computed_until_its_end() {
    let (member, route) = (Member::new(), Arc::new(TestPayer::default()));
    let key = member.begin(10_000);
    member.clock.is_gone.store(1, Ordering::SeqCst);
    assert_eq!(member.end(key, 50_000, &route), 40_000);
}

#[test]
fn the_sum_of_many_short_requests_is_what_the_clock_shows() {
    let (member, all) = (Member::new(), Arc::new(TestPayer::default()));
    let mut random = 7_u64;
    let (mut now, mut used) = (1_000, 0);
    for _ in 0..20_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (cost, pause) = (20 + (random >> 33) % 400, (random >> 50) % 300);
        let key = member.begin(now);
        member.used(cost);
        used += cost;
        now += cost + 30;
        member.end(key, now, &all);
        now += pause;
    }
    let paid = micros(&all.paid) + micros(&member.idle.unowned);
    assert!(paid.abs_diff(used) < 1_000, "{paid} of {used}");
}

#[test]
fn short_requests_that_use_less_than_usual_pay_in_all_what_the_clock_shows() {
    let (member, all) = (Member::new(), Arc::new(TestPayer::default()));
    let (mut now, mut used) = (1_000, 0);
    // Before, requests computed all the time.
    for (count, cost, held) in [(100, 5_000, 5_000), (10_000, 100, 400)] {
        for _ in 0..count {
            let key = member.begin(now);
            member.used(cost);
            used += cost;
            now += held;
            member.end(key, now, &all);
            now += 10_000;
        }
    }
    let paid = micros(&all.paid) + micros(&member.idle.unowned);
    assert!(paid.abs_diff(used) < 1_000, "{paid} of {used}");
}

/// The thread of Hostler gets a CPU late on a busy machine, so the request is under way for 2 ms, and the worker is still writing at its end.
#[test]
fn requests_that_reach_their_member_late_pay_in_all_what_the_clock_shows() {
    for turns in [0, 1] {
        let (member, all) = (Member::new(), Arc::new(TestPayer::default()));
        for number in 1..=10_000 {
            let key = member.begin(number * 10_000);
            member.clock.all.fetch_add(200, Ordering::SeqCst);
            member.clock.turns.fetch_add(turns, Ordering::SeqCst);
            member.end(key, number * 10_000 + 2_000, &all);
        }
        let (paid, used) = (micros(&all.paid) + micros(&member.idle.unowned), 2_000_000);
        assert!(paid.abs_diff(used) <= 10_000, "{paid} of {used}");
    }
}

#[test]
fn the_clock_is_not_read_for_each_of_many_short_requests() {
    struct Counted(AtomicU64);
    impl CpuClock for Counted {
        fn read(&self) -> Option<CpuReading> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Some(CpuReading::default())
        }

        fn waits(&self) -> bool {
            true
        }
    }
    let (clock, began) = (Arc::new(Counted(AtomicU64::new(0))), Instant::now());
    let account = CpuAccount::new(clock.clone(), None, began).unwrap();
    let route = Arc::new(TestPayer::default());
    for request in 0..1_000 {
        let begin = began + Duration::from_micros(50) * request;
        let key = account.begin(begin);
        account.end(key, begin + Duration::from_micros(40), &payment(&route));
    }
    let readings = clock.0.load(Ordering::SeqCst);
    assert!((50..=110).contains(&readings), "{readings} in {:?}", MS * 50);
}

#[test]
fn what_a_member_does_without_a_request_is_paid_for_when_it_is_asked_for() {
    let (member, route) = (Member::new(), Arc::new(TestPayer::default()));
    let settle = |micros| member.account.settle_idle(member.at(micros));
    let paid = || (micros(&route.paid), micros(&member.idle.unowned));
    member.used(7_000);
    settle(500_000);
    assert_eq!(paid(), (0, 7_000), "it has never had a request");
    let key = member.begin(600_000);
    member.used(2_000);
    settle(605_000);
    assert_eq!(paid(), (0, 7_000), "a request is under way");
    member.end(key, 610_000, &route);
    member.used(300);
    settle(620_000);
    member.used(400);
    settle(625_000);
    assert_eq!(paid(), (2_700, 7_000), "the work after the answer");
    member.used(50_000);
    settle(1_100_000);
    assert_eq!(paid(), (3_700, 56_000));
    member.used(5_000);
    settle(1_600_000);
    assert_eq!(paid(), (3_700, 61_000));
}

#[tokio::test(start_paused = true)]
async fn a_member_without_requests_is_settled_by_its_gauge_by_its_pool_and_when_it_leaves() {
    let (clock, idle) = (Arc::new(TestClock::default()), Arc::new(TestPayer::default()));
    let pool = Pool::new("test", PoolSettings::default());
    pool.charge_idle_to(idle.clone());
    let membership = pool.join("a", 1);
    membership.measure(clock.clone());
    let gauge = membership.gauge();
    let used = async |micros| {
        clock.all.fetch_add(micros, Ordering::SeqCst);
        tokio::time::advance(MS).await;
    };
    used(3_000).await;
    gauge.settle_idle();
    assert_eq!(micros(&idle.unowned), 3_000);
    used(2_000).await;
    pool.settle_idle();
    assert_eq!(micros(&idle.unowned), 5_000);
    used(1_000).await;
    drop(membership);
    assert_eq!(micros(&idle.unowned), 6_000);
    gauge.settle_idle();
}
