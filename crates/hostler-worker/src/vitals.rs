//! The current figures of one worker's event loop and garbage collection. Shared by the tasks that measure and the code
//! that shows them. Measures nothing itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::message::Report;
use super::node_figures::{Delays, NodeFigures};

/// The bits of a NaN, which stand for a share that is not known.
const UNKNOWN: u64 = u64::MAX;

/// The figures of one worker.
#[derive(Debug)]
pub(super) struct Vitals {
    /// The share of time that the event loop worked, as bits.
    utilisation: AtomicU64,
    /// The share of time that the threads of libuv's pool had work, as bits.
    threads: AtomicU64,
    /// How many times garbage was collected on request.
    collections: AtomicU64,
    /// The total time of these collections in microseconds.
    collecting: AtomicU64,
    /// What the process tells. Written twice a second.
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    delays: Delays,
    last: Option<(Instant, Report)>,
}

impl Default for Vitals {
    fn default() -> Self {
        Self {
            utilisation: AtomicU64::new(UNKNOWN),
            threads: AtomicU64::new(0),
            collections: AtomicU64::new(0),
            collecting: AtomicU64::new(0),
            told: Mutex::default(),
        }
    }
}

impl Vitals {
    pub fn utilisation(&self) -> Option<f64> {
        let bits = self.utilisation.load(Ordering::Relaxed);
        (bits != UNKNOWN).then(|| f64::from_bits(bits))
    }

    pub fn works(&self, utilisation: f64) {
        self.utilisation.store(utilisation.to_bits(), Ordering::Relaxed);
    }

    pub fn threads_work(&self, share: f64) {
        self.threads.store(share.to_bits(), Ordering::Relaxed);
    }

    /// The share of the event loop or of the thread pool, whichever is larger. 0 if the worker is not measured.
    pub fn busy(&self) -> f64 {
        let threads = f64::from_bits(self.threads.load(Ordering::Relaxed));
        self.utilisation().unwrap_or(0.0).max(threads)
    }

    /// How many times garbage was collected on request, and the total time.
    pub fn collections(&self) -> (u64, Duration) {
        let micros = self.collecting.load(Ordering::Relaxed);
        (self.collections.load(Ordering::Relaxed), Duration::from_micros(micros))
    }

    pub fn collected(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(0);
        self.collecting.fetch_add(micros, Ordering::Relaxed);
        self.collections.fetch_add(1, Ordering::Relaxed);
    }

    /// The process has answered after this time. `None`: it was not asked.
    pub fn reported(&self, report: &Report, delay: Option<Duration>) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.last = Some((Instant::now(), *report));
        delay.into_iter().for_each(|delay| told.delays.push(delay));
    }

    /// What the process has told.
    pub fn node(&self) -> NodeFigures {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        NodeFigures {
            event_loop_delay: told.delays.view(),
            heap: told.last.and_then(|(_, report)| report.heap),
            gc: told.last.and_then(|(_, report)| report.gc),
            age: told.last.map(|(at, _)| at.elapsed()),
        }
    }

    /// The worker has no requests, so it is not measured.
    pub fn rests(&self) {
        self.utilisation.store(UNKNOWN, Ordering::Relaxed);
        self.threads_work(0.0);
    }
}
