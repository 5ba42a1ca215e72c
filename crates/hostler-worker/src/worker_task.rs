//! Runs one worker: carries out what its lifecycle decides and reports events to the lifecycle. Decides nothing itself.

mod act;
mod hear;
mod look;
mod tell;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use hostler_dispatch::{MemberId, Membership};
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::lifecycle::{Lifecycle, LifecycleEvent, LifecycleState, Standing};
use super::log::WorkerLog;
use super::news::{Mailbox, Wire};
use super::process::Exit;
use super::rollout::WorkerTaskId;
use super::running::RunningProcess;
use super::settings::WorkerSettings;
use super::shared::{PoolShared, WorkerCommand};
use super::snapshot::WorkerStatus;

/// What a new worker task gets.
pub(super) struct WorkerSpec {
    pub task: WorkerTaskId,
    /// The worker's number.
    pub index: usize,
    pub standing: Standing,
    /// How many restarts had been ordered when it was started.
    pub release: u64,
    /// How many times a worker of this number has been started, by any worker task.
    pub starts: Arc<AtomicU64>,
    /// Why a worker of this number was last recycled.
    pub recycled: Option<Arc<str>>,
}

pub(super) struct WorkerTask<E> {
    shared: Arc<PoolShared<E>>,
    settings: watch::Receiver<Arc<WorkerSettings>>,
    starts: Arc<AtomicU64>,
    log: WorkerLog,
    life: Lifecycle,
    /// Its process has had a request.
    served: bool,
    /// The settings of the current boot.
    booted_with: Option<Arc<WorkerSettings>>,
    /// The settings of the last boot that got ready.
    known_good: Option<Arc<WorkerSettings>>,
    /// How many of its deaths were reported to the pool supervisor.
    told_deaths: u64,
    /// Published after each change. Also holds what is to be published later.
    status: WorkerStatus,
    orders: mpsc::UnboundedReceiver<WorkerCommand>,
    /// The pool supervisor is gone: no more commands come.
    abandoned: bool,
    mailbox: Mailbox,
    wire: Wire,
    asking: JoinSet<()>,
    turn: Option<OwnedSemaphorePermit>,
    running: Option<RunningProcess>,
    membership: Option<Membership<E>>,
    leaving: Option<Leaving>,
}

/// A worker that has left the pool and finishes its requests.
struct Leaving {
    member: MemberId,
    finished: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl<E: Send + Sync + 'static> WorkerTask<E> {
    pub fn new(
        shared: Arc<PoolShared<E>>,
        spec: WorkerSpec,
        orders: mpsc::UnboundedReceiver<WorkerCommand>,
    ) -> Self {
        let log =
            WorkerLog { sink: shared.context.log(), pool: shared.pool.name().into(), worker: spec.index };
        let (wire, mailbox) = Wire::pair(0);
        let mut settings = shared.settings.subscribe();
        let current = settings.borrow_and_update().clone();
        let mut status = WorkerStatus::new(spec.task, spec.index, spec.standing, spec.release);
        status.recycled = spec.recycled;
        Self {
            settings,
            starts: spec.starts,
            log,
            life: Lifecycle::new(current, spec.standing, fastrand::Rng::new()),
            served: false,
            booted_with: None,
            known_good: None,
            told_deaths: 0,
            status,
            orders,
            abandoned: false,
            mailbox,
            wire,
            asking: JoinSet::new(),
            turn: None,
            running: None,
            membership: None,
            leaving: None,
            shared,
        }
    }

    /// The status before the worker runs.
    pub fn status(&self) -> WorkerStatus {
        self.status.clone()
    }

    /// Runs from the first boot to the last exit.
    pub async fn run(mut self) {
        self.ask_turn();
        self.publish();
        while self.life.state() != LifecycleState::Stopped {
            let event = self.next_event().await;
            self.apply(event);
            self.publish();
        }
        self.report_last();
    }

    async fn next_event(&mut self) -> LifecycleEvent {
        loop {
            let deadline = self.life.deadline();
            let event = tokio::select! {
                biased;
                order = self.orders.recv(), if !self.abandoned => self.understand(order),
                exit = end_of(&mut self.running, self.life.state()) => Some(self.handle_exit(exit).await),
                // Before the news: a worker that sends messages without end must not delay a deadline.
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => Some(LifecycleEvent::Tick),
                () = last_request_of(&mut self.leaving) => {
                    self.leaving = None;
                    Some(LifecycleEvent::Finished)
                }
                Ok(()) = self.settings.changed() => {
                    self.adopt_settings();
                    None
                }
                Some((generation, news)) = self.mailbox.recv() => {
                    if generation == self.status.generation { self.hear(news) } else { None }
                }
            };
            if let Some(event) = event {
                return event;
            }
        }
    }

    fn apply(&mut self, event: LifecycleEvent) {
        let mut next = Some(event);
        while let Some(event) = next.take() {
            let before = self.life.state();
            let (life, actions) = self.life.clone().step(event, Instant::now());
            self.life = life;
            self.settle(event, before);
            for action in actions {
                next = self.perform(action).or(next);
            }
        }
    }

    /// What follows from the new state alone.
    fn settle(&mut self, event: LifecycleEvent, before: LifecycleState) {
        let state = self.life.state();
        if !matches!(state, LifecycleState::Booting { .. } | LifecycleState::Warming { .. }) {
            self.turn = None;
        }
        let has_ended = matches!(
            state,
            LifecycleState::Queued | LifecycleState::BackingOff { .. } | LifecycleState::Stopped
        );
        if has_ended && before != state {
            self.membership = None;
            self.leaving = None;
            self.running = None;
            self.report_end(event, before);
        }
    }

    /// Its member in the pool, also after it has retired.
    fn member(&self) -> Option<MemberId> {
        self.membership.as_ref().map(Membership::id).or(self.leaving.as_ref().map(|leaving| leaving.member))
    }
}

async fn end_of(running: &mut Option<RunningProcess>, state: LifecycleState) -> Exit {
    match running {
        Some(running) => running.ended(matches!(state, LifecycleState::Stopping { .. })).await,
        None => std::future::pending().await,
    }
}

async fn last_request_of(leaving: &mut Option<Leaving>) {
    match leaving {
        Some(leaving) => leaving.finished.as_mut().await,
        None => std::future::pending().await,
    }
}
