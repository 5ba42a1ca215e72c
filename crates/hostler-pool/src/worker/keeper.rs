//! Keeps one worker alive: does what its lifecycle decides, and tells the lifecycle what became of it.
//! It decides nothing itself.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::birth::Birth;
use super::channel::Speaker;
use super::health;
use super::inspector::Diagnosis;
use super::lifecycle::{Action, Event, Lifecycle, State, Why};
use super::log::{Next, WorkerEvent, WorkerLog};
use super::message::{FromWorker, ToWorker};
use super::news::{Mailbox, News, Wire};
use super::process::Exit;
use super::running::Running;
use super::settings::{Address, Probe, WorkerFacts, WorkerSettings};
use super::snapshot::{Status, WorkerState};
use super::yard::Yard;
use crate::dispatch::{MemberId, Membership, Pool};

/// What the program may order.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    Stop,
    Kill,
    Hung(MemberId),
}

/// What the workers of one pool share.
pub(super) struct Crew<E> {
    pub settings: WorkerSettings,
    pub pool: Pool<E>,
    pub endpoint: Box<dyn Fn(Address, WorkerFacts) -> E + Send + Sync>,
    pub probe: Arc<dyn Probe>,
    pub yard: Yard,
    pub board: watch::Sender<Vec<Status>>,
}

pub(super) struct Keeper<E> {
    crew: Arc<Crew<E>>,
    log: WorkerLog,
    life: Lifecycle,
    /// Told to the board after each change; also remembers what is to be seen later.
    status: Status,
    orders: mpsc::UnboundedReceiver<Order>,
    /// The supervisor was dropped: no more orders.
    abandoned: bool,
    mailbox: Mailbox,
    wire: Wire,
    asking: JoinSet<()>,
    turn: Option<OwnedSemaphorePermit>,
    running: Option<Running>,
    membership: Option<Membership<E>>,
}

impl<E: Send + Sync + 'static> Keeper<E> {
    pub fn new(crew: Arc<Crew<E>>, index: usize, orders: mpsc::UnboundedReceiver<Order>) -> Self {
        let log = WorkerLog { sink: crew.yard.log(), pool: crew.pool.name().into(), worker: index };
        let (wire, mailbox) = Wire::pair(0);
        let life = Lifecycle::new(crew.settings.rules(), fastrand::Rng::new());
        Self {
            log,
            life,
            status: Status::new(index),
            orders,
            abandoned: false,
            mailbox,
            wire,
            asking: JoinSet::new(),
            turn: None,
            running: None,
            membership: None,
            crew,
        }
    }

    /// From the first boot to the last exit.
    pub async fn run(mut self) {
        self.perform(Action::AskTurn);
        while self.life.state() != State::Stopped {
            let event = self.next_event().await;
            self.apply(event);
            self.publish();
        }
    }

    async fn next_event(&mut self) -> Event {
        loop {
            let deadline = self.life.deadline();
            let event = tokio::select! {
                biased;
                order = self.orders.recv(), if !self.abandoned => self.understand(order),
                exit = end_of(&mut self.running, self.life.state()) => Some(self.lay_out(exit).await),
                // Before the news: a worker that talks without end must not talk itself out of a deadline.
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => Some(Event::Tick),
                Some((generation, news)) = self.mailbox.recv() => {
                    if generation == self.status.generation { self.hear(news) } else { None }
                }
            };
            if let Some(event) = event {
                return event;
            }
        }
    }

    fn understand(&mut self, order: Option<Order>) -> Option<Event> {
        match order {
            Some(Order::Stop) => Some(Event::Stop),
            Some(Order::Kill) => Some(Event::Kill),
            Some(Order::Hung(id)) => {
                self.membership.as_ref().is_some_and(|member| member.id() == id).then_some(Event::Hung)
            }
            None => {
                self.abandoned = true;
                Some(Event::Kill)
            }
        }
    }

    /// The process is gone. It leaves the pool before anything else, then its last words go to the log.
    async fn lay_out(&mut self, exit: Exit) -> Event {
        self.membership = None;
        if let Some(mut running) = self.running.take() {
            running.last_words().await;
            if matches!(self.life.state(), State::Booting { .. } | State::Warming { .. }) {
                let line = running.tail.telling_line().map_or(String::new(), |line| format!(": {line}"));
                self.status.last_error = Some(format!("{exit} before it was ready{line}"));
            }
        }
        self.status.last_exit = Some(exit.to_string());
        Event::Exited { killed: exit.was_killed() }
    }

    fn hear(&mut self, news: News) -> Option<Event> {
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
            News::Turn(_) => None,
        }
    }

    fn listen_to(&mut self, message: FromWorker, speaker: Speaker) -> Option<Event> {
        match message {
            FromWorker::Ready => self.moved(Running::accepts),
            FromWorker::Listening { via, pid } => self.moved(|running| running.listens(via, pid)),
            FromWorker::Hears => {
                self.running.as_mut()?.hears(speaker);
                Some(Event::Hears)
            }
            FromWorker::Warning { text } => {
                self.log.warn(text);
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

    fn apply(&mut self, event: Event) {
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

    /// What follows from the state alone.
    fn settle(&mut self, event: Event, before: State) {
        let state = self.life.state();
        if !matches!(state, State::Booting { .. } | State::Warming { .. }) {
            self.turn = None;
        }
        let has_ended = matches!(state, State::Queued | State::BackingOff { .. } | State::Stopped);
        if has_ended && before != state {
            self.membership = None;
            self.running = None;
            self.report_end(event, before);
        }
    }

    fn report_end(&mut self, event: Event, before: State) {
        let (pid, how) = match event {
            Event::SpawnFailed => (None, self.status.last_error.clone()),
            // Published when it still ran, and not overwritten yet.
            Event::Exited { .. } => (self.status.pid, self.status.last_exit.clone()),
            // It never ran, has rested, or will not be seen again.
            _ => return,
        };
        let how = how.unwrap_or_default();
        let restarts_in = match self.life.state() {
            State::Stopped => return self.log.event(WorkerEvent::Stopped { pid, how }),
            State::BackingOff { until } => until.saturating_duration_since(Instant::now()),
            _ => Duration::ZERO,
        };
        let how = match before {
            State::Booting { .. } | State::Warming { .. } if pid.is_some() => {
                format!("{how} before it was ready")
            }
            State::Diagnosing { .. } => format!("{how} while it hung"),
            _ => how,
        };
        let crashes = self.life.crashes();
        self.log.event(WorkerEvent::Died { pid, how, next: Next { restarts_in, crashes } });
    }

    fn perform(&mut self, action: Action) -> Option<Event> {
        match action {
            Action::AskTurn => self.ask_turn(),
            Action::Spawn => return self.spawn(),
            Action::CheckHealth => self.check_health(),
            Action::WarmUp => self.warm_up(),
            Action::Join => self.join(),
            Action::Leave => self.membership = None,
            Action::Diagnose => return self.diagnose(),
            Action::SayShutdown => {
                if !self.running.as_ref().is_some_and(|running| running.say(ToWorker::Shutdown)) {
                    return self.perform(Action::Terminate);
                }
            }
            Action::Terminate => {
                if let Some(running) = &self.running {
                    running.process.terminate();
                }
            }
            Action::Kill(why) => self.kill(why),
        }
        None
    }

    fn ask_turn(&mut self) {
        self.status.generation += 1;
        let (yard, wire) = (self.crew.yard.clone(), self.wire.of_generation(self.status.generation));
        self.asking = JoinSet::new();
        self.asking.spawn(async move { wire.send(News::Turn(yard.turn().await)).await });
    }

    fn spawn(&mut self) -> Option<Event> {
        let crew = &self.crew;
        let birth = Birth {
            settings: &crew.settings,
            yard: &crew.yard,
            pool: crew.pool.name(),
            index: self.status.index,
            generation: self.status.generation,
        };
        match Running::start(&birth, &self.log, self.wire.of_generation(self.status.generation)) {
            Ok(running) => {
                self.log.event(WorkerEvent::Started { pid: running.pid() });
                self.running = Some(running);
                None
            }
            Err(error) => {
                self.status.last_error = Some(error.to_string());
                Some(Event::SpawnFailed)
            }
        }
    }

    fn check_health(&mut self) {
        if let (Some(running), Some(path)) = (&mut self.running, &self.crew.settings.health)
            && let Some(address) = running.address.clone()
        {
            let (probe, wire) =
                (Arc::clone(&self.crew.probe), self.wire.of_generation(self.status.generation));
            running.errands.spawn(health::until_healthy(probe, address, path.clone(), wire));
        }
    }

    fn warm_up(&mut self) {
        let Some(until) = self.life.deadline() else { return };
        if let Some(running) = &mut self.running
            && let Some(address) = running.address.clone()
        {
            let (probe, paths) = (Arc::clone(&self.crew.probe), self.crew.settings.warmup.clone());
            let ways = (self.log.clone(), self.wire.of_generation(self.status.generation));
            running.errands.spawn(health::warm_up(probe, address, paths, until, ways));
        }
    }

    fn join(&mut self) {
        let Some(running) = &self.running else { return };
        let Some(address) = running.address.clone() else { return };
        let pid = running.pid();
        let facts = WorkerFacts { index: self.status.index, generation: self.status.generation, pid };
        let endpoint = (self.crew.endpoint)(address, facts);
        let is_new = self.membership.is_none();
        self.membership = Some(self.crew.pool.join(endpoint, self.crew.settings.slots.at_first()));
        if is_new {
            self.log.event(WorkerEvent::Ready { pid, took: running.started.elapsed() });
        }
    }

    fn diagnose(&mut self) -> Option<Event> {
        let is_asked = self.running.as_mut().is_some_and(Running::diagnose);
        (!is_asked).then_some(Event::Diagnosed)
    }

    fn kill(&mut self, why: Why) {
        let Some(running) = &self.running else { return };
        if why != Why::Ordered {
            if why == Why::Hung {
                self.status.hung_at = Some(Instant::now());
                self.status.stack = running.diagnosis.as_ref().and_then(Diagnosis::frames).map(<[_]>::to_vec);
            }
            let why = running.complaint(why, &self.crew.settings);
            let (pid, tail) = (running.pid(), running.tail.lines());
            self.log.event(WorkerEvent::Killed { pid, why: why.clone(), tail });
            self.status.last_error = Some(why);
        }
        running.process.kill();
    }

    fn publish(&mut self) {
        let state = self.life.state();
        self.status.state = match state {
            State::Queued | State::Booting { .. } => WorkerState::Booting,
            State::Warming { .. } => WorkerState::Warming,
            State::Ready => WorkerState::Ready,
            State::Diagnosing { .. } | State::Stopping { .. } | State::Killed { .. } => WorkerState::Stopping,
            State::BackingOff { .. } => WorkerState::BackingOff,
            State::Stopped => WorkerState::Stopped,
        };
        self.status.restarts_at = if let State::BackingOff { until } = state { Some(until) } else { None };
        self.status.crashes = self.life.crashes();
        self.status.pid = self.running.as_ref().map(Running::pid);
        self.status.started = self.running.as_ref().map(|running| running.started);
        self.status.member = self.membership.as_ref().map(Membership::id);
        self.crew.board.send_modify(|board| board[self.status.index - 1] = self.status.clone());
    }
}

async fn end_of(running: &mut Option<Running>, state: State) -> Exit {
    match running {
        Some(running) => running.ended(matches!(state, State::Stopping { .. })).await,
        None => std::future::pending().await,
    }
}
