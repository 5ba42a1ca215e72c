//! Begins and ends a profile or a heap snapshot of the worker. Does not know how it is taken.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::sleep;

use super::inspection::Inspection;
use super::state::WorkerTask;
use crate::inspection::{self, InspectionEvent, InspectionKind, InspectionOrder, NotTaken, Taking};
use crate::lifecycle::{LifecycleEvent, LifecycleState};
use crate::log::WorkerEvent;
use crate::news::WorkerNews;

/// How long after the connection of its preload a process has ended, at the latest.
const EXIT: Duration = Duration::from_secs(2);

impl<E: Send + Sync + 'static> WorkerTask<E> {
    pub(super) fn inspect(&mut self, order: InspectionOrder) -> Option<LifecycleEvent> {
        let (kind, events) = (order.kind, order.events.clone());
        let process = match self.can_inspect(kind) {
            Ok(process) => process,
            Err(why) => {
                order.refuse(format!("{}/{} {why}", self.shared.pool.name(), self.status.index));
                return None;
            }
        };
        let running = self.running.as_mut()?;
        let began = InspectionEvent::Began { worker: self.status.index, pid: running.pid() };
        // The first event, so there is room.
        events.try_send(began).ok()?;
        let taking = Taking { process, events: events.clone() };
        let (finished, ended) = oneshot::channel();
        let news_sender = self.news_sender.of_generation(self.status.generation);
        let (to, log) = (events.clone(), self.log.clone());
        let preload = taking.process.preload.clone();
        running.tasks.spawn(async move {
            let taken = match kind {
                InspectionKind::Profile { length, interval } => {
                    inspection::profile(taking, length, interval).await.map_err(NotTaken::from)
                }
                InspectionKind::Heap { wait, .. } => inspection::heap(taking, wait, ended).await,
            };
            if taken.is_err() && !preload.is_open() {
                // The process ends, most likely. Then its end is the reason, `inspection_fails` reports it, and this task is dropped.
                sleep(EXIT).await;
            }
            let stands_still = taken.as_ref().is_err_and(|failure| failure.stands_still);
            let (last, text) = match taken {
                Ok(()) => (InspectionEvent::Done, format!("{}: done", kind.name())),
                Err(NotTaken { why, .. }) => {
                    let text = format!("{}: {why}", kind.name());
                    (InspectionEvent::Failed(why), text)
                }
            };
            log.event(WorkerEvent::Note { text });
            // First the worker is put back or killed: its reader may be slow.
            news_sender.send(WorkerNews::Inspected { stands_still }).await;
            // This task may end with the process.
            tokio::spawn(async move { to.send(last).await });
        });
        let text = match kind {
            InspectionKind::Profile { length, .. } => {
                format!("a profile of {} s is taken", length.as_secs_f64())
            }
            InspectionKind::Heap { .. } => "out of rotation: a heap snapshot is taken".to_owned(),
        };
        self.log.event(WorkerEvent::Note { text });
        let is_heap = matches!(kind, InspectionKind::Heap { .. });
        self.inspection = Some(Inspection { kind, events, finished: Some(finished), hangs: None });
        if self.life.state() == (LifecycleState::Aside { finished: true }) {
            // It was drained before.
            self.requests_have_ended();
        }
        is_heap.then_some(LifecycleEvent::SetAside)
    }

    /// `Err`: why not, to be read after the worker's name.
    fn can_inspect(&mut self, kind: InspectionKind) -> Result<inspection::Inspectable, String> {
        if let Some(inspection) = &self.inspection {
            return Err(format!("is busy: a {} of it is being taken", inspection.kind.name()));
        }
        let state = self.status.state.name();
        let is_possible = match kind {
            InspectionKind::Profile { .. } => matches!(
                self.life.state(),
                LifecycleState::Ready | LifecycleState::Retiring { .. } | LifecycleState::Aside { .. }
            ),
            InspectionKind::Heap { .. } => self.life.can_go_aside(),
        };
        match &mut self.running {
            Some(running) if is_possible => {
                running.inspectable().map_err(|why| format!("cannot be inspected: {why}"))
            }
            _ => Err(format!("is not ready; its state is: {state}")),
        }
    }

    /// The worker has left the pool, and its last request has ended.
    pub(super) fn requests_have_ended(&mut self) {
        if let Some(finished) = self.inspection.as_mut().and_then(|inspection| inspection.finished.take()) {
            let _ = finished.send(());
        }
    }

    /// The inspection has ended, well or badly.
    pub(super) fn inspected(&mut self, stands_still: bool) -> Option<LifecycleEvent> {
        let inspection = self.inspection.take()?;
        self.publish();
        match inspection.kind {
            InspectionKind::Profile { .. } => inspection.hangs,
            InspectionKind::Heap { .. } if stands_still => {
                self.running.as_mut()?.stands_still = true;
                Some(LifecycleEvent::StandsStill)
            }
            InspectionKind::Heap { .. } => Some(LifecycleEvent::PutBack),
        }
    }

    /// The process has ended, and the inspection with it.
    pub(super) fn inspection_fails(&mut self, how: &str) {
        let Some(Inspection { kind, events, .. }) = self.inspection.take() else { return };
        let hint = match kind {
            InspectionKind::Profile { .. } => "",
            InspectionKind::Heap { .. } => {
                ". If it ran out of memory: a snapshot needs about as much memory again as the heap"
            }
        };
        let why = format!("the worker has ended while a {} of it was taken ({how}){hint}", kind.name());
        // The reader may be slow, and the worker task must not wait.
        tokio::spawn(async move { events.send(InspectionEvent::Failed(why)).await });
    }

    /// A profile shows why a worker hangs, so the worker lives until it is complete.
    pub(super) fn put_off(&mut self, hung: LifecycleEvent) -> Option<LifecycleEvent> {
        match &mut self.inspection {
            Some(Inspection { kind: InspectionKind::Profile { .. }, hangs, .. }) => {
                *hangs = Some(hung);
                None
            }
            _ => Some(hung),
        }
    }
}
