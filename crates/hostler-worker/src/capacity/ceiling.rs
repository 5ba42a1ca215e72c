//! The most requests that a worker with an observed event loop gets at once. Pure: knows no process.
//!
//! The event loop alone does not show two things. Work in libuv's thread pool (files, cryptography, compression, name
//! look-ups) queues there while the loop waits. And each request that waits takes memory.

/// A thread pool whose threads have work for this share of the time is full ...
const FULL: f64 = 0.9;
/// ... and below this share it has room.
const ROOM: f64 = 0.7;
/// A full thread pool lowers the limit to no less than this many requests for each thread: one has the thread, the others wait for it.
const LEAST_PER_THREAD: usize = 3;
/// Work waits for the thread pool in order of arrival. So a request that needs it ends after those that came earlier, but for those that have
/// the other threads. One that has passed this many for each thread has not waited for the pool. A lower limit would make such requests
/// wait for a slot behind those that need the pool ...
const PASSED_PER_THREAD: usize = 2;
/// ... so after one was seen, the thread pool lowers no limit for this many rounds of half a second.
const PASSED_ROUNDS: u32 = 120;
/// From this share of `max_memory` on a worker gets fewer requests ...
const MEMORY_FULL: f64 = 0.9;
/// ... but for at most this many rounds of half a second. If the memory is still full then, it is not that of the requests: the app has
/// taken it for other things, or V8 keeps it. Fewer requests would only make the worker slow until it is over the limit and replaced ...
const MEMORY_ROUNDS: u32 = 20;
/// ... and the rounds count from zero again once the worker uses less than this share.
const MEMORY_ROOM: f64 = 0.8;
/// The new limit when the thread pool or the memory is full: this share of the requests that the worker has.
const SHRINK: f64 = 0.8;
/// The factor by which the limit grows when the thread pool or the memory has room.
const GROW: usize = 2;

/// The limit.
#[derive(Debug)]
pub(super) struct Ceiling {
    /// What the thread pool allows.
    by_threads: usize,
    /// The rounds that are left of [`PASSED_ROUNDS`].
    passed_rounds: u32,
    /// What the memory allows.
    by_memory: usize,
    /// How many rounds had full memory since it was last below [`MEMORY_ROOM`].
    full_rounds: u32,
}

/// What a worker did in one round.
#[derive(Clone, Copy, Debug)]
pub(super) struct CeilingRound {
    /// How many threads of the thread pool had work, on average.
    pub busy_threads: f64,
    /// How many requests the worker got.
    pub granted: u64,
    /// The threads of the thread pool.
    pub pool_threads: usize,
    /// The share of `max_memory` that the process uses, if there is such a limit.
    pub memory: Option<f64>,
    /// How many requests the worker had, on average.
    pub leases: f64,
    /// The most requests that one request has passed.
    pub passed: usize,
    /// The configured limit.
    pub most: usize,
}

impl Default for Ceiling {
    fn default() -> Self {
        Self { by_threads: usize::MAX, passed_rounds: 0, by_memory: usize::MAX, full_rounds: 0 }
    }
}

impl Ceiling {
    pub fn requests(&self) -> usize {
        self.by_threads.min(self.by_memory)
    }

    /// Takes in one round.
    pub fn observe(&mut self, round: &CeilingRound) {
        self.by_memory = if self.memory_is_full(round.memory) {
            self.by_memory.min(fewer(round).max(1))
        } else {
            grown(self.by_memory, round)
        };
        let threads = round.pool_threads.max(1);
        let (demand, least) = (round.busy_threads / threads as f64, threads * LEAST_PER_THREAD);
        let has_passed = round.passed >= threads * PASSED_PER_THREAD;
        self.passed_rounds = if has_passed { PASSED_ROUNDS } else { self.passed_rounds.saturating_sub(1) };
        if self.passed_rounds > 0 {
            self.by_threads = round.most;
        } else if demand >= FULL && round.leases > least as f64 && round.granted > 0 {
            // If the worker got no request, fewer would not empty the pool sooner.
            self.by_threads = self.by_threads.min(fewer(round).max(least));
        } else if demand < ROOM {
            self.by_threads = grown(self.by_threads, round);
        }
    }

    /// The worker has no requests. What the last ones did says nothing about the next ones. The memory is read only if it limits them.
    pub fn rest(&mut self, memory: impl FnOnce() -> Option<f64>) {
        self.by_threads = usize::MAX;
        if self.by_memory < usize::MAX && !self.memory_is_full(memory()) {
            self.by_memory = usize::MAX;
        }
    }

    /// Whether there is little memory left, and fewer requests may help.
    fn memory_is_full(&mut self, share: Option<f64>) -> bool {
        let share = share.unwrap_or(0.0);
        if share < MEMORY_ROOM {
            self.full_rounds = 0;
        }
        let is_full = share >= MEMORY_FULL;
        self.full_rounds = self.full_rounds.saturating_add(u32::from(is_full));
        is_full && self.full_rounds <= MEMORY_ROUNDS
    }
}

/// A limit below the requests that the worker has.
fn fewer(round: &CeilingRound) -> usize {
    (round.leases * SHRINK) as usize
}

fn grown(limit: usize, round: &CeilingRound) -> usize {
    limit.min(round.most).saturating_mul(GROW).min(round.most)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use hostler_dispatch::{Claim, Pool, PoolSettings};
    use tokio::sync::Semaphore;
    use tokio::task::JoinSet;
    use tokio::time::{Instant, interval, sleep_until};

    use super::*;

    fn round(busy_threads: f64, leases: f64) -> CeilingRound {
        CeilingRound {
            busy_threads,
            granted: 1,
            pool_threads: 4,
            memory: None,
            leases,
            passed: 0,
            most: 1_000,
        }
    }

    fn after(ceiling: &mut Ceiling, rounds: impl IntoIterator<Item = CeilingRound>) -> usize {
        rounds.into_iter().for_each(|round| ceiling.observe(&round));
        ceiling.requests()
    }

    #[test]
    fn an_app_that_waits_keeps_the_configured_limit() {
        assert_eq!(after(&mut Ceiling::default(), [round(0.1, 600.0)]), 1_000);
    }

    #[test]
    fn a_full_thread_pool_gets_a_few_requests_for_each_thread() {
        let mut ceiling = Ceiling::default();
        assert_eq!(after(&mut ceiling, [round(3.9, 500.0)]), 400);
        let mut leases = 400.0;
        for _ in 0..40 {
            leases = after(&mut ceiling, [round(3.9, leases)]) as f64;
        }
        assert_eq!(ceiling.requests(), 12);
        assert_eq!(after(&mut ceiling, [round(3.9, 12.0)]), 12, "it stays there");
        assert_eq!(after(&mut ceiling, [round(1.0, 12.0)]), 24, "and grows when the pool has room");
        assert_eq!(after(&mut ceiling, [round(1.0, 4.0); 10]), 1_000);
    }

    #[test]
    fn a_pool_that_is_full_with_few_requests_lowers_no_limit() {
        assert_eq!(after(&mut Ceiling::default(), [round(3.9, 12.0); 9]), 1_000);
    }

    #[test]
    fn an_app_with_requests_that_do_not_wait_for_the_thread_pool_keeps_its_limit_for_a_minute() {
        let mut ceiling = Ceiling::default();
        assert_eq!(after(&mut ceiling, [round(3.9, 100.0)]), 80);
        let passed = CeilingRound { passed: 8, ..round(3.9, 80.0) };
        assert_eq!(after(&mut ceiling, [passed]), 1_000);
        assert_eq!(after(&mut ceiling, [round(3.9, 100.0); PASSED_ROUNDS as usize - 1]), 1_000);
        assert_eq!(after(&mut ceiling, [round(3.9, 100.0)]), 80);
    }

    /// A request waits for a slot, and holds it. A login first waits for a thread of the pool, and has it for 250 ms. Another request waits for
    /// nothing. Returns how long it has waited for its slot.
    async fn request(pool: Pool<()>, threads: Option<Arc<Semaphore>>) -> Duration {
        let came = Instant::now();
        let _lease = pool.acquire(Claim::default()).await.unwrap();
        let waited = came.elapsed();
        if let Some(threads) = threads {
            let _thread = threads.acquire().await.unwrap();
            sleep_until(Instant::now() + Duration::from_millis(250)).await;
        } else {
            sleep_until(Instant::now() + Duration::from_millis(1)).await;
        }
        waited
    }

    /// In each of these rounds of half a second, so many logins and others come ten times. Returns the limit at the end, and the longest wait
    /// of the others.
    async fn under_load(rounds: usize, logins: usize, others: usize) -> (usize, Duration) {
        let pool = Pool::new("test", PoolSettings { queue_limit: 10_000, ..PoolSettings::default() });
        let membership = pool.join((), 1_000);
        let (gauge, threads) = (membership.gauge(), Arc::new(Semaphore::new(4)));
        let (mut slow, mut quick) = (JoinSet::new(), JoinSet::new());
        let (mut ceiling, mut last) = (Ceiling::default(), gauge.load().unwrap());
        let mut looks = interval(Duration::from_millis(50));
        looks.tick().await;
        for _ in 0..rounds {
            let mut busy = 0;
            for _ in 0..10 {
                for _ in 0..logins {
                    slow.spawn(request(pool.clone(), Some(Arc::clone(&threads))));
                }
                for _ in 0..others {
                    quick.spawn(request(pool.clone(), None));
                }
                looks.tick().await;
                busy += 4 - threads.available_permits();
            }
            let load = gauge.load().unwrap();
            let lease_time = load.lease_time - last.lease_time;
            ceiling.observe(&CeilingRound {
                granted: load.granted - last.granted,
                passed: gauge.take_most_passed(),
                ..round(busy as f64 / 10.0, lease_time.as_secs_f64() * 2.0)
            });
            gauge.set_slots(ceiling.requests());
            last = load;
        }
        let waits = std::iter::from_fn(|| quick.try_join_next());
        (ceiling.requests(), waits.map(Result::unwrap).max().unwrap_or_default())
    }

    #[tokio::test(start_paused = true)]
    async fn quick_requests_do_not_wait_for_slots_behind_more_logins_than_the_threads_can_do() {
        assert_eq!(
            under_load(20, 2, 5).await,
            (1_000, Duration::ZERO),
            "40 logins in a second, 16 can be done"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_app_of_which_all_requests_need_the_thread_pool_gets_a_few_for_each_thread() {
        assert_eq!(under_load(60, 2, 0).await.0, 12);
    }

    #[test]
    fn a_worker_that_got_no_request_keeps_its_limit() {
        let mut ceiling = Ceiling::default();
        assert_eq!(after(&mut ceiling, [round(3.9, 100.0)]), 80);
        let silent = CeilingRound { granted: 0, ..round(3.9, 90.0) };
        assert_eq!(after(&mut ceiling, [silent; 5]), 80);
        assert_eq!(after(&mut ceiling, [round(0.0, 90.0)]), 160, "the pool is empty");
    }

    #[test]
    fn a_worker_that_had_no_requests_for_a_while_begins_anew() {
        let mut ceiling = Ceiling::default();
        assert_eq!(after(&mut ceiling, [round(3.9, 100.0)]), 80);
        ceiling.rest(|| None);
        assert_eq!(ceiling.requests(), usize::MAX);
        let full = CeilingRound { memory: Some(0.95), ..round(0.0, 100.0) };
        assert_eq!(after(&mut ceiling, [full]), 80);
        ceiling.rest(|| Some(0.95));
        assert_eq!(ceiling.requests(), 80, "the memory is still full");
        ceiling.rest(|| Some(0.5));
        assert_eq!(ceiling.requests(), usize::MAX);
    }

    #[test]
    fn a_worker_near_its_limit_of_memory_gets_fewer_requests() {
        let full = |leases| CeilingRound { memory: Some(0.95), ..round(0.0, leases) };
        let mut ceiling = Ceiling::default();
        assert_eq!(after(&mut ceiling, [full(100.0)]), 80);
        assert_eq!(after(&mut ceiling, [full(0.5)]), 1);
    }

    #[test]
    fn a_worker_that_stays_near_its_limit_of_memory_gets_its_requests_back() {
        let with = |share| CeilingRound { memory: Some(share), ..round(0.0, 1.0) };
        let mut ceiling = Ceiling::default();
        let rounds = MEMORY_ROUNDS as usize;
        assert_eq!(after(&mut ceiling, [with(0.95)].repeat(rounds)), 1);
        assert_eq!(after(&mut ceiling, [with(0.95)].repeat(10)), 1_000, "fewer requests have not helped");
        assert_eq!(after(&mut ceiling, [with(0.85), with(0.95)]), 1_000, "it goes up and down");
        assert_eq!(after(&mut ceiling, [with(0.7), with(0.95)]), 1, "the memory was free again");
    }
}
