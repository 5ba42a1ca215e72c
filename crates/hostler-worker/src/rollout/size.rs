//! More or fewer workers in the plan of a pool. Does not know why their number changes.

use std::sync::Arc;

use super::Plan;
use super::place::WorkerPlace;
use super::words::{RolloutAction, WorkerRole};

impl Plan {
    pub(super) fn resize(&mut self, count: usize) -> Vec<RolloutAction> {
        let mut actions = vec![];
        if count != self.places.len() {
            // Their numbers come after those of the workers.
            let why: Arc<str> = "the number of workers changes".into();
            let spares = self.reserve.dismiss();
            actions.extend(spares.map(|task| RolloutAction::Retire { task, why: why.clone() }));
        }
        while self.places.len() < count {
            let task = self.new_task();
            let release = self.release;
            self.places.push(WorkerPlace::new(task, release));
            actions.push(RolloutAction::Start { task, index: self.places.len(), role: WorkerRole::Regular });
        }
        let why: Arc<str> = "fewer workers are wanted".into();
        let superfluous = self.replacement.take_if(|replacement| replacement.place >= count);
        let superfluous = superfluous.map(|replacement| replacement.successor);
        let before = self.in_rotation();
        let dismissed = self.places.drain(count.min(self.places.len())..).map(|place| place.task);
        let dismissed = dismissed.chain(superfluous);
        actions.extend(dismissed.map(|task| RolloutAction::Retire { task, why: why.clone() }));
        if before > 0 && self.in_rotation() == 0 {
            // They were taken out because others serve.
            actions.extend(self.places.iter().map(|place| RolloutAction::Undrain(place.task)));
        }
        actions
    }

    /// How many workers no operator has taken out of rotation.
    fn in_rotation(&self) -> usize {
        self.places.iter().filter(|place| !place.aside).count()
    }
}
