//! What a keeper hears, from those who order and from its worker, and what that means to the lifecycle.

use std::time::Duration;

use super::Keeper;
use crate::worker::channel::Speaker;
use crate::worker::crew::Order;
use crate::worker::lifecycle::{Death, Event, Standing, State};
use crate::worker::log::WorkerEvent;
use crate::worker::message::FromWorker;
use crate::worker::news::News;
use crate::worker::process::Exit;
use crate::worker::rollout::Heard;
use crate::worker::running::Running;
use crate::worker::settings::Slots;

/// A boot that has failed after a long time has waited for something, rather than worked.
const LONGEST_CHARGE: Duration = Duration::from_secs(1);

impl<E: Send + Sync + 'static> Keeper<E> {
    pub(super) fn understand(&mut self, order: Option<Order>) -> Option<Event> {
        match order {
            Some(Order::Stop) => Some(Event::Stop),
            Some(Order::Retire(why)) => {
                if let Some(running) = &self.running {
                    self.log.event(WorkerEvent::Retires { pid: running.pid(), why: why.to_string() });
                }
                Some(Event::Retire)
            }
            Some(Order::Kill) => Some(Event::Kill),
            Some(Order::StepIn) => Some(Event::StepIn),
            Some(Order::StepBack) => Some(Event::StepBack),
            Some(Order::Hung(id)) => (self.member() == Some(id)).then_some(Event::Hung),
            None => {
                self.abandoned = true;
                Some(Event::Kill)
            }
        }
    }

    /// What can be changed while the worker runs is; the rest waits for the next boot.
    pub(super) fn adopt_settings(&mut self) {
        let settings = self.settings.borrow_and_update().clone();
        self.life.adopt(settings.rules());
        if let (Some(membership), Slots::Fixed(slots)) = (&self.membership, settings.slots) {
            membership.set_slots(slots);
        }
        self.tell_whose_choice();
    }

    /// The process is gone. It leaves the pool before anything else, then its last words go to the log.
    pub(super) async fn lay_out(&mut self, exit: Exit) -> Event {
        self.leave();
        if matches!(self.life.state(), State::Ready | State::Standby) {
            // Before its last words: a spare may step in at once.
            self.report(Heard::Left);
        }
        if let Some(mut running) = self.running.take() {
            running.teller.end(exit.cause());
            if matches!(self.life.state(), State::Booting { .. } | State::Warming { .. }) {
                // What it has cost is not known any more; it is at most about that.
                self.crew.charge(running.started.elapsed().min(LONGEST_CHARGE));
            }
            running.last_words().await;
            let when = match self.life.state() {
                State::Booting { .. } | State::Warming { .. } => Some("before it was ready"),
                State::Ready if self.life.standing() == Standing::Successor => {
                    Some("as soon as it was ready")
                }
                _ => None,
            };
            if let Some(when) = when {
                let line = running.tail.telling_line().map_or(String::new(), |line| format!(": {line}"));
                self.status.last_error = Some(format!("{exit} {when}{line}"));
            }
        }
        self.status.last_exit = Some(exit.to_string());
        Event::Exited(self.death(exit))
    }

    fn death(&self, exit: Exit) -> Death {
        let (crew, release) = (&self.crew, self.status.release);
        if self.served {
            crew.prove(release);
        }
        let (killed, served) = (exit.was_killed(), self.served);
        Death { killed, served, proven: crew.is_proven(release), owed: crew.owed() }
    }

    pub(super) fn hear(&mut self, news: News) -> Option<Event> {
        if let News::Turn(turn) = news {
            self.turn = Some(turn);
            return Some(Event::Turn);
        }
        let running = self.running.as_mut()?;
        match news {
            News::Said { message, speaker } => self.listen_to(message, speaker),
            News::Connectable => self.moved(Running::accepts),
            News::Gone { pid } => running.is_gone(pid).then_some(Event::Orphaned),
            News::Unhealthy(answer) => {
                running.health = Some(answer);
                None
            }
            News::Healthy => Some(Event::Healthy),
            News::Warmed => Some(Event::Warmed),
            News::Diagnosed(diagnosis) => {
                running.diagnosis = Some(diagnosis);
                Some(Event::Diagnosed)
            }
            News::Silent => {
                running.silent = true;
                Some(Event::Hung)
            }
            News::Turn(_) => None,
        }
    }

    fn listen_to(&mut self, message: FromWorker, speaker: Speaker) -> Option<Event> {
        match message {
            FromWorker::Ready => self.moved(Running::accepts),
            FromWorker::Listening { via, pid } => self.moved(|running| running.listens(via, pid, speaker)),
            FromWorker::Hears => {
                self.running.as_mut()?.hears(speaker);
                Some(Event::Hears)
            }
            FromWorker::Warning { text } => {
                self.log.warn(text);
                None
            }
            FromWorker::Report(time) => {
                self.running.as_ref()?.reported(time);
                None
            }
            FromWorker::Collected { micros, .. } => {
                self.running.as_ref()?.collected(Duration::from_micros(micros));
                None
            }
        }
    }

    /// `change` tells the worker's address and whether it is a new one: then the pool must know of it.
    fn moved(&mut self, change: impl FnOnce(&mut Running) -> bool) -> Option<Event> {
        let running = self.running.as_mut()?;
        let is_new = change(running);
        running.address.as_ref()?;
        if is_new && self.membership.is_some() {
            self.join();
        }
        Some(Event::Listening)
    }
}
