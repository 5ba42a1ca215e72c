//! Measures a worker's process twice a second: sets the limit of requests at once, and notices a number of slots that is
//! wrong. Decides nothing about single requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hostler_dispatch::{Gauge, Hold, Load};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::advice::{Advice, AdviceRound};
use super::ceiling::{Ceiling, CeilingRound};
use super::pool_threads::PoolThreads;
use super::visibility::ThreadVisibility;
use super::{Capacity, Slots};
use crate::concurrency::BEAT;
use crate::log::WorkerLog;
use crate::main_thread::MainThread;
use crate::process_files::resident_bytes;
use crate::settings::WorkerSettings;
use crate::vitals::Vitals;

/// How often the threads are looked at in one round.
const LOOKS: u32 = 10;
/// libuv's number of threads, unless `UV_THREADPOOL_SIZE` sets another. For threads without a name.
const POOL_THREADS: usize = 4;

/// Watches one worker.
pub(crate) struct CapacityWatch<E> {
    pub gauge: Gauge<E>,
    pub capacity: Arc<Capacity>,
    pub vitals: Arc<Vitals>,
    /// The newest settings.
    pub settings: watch::Receiver<Arc<WorkerSettings>>,
    pub pid: u32,
    /// The preload measures the event loop too, and more precisely.
    pub has_preload: bool,
    pub log: WorkerLog,
    /// A worker of this pool has logged the advice already.
    pub advised: Arc<AtomicBool>,
}

/// The figures at one moment. All only grow.
struct ProcessSample {
    at: Instant,
    load: Load,
    /// How long the main thread has been busy.
    busy: Duration,
}

/// The difference of two samples.
struct ProcessRound {
    span: Duration,
    /// The share of time that the main thread ran or was ready to run.
    utilisation: f64,
    /// How many requests the worker had, on average.
    leases: f64,
    /// How many requests it got.
    granted: u64,
    /// A request had to wait for a slot.
    short: bool,
}

/// What the thread pool of the process did in one round.
#[derive(Clone, Copy, Default)]
struct ThreadsRound {
    /// How many threads had work, on average.
    busy: f64,
    /// How many there are, if that is known.
    number: Option<usize>,
}

impl<E: Send + Sync + 'static> CapacityWatch<E> {
    /// Runs until the member has left and its last lease has ended. Without a main thread there is nothing to watch.
    pub async fn run(self) {
        let Some(main_thread) = self.capacity.known_main_thread() else { return };
        let (mut ceiling, mut advice) = (Ceiling::default(), Advice::default());
        let mut visibility = ThreadVisibility::default();
        let mut last: Option<ProcessSample> = None;
        let mut hold: Option<Hold<E>> = None;
        loop {
            let threads = self.beat(main_thread, last.is_some(), &mut visibility).await;
            let Some(load) = self.gauge.load() else { return };
            hold = self.hold_if_stopped(main_thread, &load, hold);
            self.gauge.settle_idle();
            if self.capacity.set_hidden(visibility.is_hidden()) {
                if !self.has_preload {
                    self.capacity.note_measurable(!visibility.is_hidden());
                }
                self.capacity.apply(&self.gauge, self.settings.borrow().slots);
            }
            if visibility.is_hidden() {
                last = None;
                continue;
            }
            if !load.is_in_use() && last.as_ref().is_some_and(|last| last.load.granted == load.granted) {
                self.rest(&mut last, &mut ceiling);
                self.tell(&advice);
                continue;
            }
            let sample = self.sample(main_thread, load);
            if let Some(round) = last.replace(sample).zip(last.as_ref()).map(|(last, new)| new.since(&last)) {
                self.take(&round, threads, &mut ceiling, &mut advice);
            }
        }
    }

    /// Keeps requests from a worker that is stopped (SIGSTOP, a debugger) and has none: they would get no response. While a request waits, the
    /// worker is not held: it gets the request, counts as hung if it stays stopped, and is replaced. `before`: the hold so far.
    fn hold_if_stopped(
        &self,
        main_thread: &MainThread,
        load: &Load,
        before: Option<Hold<E>>,
    ) -> Option<Hold<E>> {
        let is_held = load.waiting == 0 && main_thread.is_stopped();
        before.filter(|_| is_held).or_else(|| if is_held { self.gauge.hold() } else { None })
    }

    /// Waits for the next round. Looks at the main thread until it has been seen to wait. Returns what the thread pool did meanwhile.
    async fn beat(
        &self,
        main_thread: &MainThread,
        has_work: bool,
        visibility: &mut ThreadVisibility,
    ) -> ThreadsRound {
        if !has_work && visibility.is_seen() {
            sleep(BEAT).await;
            return ThreadsRound::default();
        }
        let threads = if has_work { PoolThreads::of(self.pid) } else { PoolThreads::default() };
        let mut busy = 0;
        for _ in 0..LOOKS {
            sleep(BEAT / LOOKS).await;
            busy += threads.busy();
            if !visibility.is_seen() {
                visibility.look(main_thread.shows_wait());
            }
        }
        ThreadsRound { busy: busy as f64 / f64::from(LOOKS), number: threads.number() }
    }

    fn rest(&self, last: &mut Option<ProcessSample>, ceiling: &mut Ceiling) {
        *last = None;
        let settings = Arc::clone(&self.settings.borrow());
        ceiling.rest(|| self.memory(&settings));
        self.limit(ceiling, &settings);
        if !self.has_preload {
            self.vitals.rests();
        }
    }

    fn sample(&self, main_thread: &MainThread, load: Load) -> ProcessSample {
        ProcessSample { at: Instant::now(), load, busy: main_thread.busy_time().unwrap_or_default() }
    }

    fn take(&self, round: &ProcessRound, threads: ThreadsRound, ceiling: &mut Ceiling, advice: &mut Advice) {
        if !self.has_preload {
            self.vitals.works(round.utilisation.min(1.0));
        }
        let settings = Arc::clone(&self.settings.borrow());
        let of_env = || settings.env.get("UV_THREADPOOL_SIZE").and_then(|size| size.parse().ok());
        let pool_threads = threads.number.or_else(of_env).unwrap_or(POOL_THREADS).max(1);
        self.vitals.threads_work((threads.busy / pool_threads as f64).min(1.0));
        match settings.slots {
            Slots::Auto { most } => {
                ceiling.observe(&CeilingRound {
                    busy_threads: threads.busy,
                    granted: round.granted,
                    pool_threads,
                    memory: self.memory(&settings),
                    leases: round.leases,
                    passed: self.gauge.take_most_passed(),
                    most,
                });
                self.limit(ceiling, &settings);
            }
            Slots::Fixed(slots) => {
                let hold = round.span.mul_f64(round.leases / (round.granted as f64).max(1.0));
                let advice_round = AdviceRound {
                    slots,
                    utilisation: round.utilisation,
                    leases: round.leases,
                    hold,
                    short: round.short,
                    fair: self.gauge.pool_is_fair(),
                };
                advice.observe(&advice_round, Instant::now());
                self.tell(advice);
            }
        }
    }

    fn limit(&self, ceiling: &Ceiling, settings: &WorkerSettings) {
        if self.capacity.set_ceiling(ceiling.requests()) {
            self.capacity.apply(&self.gauge, settings.slots);
        }
    }

    /// The share of `max_memory` that the process uses, if there is such a limit.
    fn memory(&self, settings: &WorkerSettings) -> Option<f64> {
        let limit = settings.recycling.max_memory?;
        Some(resident_bytes(self.pid)? as f64 / limit as f64)
    }

    /// Shows the advice of this moment in the status. Logs the first one of all workers of a pool.
    fn tell(&self, advice: &Advice) {
        let sentence = advice.sentence(Instant::now());
        let is_new = self.capacity.set_advice(sentence);
        if let Some(sentence) = sentence.filter(|_| is_new && !self.advised.swap(true, Ordering::Relaxed)) {
            self.log.warn(sentence.to_owned());
        }
    }
}

impl ProcessSample {
    fn since(&self, last: &Self) -> ProcessRound {
        let span = self.at - last.at;
        let share = |new: Duration, old: Duration| {
            new.saturating_sub(old).as_secs_f64() / span.as_secs_f64().max(f64::EPSILON)
        };
        ProcessRound {
            span,
            utilisation: share(self.busy, last.busy),
            leases: share(self.load.lease_time, last.load.lease_time),
            granted: self.load.granted - last.load.granted,
            short: self.load.is_short_since(&last.load),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use hostler_dispatch::{Claim, Pool, PoolSettings};
    use hostler_testkit::eventually;
    use rustix::process::{Pid, Signal, kill_process};

    use super::*;
    use crate::main_thread::ServingThread;

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn a_stopped_worker_gets_no_request_before_one_waits() {
        let mut process = Command::new("sleep").arg("1000").spawn().unwrap();
        let number = Pid::from_child(&process);
        let pool = Pool::new("test", PoolSettings::default());
        let membership = pool.join((), 2);
        let (_changes, settings) = watch::channel(Arc::new(WorkerSettings::default()));
        let capacity_watch = CapacityWatch {
            gauge: membership.gauge(),
            capacity: Arc::new(Capacity::of(Some(ServingThread::main_of(process.id())), Arc::default())),
            vitals: Arc::default(),
            settings,
            pid: process.id(),
            has_preload: false,
            log: WorkerLog { sink: Arc::new(|_| ()), pool: "test".into(), worker: 1 },
            advised: Arc::default(),
        };
        tokio::spawn(capacity_watch.run());
        let gauge = membership.gauge();
        let is_held = || gauge.hold().is_none();
        assert!(!is_held());
        kill_process(number, Signal::STOP).unwrap();
        eventually("it is held", async || is_held().then_some(())).await;
        drop(pool.acquire(Claim::default()).await.expect("the request that waits"));
        eventually("it is held again", async || is_held().then_some(())).await;
        kill_process(number, Signal::CONT).unwrap();
        eventually("it is free", async || (!is_held()).then_some(())).await;
        process.kill().unwrap();
        process.wait().unwrap();
    }
}
