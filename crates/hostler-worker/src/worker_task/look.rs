//! Starts the tasks that measure the worker's event loop, and shows the number of its slots.

use std::sync::Arc;

use super::state::WorkerTask;
use crate::collecting::Collecting;
use crate::heartbeat::Heartbeat;
use crate::settings::Slots;

impl<E: Send + Sync + 'static> WorkerTask<E> {
    /// The number of slots of a worker that joins now.
    pub(super) fn slots(&self) -> usize {
        match self.settings.borrow().slots {
            Slots::Fixed(slots) => slots,
            Slots::Auto => self.shared.concurrency.slots(),
        }
    }

    /// Begins to measure the worker, which has just joined.
    pub(super) fn attend(&mut self) {
        let Some(membership) = &self.membership else { return };
        self.status.vitals = Arc::default();
        let heartbeat = Heartbeat {
            gauge: membership.gauge(),
            vitals: Arc::clone(&self.status.vitals),
            concurrency: Arc::clone(&self.shared.concurrency),
            settings: self.settings.clone(),
        };
        let collecting = Collecting {
            gauge: membership.gauge(),
            vitals: Arc::clone(&self.status.vitals),
            settings: self.settings.clone(),
        };
        if !self.running.as_mut().is_some_and(|running| running.attend(heartbeat, collecting)) {
            self.shared.concurrency.is_blind("with bind = \"port\" its event loop cannot be measured");
        }
        self.update_slots_reason();
    }

    /// Sets or removes the reason for the number of slots in the status.
    pub(super) fn update_slots_reason(&mut self) {
        let is_auto = self.settings.borrow().slots == Slots::Auto;
        self.status.concurrency = is_auto.then(|| Arc::clone(&self.shared.concurrency));
    }
}
