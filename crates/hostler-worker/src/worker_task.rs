//! Runs one worker: carries out what its lifecycle decides and reports events to the lifecycle. Decides nothing itself.

mod act;
mod app_end;
mod cpus;
mod development;
mod hear;
mod inspect;
mod inspection;
mod look;
mod rotate;
mod state;
mod tell;

use tokio::time::{Instant, sleep_until};

use super::leaving::Leaving;
use super::lifecycle::{LifecycleEvent, LifecycleState};
use super::news::WorkerNews;
use super::process::Exit;
use super::running::RunningProcess;
pub(super) use state::{WorkerSpec, WorkerTask};

impl<E: Send + Sync + 'static> WorkerTask<E> {
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
                () = self.leaving.ended() => Some(LifecycleEvent::Finished),
                Ok(()) = self.settings.changed() => self.adopt_settings(),
                Some((generation, news)) = self.news_receiver.recv() => match news {
                    _ if generation != self.status.generation => None,
                    WorkerNews::Gone { pid } => self.app_ends(pid).await,
                    news => self.hear(news),
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
        if state == (LifecycleState::Aside { finished: true }) && before != state {
            self.requests_have_ended();
        }
        self.tell_rotation(before);
        let has_ended = matches!(
            state,
            LifecycleState::Queued | LifecycleState::BackingOff { .. } | LifecycleState::Stopped
        );
        if has_ended && before != state {
            self.membership = None;
            self.leaving = Leaving::default();
            self.running = None;
            self.report_end(event, before);
        }
    }
}

async fn end_of(running: &mut Option<RunningProcess>, state: LifecycleState) -> Exit {
    match running {
        Some(running) => running.ended(matches!(state, LifecycleState::Stopping { .. })).await,
        None => std::future::pending().await,
    }
}
