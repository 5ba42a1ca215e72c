//! How many requests one worker gets at once: a fixed number, or as many as its event loop can begin. Knows neither the
//! worker's lifecycle nor its requests.

mod advice;
mod ceiling;
mod pool_threads;
mod visibility;
mod watch;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hostler_dispatch::{EventLoop, Gauge, Membership, Pool};

use super::concurrency::ConcurrencyTuner;
use super::main_thread::{MainThread, ServingThread};
use super::settings::Slots;
use super::vitals::Vitals;

pub(super) use watch::CapacityWatch;

/// The capacity of one worker process.
#[derive(Debug)]
pub(super) struct Capacity {
    tuner: Arc<ConcurrencyTuner>,
    /// The thread that serves the requests, if it is known.
    thread: Option<ServingThread>,
    /// The files of this thread in `/proc`, open. Or why they are not.
    main_thread: Result<Arc<MainThread>, String>,
    /// The kernel does not show that the main thread waits for events, so it cannot be observed.
    hidden: AtomicBool,
    /// Other processes serve the requests: this process is the primary of Node's `cluster`, and its event loop waits nearly always.
    serves_elsewhere: AtomicBool,
    /// With an observed event loop: the present limit of requests at once.
    ceiling: AtomicUsize,
    /// What the status advises about the configured number of slots. `None`: nothing.
    advice: Mutex<Option<String>>,
}

impl Capacity {
    /// The capacity of the worker whose requests this thread serves. `None`: the thread is not known.
    pub fn of(thread: Option<ServingThread>, tuner: Arc<ConcurrencyTuner>) -> Self {
        let main_thread = match thread.map(MainThread::of) {
            Some(Ok(thread)) => Ok(Arc::new(thread)),
            Some(Err(error)) => Err(format!("/proc does not show the event loop ({error})")),
            None => Err("it is not known which process serves the requests".to_owned()),
        };
        let (hidden, serves_elsewhere) = (AtomicBool::new(false), AtomicBool::new(false));
        let (ceiling, advice) = (AtomicUsize::new(usize::MAX), Mutex::default());
        Self { tuner, thread, main_thread, hidden, serves_elsewhere, ceiling, advice }
    }

    /// Whether this capacity was made for this thread.
    pub fn is_of(&self, thread: Option<ServingThread>) -> bool {
        self.thread == thread
    }

    /// Adds the worker to the pool with this capacity.
    pub fn join<E: Send + Sync + 'static>(&self, pool: &Pool<E>, endpoint: E, slots: Slots) -> Membership<E> {
        let membership = match self.observed(slots) {
            Some((most, event_loop)) => pool.join_observed(endpoint, most, event_loop),
            None => pool.join(endpoint, self.slots(slots)),
        };
        if let Ok(main_thread) = self.main_thread.clone() {
            membership.measure(main_thread);
        }
        membership
    }

    /// Notes that other processes serve the requests. So the event loop of this process must not decide how many there may be at once.
    pub fn serve_elsewhere(&self) {
        self.serves_elsewhere.store(true, Ordering::Relaxed);
    }

    /// Gives the member the capacity of these settings, after they have changed or after more is known.
    pub fn apply<E>(&self, gauge: &Gauge<E>, slots: Slots) {
        match self.observed(slots) {
            Some((most, event_loop)) => gauge.observe(most, event_loop),
            None => gauge.set_slots(self.slots(slots)),
        }
    }

    /// The main thread, while it can be observed.
    pub fn main_thread(&self) -> Option<&MainThread> {
        self.known_main_thread().filter(|_| !self.hidden.load(Ordering::Relaxed))
    }

    /// The main thread, whether it can be observed or not.
    fn known_main_thread(&self) -> Option<&MainThread> {
        self.main_thread.as_deref().ok()
    }

    /// Notes whether the event loop of a worker without the preload can be observed. Such a worker cannot be asked how busy it is.
    pub fn note_measurable(&self, is_measurable: bool) {
        if is_measurable {
            self.tuner.sees();
        } else {
            self.tuner.is_blind("with bind = \"port\" its event loop cannot be measured");
        }
    }

    /// Sets whether the kernel hides that the main thread waits. Returns whether that has changed.
    fn set_hidden(&self, hidden: bool) -> bool {
        self.hidden.swap(hidden, Ordering::Relaxed) != hidden
    }

    /// Why the main thread cannot be observed, if so.
    fn why_not_observed(&self) -> Option<&str> {
        match &self.main_thread {
            Err(why) => Some(why),
            Ok(_) if self.hidden.load(Ordering::Relaxed) => {
                Some("the kernel does not show that its main thread waits for events")
            }
            Ok(_) => None,
        }
    }

    /// Sets the limit of requests at once for an observed event loop. Returns whether it has changed.
    fn set_ceiling(&self, ceiling: usize) -> bool {
        self.ceiling.swap(ceiling, Ordering::Relaxed) != ceiling
    }

    /// Sets what the status advises about the configured number of slots. Returns whether there was no advice before.
    fn set_advice(&self, sentence: Option<&str>) -> bool {
        let mut advice = self.advice.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *advice, sentence.map(str::to_owned)).is_none()
    }

    /// Why the worker gets this many requests at once, as text for the status.
    pub fn reason(&self, slots: Slots, vitals: &Vitals) -> Option<String> {
        let busy =
            || vitals.utilisation().map_or("idle".to_owned(), |share| format!("{:.0} % busy", share * 100.0));
        match (slots, self.why_not_observed()) {
            (Slots::Fixed(_), _) => self.advice.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            (Slots::Auto { .. }, why) if why.is_none() || self.serves_elsewhere.load(Ordering::Relaxed) => {
                let most = self.slots(slots);
                Some(match self.tuner.blind() {
                    Some(why) => format!("{why}: {most} requests at most"),
                    None => format!("by the event loop ({}), {most} at most", busy()),
                })
            }
            (Slots::Auto { most }, Some(why)) if self.tuner.has_reports() => {
                Some(format!("{}; {why}", self.tuner.reason(most)))
            }
            (Slots::Auto { most }, _) => Some(self.tuner.reason(most)),
        }
    }

    /// The number of slots of the worker, or the most requests that it gets at once.
    pub fn slots(&self, slots: Slots) -> usize {
        match slots {
            Slots::Fixed(slots) => slots,
            Slots::Auto { most } if self.serves_elsewhere.load(Ordering::Relaxed) => most,
            Slots::Auto { most } if self.main_thread().is_some() => {
                self.ceiling.load(Ordering::Relaxed).min(most)
            }
            Slots::Auto { most } => self.tuner.slots().min(most),
        }
    }

    fn observed(&self, slots: Slots) -> Option<(usize, Arc<dyn EventLoop>)> {
        self.main_thread().filter(|_| !self.serves_elsewhere.load(Ordering::Relaxed))?;
        let event_loop: Arc<dyn EventLoop> = self.main_thread.clone().ok()?;
        matches!(slots, Slots::Auto { .. }).then(|| (self.slots(slots), event_loop))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use hostler_dispatch::{Claim, PoolSettings};
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_process_that_runs_for_no_request_gets_all_of_them_only_if_others_serve_them() {
        let script = "setInterval(() => {}, 1e9)";
        let mut node = Command::new("node").args(["-e", script]).spawn().unwrap();
        for serves_elsewhere in [true, false] {
            let capacity = Capacity::of(Some(ServingThread::main_of(node.id())), Arc::default());
            if serves_elsewhere {
                capacity.serve_elsewhere();
            }
            let pool: Pool<()> = Pool::new("test", PoolSettings::default());
            let _member = capacity.join(&pool, (), Slots::Auto { most: 100 });
            let mut leases = Vec::new();
            // The first ones may be given while it still boots.
            while leases.len() < 100
                && let Ok(lease) = timeout(Duration::from_secs(1), pool.acquire(Claim::default())).await
            {
                let lease = lease.unwrap();
                lease.sent();
                leases.push(lease);
            }
            assert_eq!(leases.len() == 100, serves_elsewhere, "{}", leases.len());
        }
        node.kill().unwrap();
        node.wait().unwrap();
    }
}
