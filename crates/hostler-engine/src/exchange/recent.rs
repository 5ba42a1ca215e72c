//! The exchanges that have just ended, kept for an observer while there is one. Decides nothing, and without an observer costs one load.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::{Exchange, clock};

/// The most exchanges that a thread keeps until the observer takes them. Further ones are not kept.
const MOST_KEPT: usize = 256;

/// Samples of the exchanges that ended, in one list for each data-plane thread.
#[derive(Debug)]
pub struct RecentExchanges {
    /// One of so many exchanges is kept. 0: none, because there is no observer.
    every: AtomicU32,
    /// The same for exchanges that got no slot. There may be many more of them under overload.
    every_without_slot: AtomicU32,
    /// Each exchange that took at least this long is kept, in microseconds.
    slow: AtomicU64,
    threads: Box<[RecentOfThread]>,
}

/// Aligned, so that threads do not write to the same cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
struct RecentOfThread {
    seen: AtomicU32,
    seen_without_slot: AtomicU32,
    kept: Mutex<Vec<EndedExchange>>,
}

/// The facts of one exchange that has asked a pool.
#[derive(Debug, Clone)]
pub struct EndedExchange {
    pub pool: Arc<str>,
    /// The member that answered, or the last one that was tried.
    pub member: Option<Arc<str>>,
    pub route: Option<Arc<str>>,
    /// The status that was sent. 0: none.
    pub status: u16,
    pub refusal: Option<&'static str>,
    /// The answer is the route's fallback.
    pub fallback: bool,
    /// What broke the transfer off, as in the log.
    pub aborted: Option<&'static str>,
    /// When the last slot was granted. None if no slot was held.
    pub slot_since: Option<Instant>,
    /// As in the log.
    pub slot_hold: Option<Duration>,
    /// As in the log.
    pub queue_wait: Duration,
    /// As in the log.
    pub worker_time: Option<Duration>,
    /// As in the log, but of a tunnel or a stream the time until it was open.
    pub total: Duration,
    pub ended: Instant,
}

impl RecentExchanges {
    /// For this many data-plane threads, without an observer.
    pub fn new(threads: usize) -> Arc<Self> {
        let threads = (0..threads).map(|_| RecentOfThread::default()).collect();
        let (every, every_without_slot) = (AtomicU32::new(0), AtomicU32::new(1));
        Arc::new(Self { every, every_without_slot, slow: AtomicU64::new(u64::MAX), threads })
    }

    /// An observer takes one of `every` exchanges from now on, one of `every_without_slot` that got no slot, and each that takes at least as
    /// long as `slow`. `every` is 0: no exchange.
    pub fn observe(&self, every: u32, every_without_slot: u32, slow: Duration) {
        self.every_without_slot.store(every_without_slot.max(1), Ordering::Relaxed);
        self.slow.store(u64::try_from(slow.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.every.store(every, Ordering::Relaxed);
    }

    /// An exchange has ended on this thread.
    pub fn note(&self, thread: usize, exchange: &Exchange) {
        let every = self.every.load(Ordering::Relaxed);
        if every != 0 {
            self.sample(thread, every, exchange);
        }
    }

    /// The exchanges that were kept since the last call.
    pub fn take(&self) -> Vec<EndedExchange> {
        let mut taken = Vec::new();
        for thread in &self.threads {
            taken.append(&mut thread.kept.lock().unwrap_or_else(PoisonError::into_inner));
        }
        taken
    }

    #[cold]
    fn sample(&self, thread: usize, every: u32, exchange: &Exchange) {
        let (facts, timings, thread) = (&exchange.log_facts, &exchange.timings, &self.threads[thread]);
        let Some(pool) = &facts.pool else { return };
        let now = clock::now();
        let total = timings.total(facts, now);
        let (seen, every) = match timings.slot_since {
            Some(_) => (&thread.seen, every),
            None => (&thread.seen_without_slot, self.every_without_slot.load(Ordering::Relaxed)),
        };
        let number = seen.load(Ordering::Relaxed).wrapping_add(1);
        seen.store(number, Ordering::Relaxed);
        let is_slow = total.as_micros() >= u128::from(self.slow.load(Ordering::Relaxed));
        if !is_slow && !number.is_multiple_of(every) {
            return;
        }
        let mut kept = thread.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MOST_KEPT {
            kept.push(EndedExchange {
                pool: pool.clone(),
                member: facts.member.clone(),
                route: facts.route.clone(),
                status: facts.status,
                refusal: facts.refusal,
                fallback: facts.fallback,
                aborted: facts.aborted,
                slot_since: timings.slot_since,
                slot_hold: timings.slot_hold,
                queue_wait: timings.queue_wait,
                worker_time: timings.worker_time,
                total,
                ended: now,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::deadline::Sweep;
    use super::*;

    fn exchange(began: Instant) -> Exchange {
        let address = ([127, 0, 0, 1], 80).into();
        let mut exchange = Exchange::new(address, address, Sweep::new().deadline());
        exchange.log_facts.pool = Some("app".into());
        exchange.timings.started = began;
        exchange.timings.slot_since = Some(began);
        exchange
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_kept_without_an_observer() {
        let recent = RecentExchanges::new(1);
        let exchange = exchange(Instant::now());
        recent.note(0, &exchange);
        assert!(recent.take().is_empty());
        recent.observe(1, 1, Duration::MAX);
        recent.note(0, &exchange);
        assert_eq!(recent.take().len(), 1);
        recent.observe(0, 1, Duration::ZERO);
        recent.note(0, &exchange);
        assert!(recent.take().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn one_of_many_is_kept_and_each_slow_one() {
        let recent = RecentExchanges::new(2);
        recent.observe(10, 1, Duration::from_secs(1));
        let (fast, slow) = (exchange(Instant::now()), exchange(Instant::now()));
        (0..50).for_each(|_| recent.note(0, &fast));
        assert_eq!(recent.take().len(), 5);
        tokio::time::advance(Duration::from_secs(1)).await;
        (0..3).for_each(|_| recent.note(1, &slow));
        assert_eq!(recent.take().len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_tunnel_and_a_stream_took_the_time_until_they_were_open() {
        let (recent, opening, open) =
            (RecentExchanges::new(1), Duration::from_millis(5), Duration::from_secs(3600));
        recent.observe(1, 1, Duration::MAX);
        let mut all = [(); 3].map(|()| exchange(Instant::now()));
        all.iter_mut().for_each(|exchange| exchange.timings.slot_hold = Some(opening));
        all[0].log_facts.member_status = Some(101);
        all[1].log_facts.stream_end = Some("client");
        tokio::time::advance(open).await;
        all.iter().for_each(|exchange| recent.note(0, exchange));
        let totals: Vec<_> = recent.take().iter().map(|ended| ended.total).collect();
        assert_eq!(totals[..2], [opening; 2]);
        assert!(totals[2] >= open, "a request: {totals:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn requests_without_a_slot_do_not_displace_those_with_one() {
        let recent = RecentExchanges::new(1);
        recent.observe(1, 10, Duration::MAX);
        let (served, mut refused) = (exchange(Instant::now()), exchange(Instant::now()));
        refused.timings.slot_since = None;
        (0..50).for_each(|_| recent.note(0, &refused));
        (0..5).for_each(|_| recent.note(0, &served));
        let taken = recent.take();
        assert_eq!(taken.iter().filter(|ended| ended.slot_since.is_none()).count(), 5);
        assert_eq!(taken.len(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn an_observer_that_takes_nothing_makes_the_list_no_longer() {
        let recent = RecentExchanges::new(1);
        recent.observe(1, 1, Duration::ZERO);
        let exchange = exchange(Instant::now());
        (0..10 * MOST_KEPT).for_each(|_| recent.note(0, &exchange));
        assert_eq!(recent.take().len(), MOST_KEPT);
    }

    #[tokio::test(start_paused = true)]
    async fn an_exchange_that_asked_no_pool_is_not_kept() {
        let recent = RecentExchanges::new(1);
        recent.observe(1, 1, Duration::ZERO);
        let mut exchange = exchange(Instant::now());
        exchange.log_facts.pool = None;
        recent.note(0, &exchange);
        assert!(recent.take().is_empty());
    }
}
