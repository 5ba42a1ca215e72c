//! Takes the worker out of rotation for an operator, and tells what becomes of it. Decides nothing.

use tokio::time::Instant;

use super::state::WorkerTask;
use crate::lifecycle::{LifecycleEvent, LifecycleState};
use crate::log::WorkerEvent;
use crate::rotation::Rotation;

impl<E: Send + Sync + 'static> WorkerTask<E> {
    pub(super) fn rotate(&self, rotation: Rotation) -> LifecycleEvent {
        let name = format!("{}/{}", self.shared.pool.name(), self.status.index);
        match rotation {
            Rotation::Out { length, .. } => {
                let end = match length {
                    Some(length) => format!("for {}", humantime::format_duration(length)),
                    None => format!("until `hostler undrain {name}`"),
                };
                // It may have died since the order.
                if self.life.can_be_drained() {
                    self.note(format!("drained {end}: it gets no more requests"));
                }
                LifecycleEvent::Drain { until: length.map(|length| Instant::now() + length) }
            }
            Rotation::In => LifecycleEvent::Undrain,
        }
    }

    /// Tells when a worker that is out of rotation has ended its requests, and when it is back.
    pub(super) fn tell_rotation(&self, before: LifecycleState) {
        match (before, self.life.state()) {
            (LifecycleState::Aside { .. }, LifecycleState::Ready) => {
                self.note("in rotation: it gets requests again".into());
            }
            (before, state @ LifecycleState::Aside { finished: true })
                if before != state && self.life.drain().is_some() =>
            {
                self.note("drained: its last request has ended".into());
            }
            _ => {}
        }
    }

    fn note(&self, text: String) {
        self.log.event(WorkerEvent::Note { text });
    }
}
