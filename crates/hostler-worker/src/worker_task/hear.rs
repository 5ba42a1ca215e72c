//! Translates commands, and reports about the worker, into events of the lifecycle. Does not know what follows from an event.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::state::WorkerTask;
use crate::capacity::Capacity;
use crate::foreign_process::EXPOSED;
use crate::inspection::PreloadReply;
use crate::lifecycle::{DeathReport, LifecycleEvent, LifecycleState, PoolRole};
use crate::log::WorkerEvent;
use crate::message::{FromWorker, ListenClaim};
use crate::message_sender::MessageSender;
use crate::news::WorkerNews;
use crate::port_owner::TcpListen;
use crate::process::Exit;
use crate::recycling::Reason;
use crate::rollout::WorkerReport;
use crate::running::{ClaimWait, RunningProcess};
use crate::shared::WorkerCommand;

/// The most CPU time charged for a failed boot of unknown cost. One that took longer has waited rather than worked.
const LONGEST_CHARGE: Duration = Duration::from_secs(1);

/// The warning about an app that has closed its server.
const NOT_LISTENING: &str = "does not listen any more: the app has closed its server, and its process lives; Hostler replaces the worker";

/// The warning about a worker whose socket is gone.
const NO_SOCKET: &str = "cannot be reached any more: its socket was removed from the folder of Hostler; Hostler replaces the worker";

/// The warning about an app that uses Node's `cluster`.
const CLUSTER: &str = "the app starts processes of its own with Node's cluster, and Hostler cannot see which of them are busy: remove \
                       cluster from the app, and set workers";

impl<E: Send + Sync + 'static> WorkerTask<E> {
    pub(super) fn understand(&mut self, order: Option<WorkerCommand>) -> Option<LifecycleEvent> {
        match order {
            Some(WorkerCommand::Stop) => Some(LifecycleEvent::Stop),
            Some(WorkerCommand::Retire(why)) => {
                if let Some(running) = &self.running {
                    self.log.event(WorkerEvent::Retires { pid: running.app_pid(), why: why.to_string() });
                }
                Some(LifecycleEvent::Retire)
            }
            Some(WorkerCommand::Kill) => Some(LifecycleEvent::Kill),
            Some(WorkerCommand::OpenInspector) => {
                self.open_inspector();
                None
            }
            Some(WorkerCommand::StepIn) => Some(LifecycleEvent::StepIn),
            Some(WorkerCommand::StepBack) => Some(LifecycleEvent::StepBack),
            Some(WorkerCommand::Hung(id)) => (self.member() == Some(id) || self.leaving.includes(id))
                .then_some(LifecycleEvent::Hung)
                .and_then(|hung| self.put_off(hung)),
            Some(WorkerCommand::Inspect(order)) => {
                let event = self.inspect(order);
                self.publish();
                event
            }
            Some(WorkerCommand::Rotate(rotation)) => Some(self.rotate(rotation)),
            None => {
                self.abandoned = true;
                Some(LifecycleEvent::Kill)
            }
        }
    }

    /// Applies the settings that a running worker can take. The others wait for the next boot.
    pub(super) fn adopt_settings(&mut self) -> Option<LifecycleEvent> {
        let awaited_health = self.life.awaits_health();
        let settings = self.settings.borrow_and_update().clone();
        if let (Some(membership), Some(capacity)) = (&self.membership, &self.status.capacity) {
            capacity.apply(&membership.gauge(), settings.slots);
        }
        self.status.slots = settings.slots;
        // Settings that need no new boot apply to this process and to its next boot.
        for own in [&mut self.booted_with, &mut self.known_good].into_iter().flatten() {
            if own.boots_like(&settings) {
                *own = Arc::clone(&settings);
            }
        }
        self.life.adopt(self.settings_of_life());
        self.tell_cpus();
        if self.life.awaits_health() {
            // The path may be another one.
            self.check_health();
        } else if awaited_health {
            self.running.as_mut()?.ask(std::future::ready(()));
            return Some(LifecycleEvent::Healthy);
        }
        None
    }

    /// The process is gone. First the worker leaves the pool, then its last output goes to the log.
    pub(super) async fn handle_exit(&mut self, exit: Exit) -> LifecycleEvent {
        self.leave();
        if matches!(self.life.state(), LifecycleState::Ready | LifecycleState::Standby) {
            // Before its last output is read, so that a spare can join the pool at once.
            self.report(WorkerReport::Left);
        }
        let mut how = exit.to_string();
        if let Some(mut running) = self.running.take() {
            running.exit_notifier.end(exit.cause());
            if let Some(why) = self.killed_for_memory(exit, running.process.kills_before) {
                how = format!("{how}: {why}");
            }
            if matches!(self.life.state(), LifecycleState::Booting { .. } | LifecycleState::Warming { .. }) {
                // The real cost is not known any more; it is at most about this.
                self.shared.charge(running.started.elapsed().min(LONGEST_CHARGE));
            }
            running.read_last_output().await;
            self.log.cut_off(&running.tail, running.app_pid());
            self.port_in_use = running.port_in_use();
            let when = match self.life.state() {
                LifecycleState::Booting { .. } | LifecycleState::Warming { .. } => {
                    Some("before it was ready")
                }
                LifecycleState::Ready if self.life.role() == PoolRole::Successor => {
                    Some("as soon as it was ready")
                }
                _ => None,
            };
            if let Some(when) = when {
                let line = running.tail.most_useful_line().map_or(String::new(), |line| format!(": {line}"));
                self.status.last_error = Some(format!("{how} {when}{line}"));
            } else if !matches!(self.life.state(), LifecycleState::Killed { .. }) {
                // The error of an earlier process does not explain this end.
                self.status.last_error = None;
            }
            self.note_end(exit, &how, &running);
            if running.unused_server.is_some() {
                self.shared.note_obstacle(None);
            }
        }
        self.inspection_fails(&how);
        self.status.last_exit = Some(how);
        LifecycleEvent::Exited(self.death(exit))
    }

    /// Why the kernel has killed the process, if no memory was left. The exit status shows only SIGKILL, so the kernel's counter of kills decides.
    fn killed_for_memory(&self, exit: Exit, before: Option<u64>) -> Option<String> {
        let is_ours = matches!(self.life.state(), LifecycleState::Killed { .. });
        // A shell or npm exits with 137 if its child was killed.
        let was_killed = exit.was_killed() || exit.code_and_signal().0 == Some(137);
        if is_ours || !was_killed { None } else { self.shared.context.killed_for_memory(before) }
    }

    fn death(&self, exit: Exit) -> DeathReport {
        let (shared, release) = (&self.shared, self.status.release);
        if self.served {
            shared.prove(release);
        }
        let (killed, served) = (exit.was_killed(), self.served);
        DeathReport { killed, served, proven: shared.is_proven(release), owed: shared.owed() }
    }

    pub(super) fn hear(&mut self, news: WorkerNews) -> Option<LifecycleEvent> {
        if let WorkerNews::Turn(turn) = news {
            let (turn, looked) = turn.unzip();
            (self.turn, self.looked) = (turn, looked.flatten());
            self.choose_settings();
            return Some(LifecycleEvent::Turn);
        }
        let running = self.running.as_mut()?;
        match news {
            WorkerNews::Said { message, message_sender } => self.listen_to(message, message_sender),
            WorkerNews::Connectable { address, owner } => self.connectable(address, owner),
            WorkerNews::ForeignProcess { text, owner } => {
                if let Some((pid, address)) = owner {
                    (running.port_owner, running.port_at) = (Some(pid), Some(address));
                }
                running.unused_server = Some(text.clone());
                self.log.warn(text);
                owner.and_then(|_| self.moved(RunningProcess::accepts))
            }
            WorkerNews::Unhealthy(answer) => {
                running.health = Some(answer);
                None
            }
            WorkerNews::Healthy => Some(LifecycleEvent::Healthy),
            WorkerNews::Warmed => Some(LifecycleEvent::Warmed),
            WorkerNews::Diagnosed(diagnosis) => {
                running.diagnosis = Some(diagnosis);
                Some(LifecycleEvent::Diagnosed)
            }
            WorkerNews::Blocked(blocked) => self.is_blocked(blocked),
            WorkerNews::Silent => {
                running.silent = true;
                self.put_off(LifecycleEvent::Hung)
            }
            WorkerNews::NotListening => {
                self.gets_no_requests(Reason::NotListening);
                None
            }
            WorkerNews::NoSocket(absence) => {
                let start_timeout = self.settings.borrow().start_timeout;
                if running.is_unreachable(absence, start_timeout) {
                    self.gets_no_requests(Reason::NoSocket);
                }
                None
            }
            WorkerNews::HasWaited { nth } => self.claim_has_waited(nth),
            WorkerNews::Inspected { stands_still } => self.inspected(stands_still),
            // Both are taken before.
            WorkerNews::Turn(_) | WorkerNews::Gone { .. } => None,
        }
    }

    fn connectable(&mut self, address: SocketAddr, owner: Option<TcpListen>) -> Option<LifecycleEvent> {
        let running = self.running.as_mut()?;
        running.port_at = Some(address);
        running.port_owner = owner.map(|listen| listen.pid);
        if let Some(TcpListen { port, is_open: true, .. }) = owner {
            self.log.warn(format!("the app listens on *:{port}, not on its HOST.{EXPOSED}"));
        }
        // It may be in the pool already, because the app said that it is ready. Then its event loop was not known.
        if owner.is_some() && self.membership.is_some() {
            self.join();
        }
        self.moved(RunningProcess::accepts)
    }

    fn listen_to(&mut self, message: FromWorker, message_sender: MessageSender) -> Option<LifecycleEvent> {
        match message {
            FromWorker::Ready => self.moved(RunningProcess::accepts),
            FromWorker::Listening(claim) => self.claims(claim, message_sender),
            FromWorker::Closed { pid } => {
                let start_timeout = self.settings.borrow().start_timeout;
                self.running.as_mut()?.closes(pid, start_timeout);
                None
            }
            FromWorker::Hears => {
                self.running.as_mut()?.hears(message_sender);
                Some(LifecycleEvent::Hears)
            }
            // Its connection takes no more messages.
            FromWorker::Disconnects => None,
            FromWorker::Warning { text, unused } => {
                self.note_unused(&text, unused);
                self.log.warn(text);
                None
            }
            FromWorker::Note { text, unused } => {
                self.note_unused(&text, unused);
                self.log.event(WorkerEvent::Note { text });
                None
            }
            FromWorker::Report(report) => {
                let running = self.running.as_mut()?;
                let is_cluster = report.is_none();
                running.reported(report.map(|report| *report));
                if is_cluster && !std::mem::replace(&mut running.has_cluster, true) {
                    self.log.warn(CLUSTER.to_owned());
                    self.serves_elsewhere();
                }
                None
            }
            FromWorker::Flushed => {
                self.running.as_ref()?.has_flushed();
                None
            }
            FromWorker::Collected { micros, .. } => {
                self.running.as_ref()?.collected(Duration::from_micros(micros));
                None
            }
            FromWorker::Inspecting => {
                self.running.as_ref()?.told_of_inspection(PreloadReply::Begins);
                None
            }
            FromWorker::Inspected { error } => {
                self.running.as_ref()?.told_of_inspection(PreloadReply::Ended(error));
                None
            }
        }
    }

    fn claims(&mut self, claim: ListenClaim, message_sender: MessageSender) -> Option<LifecycleEvent> {
        let shared = Arc::clone(&self.shared);
        if !claim.helper {
            shared.trusts_helpers.store(false, Ordering::Relaxed);
        }
        let waits = if claim.helper && !shared.trusts_helpers.load(Ordering::Relaxed) {
            Some(ClaimWait::Helper)
        } else {
            shared.first_ports().contains(&claim.port).then_some(ClaimWait::FirstPort)
        };
        let start_timeout = self.settings.borrow().start_timeout;
        let before = self.running.as_ref().and_then(RunningProcess::served_port);
        let (mut is_new, mut told) = (false, None);
        let heard = self.moved(|running| {
            let listens = running.listens(claim, message_sender, waits, start_timeout);
            is_new = listens.unwrap_or_else(|text| {
                told = Some(text);
                false
            });
            is_new
        });
        if let Some(first) = before.filter(|before| is_new && *before != claim.port) {
            shared.first_ports().insert(first);
        }
        if let Some(text) = told {
            self.log.event(WorkerEvent::Note { text });
        }
        self.observe_the_serving_thread();
        heard
    }

    /// No better claim has come: the next boot need not wait for one.
    fn claim_has_waited(&mut self, nth: u32) -> Option<LifecycleEvent> {
        let mut is_adopted = false;
        let heard = self.moved(|running| {
            is_adopted = running.has_waited(nth);
            is_adopted
        });
        let running = self.running.as_ref()?;
        self.shared.trusts_helpers.fetch_or(running.is_helper(), Ordering::Relaxed);
        if let Some(port) = running.served_port().filter(|_| is_adopted) {
            self.shared.first_ports().remove(&port);
        }
        heard
    }

    /// If another process or thread serves the requests at the same address now, joins the pool again with the event loop of that thread.
    fn observe_the_serving_thread(&mut self) {
        let thread = self.running.as_ref().and_then(RunningProcess::serving_thread);
        let is_of_another = |capacity: &Arc<Capacity>| !capacity.is_of(thread);
        if self.membership.is_some() && self.status.capacity.as_ref().is_some_and(is_of_another) {
            self.join();
        }
    }

    /// The requests are served by other processes than the one whose event loop is known.
    fn serves_elsewhere(&self) {
        if let (Some(membership), Some(capacity)) = (&self.membership, &self.status.capacity) {
            capacity.serve_elsewhere();
            capacity.apply(&membership.gauge(), self.settings.borrow().slots);
        }
    }

    /// The app has a server that Hostler does not use. If this is no second server, the worker does not get ready.
    fn note_unused(&mut self, text: &str, unused: bool) {
        if let Some(running) = self.running.as_mut().filter(|_| unused) {
            running.unused_server = Some(text.to_owned());
            self.shared.note_obstacle(Some(text));
        }
    }

    /// No new request reaches the worker. Warns once, and reports it each time. A worker that is leaving anyway needs neither.
    fn gets_no_requests(&mut self, why: Reason) {
        let is_wanted = matches!(self.life.state(), LifecycleState::Ready | LifecycleState::Standby);
        let Some(running) = self.running.as_mut().filter(|_| is_wanted) else { return };
        if !std::mem::replace(&mut running.deafness_told, true) {
            self.log.warn(if why == Reason::NotListening { NOT_LISTENING } else { NO_SOCKET });
        }
        self.report(WorkerReport::NotListening(why));
    }

    /// `change` sets the worker's address and returns whether it is new. If so, the pool must know it.
    fn moved(&mut self, change: impl FnOnce(&mut RunningProcess) -> bool) -> Option<LifecycleEvent> {
        let running = self.running.as_mut()?;
        let is_new = change(running);
        running.address.as_ref()?;
        if running.unused_server.take().is_some() {
            // Hostler uses another server of the app.
            self.shared.note_obstacle(None);
        }
        if is_new {
            running.watch_socket();
        }
        if is_new {
            self.is_at_a_new_address();
        }
        Some(LifecycleEvent::Listening)
    }

    /// Joins the pool, asks for the health path or warms up again, whichever was done last at the old address: the server there may be another
    /// one, or closed.
    fn is_at_a_new_address(&mut self) {
        if self.membership.is_some() {
            self.join();
        } else if self.life.awaits_health() {
            self.check_health();
        } else {
            self.warm_up();
        }
    }
}
