//! Hands on the commands, reports and news of a history in any order that their channels allow. Knows no rules.

use super::process::News;
use super::world::World;
use crate::boot_gate::Turns;
use crate::lifecycle::LifecycleEvent;
use crate::rollout::{RolloutEvent, WorkerTaskId};

/// What can be handed on now.
#[derive(Clone, Copy, Debug)]
enum Delivery {
    Order(WorkerTaskId),
    News(WorkerTaskId),
    Finished(WorkerTaskId),
    Report,
    Turn(Turns),
}

impl World<'_> {
    /// Hands on what is under way, in any order. Sometimes a part stays where it is for a while, as on a busy machine.
    pub fn deliver(&mut self) {
        self.look();
        while self.error.is_none() {
            let ready = self.deliveries();
            if ready.is_empty() || (self.is_wild && self.dice.u8(..) < 8) {
                break;
            }
            let delivery = ready[self.dice.usize(..ready.len())];
            self.hand_on(delivery);
            self.look();
        }
    }

    /// Whether nothing is under way.
    pub fn is_still(&mut self) -> bool {
        self.deliveries().is_empty()
    }

    fn deliveries(&mut self) -> Vec<Delivery> {
        let mut ready = vec![];
        for (task, worker) in &mut self.workers {
            ready.extend((!worker.orders.is_empty()).then_some(Delivery::Order(*task)));
            ready.extend((!worker.news.is_empty()).then_some(Delivery::News(*task)));
            ready.extend(worker.has_finished().then_some(Delivery::Finished(*task)));
        }
        ready.extend((!self.reports.is_empty()).then_some(Delivery::Report));
        for kind in [Turns::Starts, Turns::Returns] {
            let boots = self.workers.values().any(|worker| worker.turn == Some(kind));
            let may_boot = !self.lines[kind as usize].is_empty() && (self.has_room || !boots);
            ready.extend(may_boot.then_some(Delivery::Turn(kind)));
        }
        ready
    }

    fn hand_on(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Order(task) => {
                let Some(worker) = self.workers.get_mut(&task) else { return };
                let event = worker.orders.pop_front().and_then(|order| worker.understand(order));
                event.into_iter().for_each(|event| self.apply(task, event));
            }
            Delivery::News(task) => {
                let news = self.workers.get_mut(&task).and_then(|worker| worker.news.pop_front());
                news.into_iter().for_each(|news| self.hear(task, news));
            }
            Delivery::Finished(task) => {
                self.workers.get_mut(&task).into_iter().for_each(|worker| worker.has_finished = false);
                self.apply(task, LifecycleEvent::Finished);
            }
            Delivery::Report => {
                if let Some((task, report)) = self.reports.pop_front() {
                    self.decide(RolloutEvent::Heard(task, report));
                }
            }
            Delivery::Turn(kind) => {
                let Some((task, boot)) = self.line_of(kind).pop_front() else { return };
                if let Some(worker) = self.workers.get_mut(&task).filter(|one| one.status.generation == boot)
                {
                    worker.turn = Some(kind);
                    worker.news.push_back((boot, News::Turn));
                }
            }
        }
    }

    fn hear(&mut self, task: WorkerTaskId, (of, news): (u64, News)) {
        let Some(worker) = self.workers.get_mut(&task) else { return };
        if news == News::Turn {
            // Without the state it is not kept: see `settle`.
            return self.apply(task, LifecycleEvent::Turn);
        }
        if worker.running != Some(of) {
            return;
        }
        let event = match news {
            News::Turn => return,
            News::Listening => LifecycleEvent::Listening,
            News::Hears => LifecycleEvent::Hears,
            News::Healthy => LifecycleEvent::Healthy,
            News::Warmed => LifecycleEvent::Warmed,
            News::Diagnosed => LifecycleEvent::Diagnosed,
            News::Orphaned => LifecycleEvent::Orphaned,
            News::Exited { was_killed } => return self.exited(task, was_killed),
        };
        self.apply(task, event);
    }
}
