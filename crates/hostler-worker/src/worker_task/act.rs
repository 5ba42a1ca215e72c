//! Carries out the actions of a worker's lifecycle: boots, joins, leaves, kills. Does not choose the actions.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::state::WorkerTask;
use crate::boot_gate::Turns;
use crate::compile_cache::{self, CacheChoice};
use crate::failed_boot;
use crate::health;
use crate::inspector::Diagnosis;
use crate::lifecycle::{Action, KillReason, LifecycleEvent, LifecycleState, PoolRole};
use crate::log::{Tail, WorkerEvent};
use crate::message::ToWorker;
use crate::news::WorkerNews;
use crate::node_channel;
use crate::recycling;
use crate::rollout::WorkerReport;
use crate::running::RunningProcess;
use crate::settings::{CompileCache, WorkerFacts, WorkerSettings};
use crate::spawn::Spawn;
use crate::start_files;

impl<E: Send + Sync + 'static> WorkerTask<E> {
    pub(super) fn perform(&mut self, action: Action) -> Option<LifecycleEvent> {
        match action {
            Action::AskTurn => self.ask_turn(),
            Action::Spawn => return self.spawn(),
            Action::CheckHealth => self.check_health(),
            Action::WarmUp => self.warm_up(),
            Action::Join => self.join(),
            Action::YieldTurn => self.turn = None,
            Action::TakeOver => self.report(WorkerReport::TookOver),
            Action::Leave => self.leave(),
            Action::Withdraw => self.withdraw(),
            Action::Diagnose => return self.diagnose(),
            Action::SayShutdown => {
                self.dismiss();
                let hears = self.running.as_ref().is_some_and(|running| running.say(ToWorker::Shutdown));
                return (!hears).then_some(LifecycleEvent::Deaf);
            }
            Action::Terminate => {
                self.dismiss();
                if let Some(running) = &mut self.running {
                    running.terminate();
                }
            }
            Action::Kill(why) => self.kill(why),
        }
        None
    }

    /// Hostler stops the process, so the requests that end with it did not cause its end.
    fn dismiss(&self) {
        if let Some(running) = &self.running {
            running.exit_notifier.dismiss();
        }
    }

    pub(super) fn ask_turn(&mut self) {
        // After a pool has slept, no other worker is left whose status shows that the app has worked.
        self.status.has_worked |= self.shared.has_worked();
        self.status.generation = self.starts.fetch_add(1, Ordering::Relaxed) + 1;
        let (context, news_sender) =
            (self.shared.context.clone(), self.news_sender.of_generation(self.status.generation));
        // A worker that was ready is missing in its pool, so it does not wait behind the boots of others, which may take
        // long. The same holds for the first worker of a pool that wakes up: requests wait for it.
        let is_missing = self.life.deaths() > 0 && self.life.failed_boots() == 0;
        let queue = if is_missing || self.shared.pool.waking_since().is_some() {
            Turns::Returns
        } else {
            Turns::Starts
        };
        let turn = move || {
            let context = context.clone();
            async move { context.turn(queue).await }
        };
        let (settings, log) = (self.settings_of_boot(), self.log.clone());
        let (text, start_timeout) = (start_files::waits_for(&settings), settings.start_timeout);
        let sockets = self.shared.context.directory();
        let look = move || start_files::look(&settings, &sockets);
        let waits = move || log.warn(text.as_str());
        // A restart waits for a successor, and its predecessor serves. Any other worker starts as soon as its files answer.
        let (shared, is_successor) = (Arc::clone(&self.shared), self.life.role() == PoolRole::Successor);
        let gives_up = move || is_successor && shared.restarting.load(Ordering::Relaxed);
        let patience = (start_timeout, gives_up);
        self.asking = JoinSet::new();
        self.asking.spawn(async move {
            let turn = start_files::turn_when_they_answer(turn, look, waits, patience).await;
            news_sender.send(WorkerNews::Turn(turn)).await;
        });
    }

    /// The settings for the next boot: the newest ones or, during a restart, those that the worker was last ready with.
    /// It is not known yet whether the new ones work, and if they do not, the restart takes them back.
    fn settings_of_boot(&self) -> Arc<WorkerSettings> {
        let newest = Arc::clone(&self.settings.borrow());
        match &self.known_good {
            Some(known) if self.shared.restarting.load(Ordering::Relaxed) => Arc::clone(known),
            _ => newest,
        }
    }

    /// Chooses the settings of the boot that begins now, before its time limit begins.
    pub(super) fn choose_settings(&mut self) {
        if self.life.state() == LifecycleState::Queued {
            self.booted_with = Some(self.settings_of_boot());
            self.life.adopt(self.settings_of_life());
        }
    }

    /// The newest settings. But if they would boot the worker differently, its health path, warm-up paths and start_timeout stay those of its own
    /// boot: the newest ones are for its successor.
    pub(super) fn settings_of_life(&self) -> Arc<WorkerSettings> {
        let newest = Arc::clone(&self.settings.borrow());
        match &self.booted_with {
            Some(own) if !own.boots_like(&newest) => Arc::new(WorkerSettings {
                health: own.health.clone(),
                warmup: own.warmup.clone(),
                start_timeout: own.start_timeout,
                ..(*newest).clone()
            }),
            _ => newest,
        }
    }

    fn spawn(&mut self) -> Option<LifecycleEvent> {
        let shared = &self.shared;
        let settings = self.booted_with.clone().unwrap_or_else(|| self.settings_of_boot());
        self.served = false;
        let has_files = self.turn.as_ref().ok_or_else(|| start_files::no_answer(&settings));
        let folder = has_files.and_then(|_| shared.context.folder(&self.log));
        let started = folder.and_then(|folder| {
            let compile_cache = self.compile_cache(&settings, folder.path());
            let spawn = Spawn {
                settings: &settings,
                compile_cache: &compile_cache,
                keeps_channel: self.keeps_channel(&settings),
                context: &shared.context,
                folder: &folder,
                pool: shared.pool.name(),
                index: self.status.index,
                generation: self.status.generation,
            };
            RunningProcess::start(&spawn, &self.log, self.news_sender.of_generation(self.status.generation))
        });
        match started {
            Ok(running) => {
                self.log.event(WorkerEvent::Started { pid: running.pid() });
                if let Some(turn) = &self.turn {
                    turn.is_of(running.pid());
                }
                self.running = Some(running);
                self.status.earlier_requests = 0;
                self.status.vitals = Arc::default();
                self.status.share = recycling::share(&mut fastrand::Rng::new());
                None
            }
            Err(error) => {
                self.status.last_error = Some(error.to_string());
                self.boot_failed(
                    error.to_string(),
                    failed_boot::exit_code_of(&error),
                    &Tail::default(),
                    None,
                );
                Some(LifecycleEvent::SpawnFailed { proven: self.shared.is_proven(self.status.release) })
            }
        }
    }

    /// Whether the app gets Node's channel. A boot with settings that no look was for reads its files here.
    fn keeps_channel(&self, settings: &WorkerSettings) -> bool {
        let looked = self.looked.as_ref().and_then(|looked| looked.keeps_channel(settings));
        looked.unwrap_or_else(|| node_channel::is_kept(settings))
    }

    /// The folder of the worker's compile cache. It is made again if it was removed.
    fn compile_cache(&self, settings: &WorkerSettings, runtime: &Path) -> CacheChoice {
        let choice = compile_cache::choose(settings, runtime);
        let done = &self.shared.cache_flushes;
        if let Some(folder) = choice.folder.clone().filter(|_| choice.is_kept_tidy)
            && done.begins_to_prune(self.status.release)
        {
            tokio::task::spawn_blocking(move || compile_cache::prune(&folder));
        }
        let is_asked_for = settings.compile_cache != CompileCache::Auto;
        if let Some(why) = &choice.complaint
            && !done.complained.swap(true, Ordering::Relaxed)
        {
            self.log.event(WorkerEvent::NoCompileCache { why: why.clone(), is_asked_for });
        }
        choice
    }

    pub(super) fn check_health(&mut self) {
        let path = self.settings_of_life().health.clone();
        if let (Some(running), Some(path)) = (&mut self.running, path)
            && let Some(address) = running.address.clone()
        {
            let (probe, news_sender) =
                (Arc::clone(&self.shared.probe), self.news_sender.of_generation(self.status.generation));
            running.ask(health::until_healthy(probe, address, path, news_sender));
        }
    }

    pub(super) fn warm_up(&mut self) {
        let Some(until) = self.life.warm_by() else { return };
        let (at_once, paths) = (self.warmups_at_once(), self.settings_of_life().warmup.clone());
        if let Some(running) = &mut self.running
            && let Some(address) = running.address.clone()
        {
            let probe = Arc::clone(&self.shared.probe);
            let ways = (self.log.clone(), self.news_sender.of_generation(self.status.generation));
            running.ask(health::warm_up(probe, address, (paths, at_once), until, ways));
        }
    }

    pub(super) fn join(&mut self) {
        let Some(running) = &self.running else { return };
        let Some(address) = running.address.clone() else { return };
        let pid = running.pid();
        let facts = WorkerFacts {
            index: self.status.index,
            generation: self.status.generation,
            release: self.status.release,
            pid,
            exit_watch: running.exit_notifier.exit_watch(pid),
        };
        let endpoint = (self.shared.endpoint)(address, facts);
        let is_first = self.status.ready_at.is_none();
        // It may be a member already, whose requests still run: the app listens at another address now, or its event loop is known now.
        self.note_service();
        let before = self.membership.take();
        self.enter(endpoint);
        before.into_iter().for_each(|membership| self.leaving.add(membership));
        if !is_first && self.life.role() == PoolRole::Spare {
            self.log.event(WorkerEvent::SpareJoined { pid });
        }
        self.attend();
    }

    /// Its served requests count also after it has left.
    pub(super) fn leave(&mut self) {
        self.note_service();
        self.membership = None;
    }

    fn note_service(&mut self) {
        let load = self.membership.as_ref().and_then(|membership| membership.gauge().load());
        self.served |= load.is_some_and(|load| load.granted > 0 || load.tunnels > 0 || load.streams > 0);
        self.status.earlier_requests += load.map_or(0, |load| load.granted);
    }

    fn withdraw(&mut self) {
        self.note_service();
        let membership = self.membership.take();
        membership.into_iter().for_each(|membership| self.leaving.add(membership));
    }

    fn diagnose(&mut self) -> Option<LifecycleEvent> {
        let is_asked = self.running.as_mut().is_some_and(RunningProcess::diagnose);
        (!is_asked).then_some(LifecycleEvent::Diagnosed)
    }

    fn kill(&mut self, why: KillReason) {
        let Some(running) = &self.running else { return };
        if why != KillReason::Ordered {
            if why == KillReason::Hung {
                running.exit_notifier.hangs();
                self.status.hung_at = Some(Instant::now());
                self.status.stack = running.diagnosis.as_ref().and_then(Diagnosis::frames).map(<[_]>::to_vec);
            }
            let complaint = running.complaint(why, &self.settings_of_life());
            let (pid, tail) = (running.app_pid(), running.tail.lines());
            self.log.event(WorkerEvent::Killed { pid, why: complaint.clone(), tail });
            let does_not_start = match why {
                KillReason::StartTimeout => true,
                KillReason::Orphaned => !self.has_proved_itself(),
                KillReason::StopTimeout | KillReason::Hung | KillReason::Ordered => false,
            };
            if why == KillReason::StartTimeout && self.life.deaths() > 0 {
                // Once the process has ended, its CPU time is not known any more.
                self.shared.charge(running.cost());
            }
            if does_not_start {
                let code = failed_boot::exit_code(None, None);
                self.boot_failed(complaint.clone(), code, &running.tail, running.obstacle());
            }
            let line = running.tail.most_useful_line().filter(|_| does_not_start);
            let line = line.map_or(String::new(), |line| format!("; it printed last: {line}"));
            self.status.last_error = Some(format!("{complaint}{line}"));
        } else {
            running.exit_notifier.dismiss();
        }
        running.kill();
    }
}
