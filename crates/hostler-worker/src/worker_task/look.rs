//! Starts the tasks that measure the worker's event loop, and shows the number of its slots. Measures nothing itself.

use std::sync::Arc;

use super::state::WorkerTask;
use crate::capacity::{Capacity, CapacityWatch};
use crate::collecting::Collecting;
use crate::compile_cache::Flushing;
use crate::heartbeat::Heartbeat;
use crate::main_thread::ServingThread;
use crate::running::RunningProcess;
use crate::settings::{CompileCache, Slots};

impl<E: Send + Sync + 'static> WorkerTask<E> {
    /// How many warm-up requests a worker gets at once.
    pub(super) fn warmups_at_once(&self) -> usize {
        match self.settings.borrow().slots {
            Slots::Fixed(slots) => slots,
            Slots::Auto { .. } => 1,
        }
    }

    /// Adds the worker to the pool.
    pub(super) fn enter(&mut self, endpoint: E) {
        let thread = self.running.as_ref().and_then(RunningProcess::serving_thread);
        let capacity = Arc::new(Capacity::of(thread, Arc::clone(&self.shared.concurrency)));
        if self.running.as_ref().is_some_and(|running| running.has_cluster) {
            capacity.serve_elsewhere();
        }
        let slots = self.settings.borrow().slots;
        self.membership = Some(capacity.join(&self.shared.pool, endpoint, slots));
        self.status.capacity = Some(capacity);
        self.status.slots = slots;
    }

    /// Begins to measure the worker, which has just joined.
    pub(super) fn attend(&mut self) {
        let (Some(membership), Some(capacity)) = (&self.membership, &self.status.capacity) else { return };
        // If it has been in the pool before, the figures of its process go on. How busy it was then says nothing now.
        self.status.vitals.rests();
        let heartbeat = Heartbeat {
            gauge: membership.gauge(),
            vitals: Arc::clone(&self.status.vitals),
            concurrency: Arc::clone(&self.shared.concurrency),
            capacity: Arc::clone(capacity),
            settings: self.settings.clone(),
        };
        let collecting = Collecting {
            gauge: membership.gauge(),
            vitals: Arc::clone(&self.status.vitals),
            settings: self.settings.clone(),
        };
        let Some(running) = &mut self.running else { return };
        let has_preload = running.attend(heartbeat, collecting);
        if !has_preload && capacity.main_thread().is_none() {
            capacity.note_measurable(false);
            capacity.apply(&membership.gauge(), self.settings.borrow().slots);
        }
        let start_timeout = self.settings.borrow().start_timeout;
        running.watch_port(membership.gauge(), start_timeout);
        if self.settings.borrow().compile_cache != CompileCache::Off {
            let flushes = Arc::clone(&self.shared.cache_flushes);
            let (gauge, release) = (membership.gauge(), self.status.release);
            running.flush_when_idle(Flushing { gauge, flushes, release });
        }
        if let Some(ServingThread { pid, .. }) = running.serving_thread() {
            let watch = CapacityWatch {
                gauge: membership.gauge(),
                capacity: Arc::clone(capacity),
                vitals: Arc::clone(&self.status.vitals),
                settings: self.settings.clone(),
                pid,
                has_preload,
                log: self.log.clone(),
                advised: Arc::clone(&self.shared.advised),
            };
            running.tasks.spawn(watch.run());
        }
    }
}
