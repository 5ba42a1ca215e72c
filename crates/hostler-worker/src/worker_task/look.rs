//! How a worker task comes to know how its worker is doing inside.

use std::sync::Arc;

use super::WorkerTask;
use crate::collecting::Collecting;
use crate::heartbeat::Heartbeat;
use crate::settings::Slots;

impl<E: Send + Sync + 'static> WorkerTask<E> {
    /// Requests at once for a worker that joins now.
    pub(super) fn slots(&self) -> usize {
        match self.settings.borrow().slots {
            Slots::Fixed(slots) => slots,
            Slots::Auto => self.shared.concurrency.slots(),
        }
    }

    /// Begins to ask the worker, which has just joined, how it is doing.
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
            self.shared.concurrency.is_blind("with bind = \"port\" its event loop cannot be asked");
        }
        self.tell_whose_choice();
    }

    /// Whether the number of slots needs a reason.
    pub(super) fn tell_whose_choice(&mut self) {
        let is_auto = self.settings.borrow().slots == Slots::Auto;
        self.status.concurrency = is_auto.then(|| Arc::clone(&self.shared.concurrency));
    }
}
