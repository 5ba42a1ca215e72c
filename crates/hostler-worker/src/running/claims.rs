//! Which server of a worker gets its requests: the claims of its processes, and servers that were closed. Writes no log.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::sleep;

use super::RunningProcess;
use super::reach::{REOPENING, is_closed};
use crate::context::raise_open_files;
use crate::main_thread::ServingThread;
use crate::message::{ListenClaim, ToWorker, Via};
use crate::message_sender::MessageSender;
use crate::news::WorkerNews;
use crate::process::tell_end;
use crate::process_end::is_alive;
use crate::settings::WorkerAddress;
use crate::spawn::AppBinding;

/// How long the claim of a helper waits. A helper was started by another process of the app, and that process may be the app itself and listen
/// later. Most apps listen within this time. If that process only starts the app, the pool loses this time once.
const HELPER_WAIT: Duration = Duration::from_secs(5);

/// Why a claim waits for a better one while the worker has no address.
#[derive(Clone, Copy)]
pub enum ClaimWait {
    /// The process may be a helper of the app.
    Helper,
    /// In an earlier boot, the app had a better server than the one on this port.
    FirstPort,
}

impl RunningProcess {
    /// A process reports where it listens. An app may close its server and listen again elsewhere. Returns whether the address is new. `Err`: the
    /// claim waits; the text is for the operator.
    pub fn listens(
        &mut self,
        claim: ListenClaim,
        preload: MessageSender,
        waits: Option<ClaimWait>,
        start_timeout: Duration,
    ) -> Result<bool, String> {
        let newest = [self.claim, self.waiting.as_ref().map(|(claim, _)| *claim)];
        if let Some(better) = newest.into_iter().flatten().find(|known| claim.nth < known.nth) {
            // A helper of the app that has listened first reports it over another connection, so its message may be the later one.
            preload.tell(ToWorker::Yield(better));
            return Ok(false);
        }
        if let Some((_, waiting)) = self.waiting.take() {
            waiting.tell(ToWorker::Yield(claim));
        }
        match waits {
            Some(why) if self.address.is_none() => {
                // The health path and the warm-up need time as well.
                let most = start_timeout.saturating_sub(self.started.elapsed()) / 2;
                let wait = match why {
                    ClaimWait::Helper => HELPER_WAIT.min(most),
                    ClaimWait::FirstPort => most,
                };
                self.waiting = Some((claim, preload));
                let news_sender = self.news_sender.clone();
                self.tasks.spawn(async move {
                    sleep(wait).await;
                    news_sender.send(WorkerNews::HasWaited { nth: claim.nth }).await;
                });
                Err(told(claim, why, wait))
            }
            _ => Ok(self.adopt(claim, preload)),
        }
    }

    /// The wait of claim `nth` is over, so it is adopted unless a better one has come. The process may be in a group of its own (`detached`).
    /// Returns whether the address is new.
    pub fn has_waited(&mut self, nth: u32) -> bool {
        match self.waiting.take_if(|(claim, _)| claim.nth == nth) {
            Some((claim, preload)) if is_alive(claim.pid) || self.process.is_apart(claim.pid) => {
                self.adopt(claim, preload)
            }
            _ => false,
        }
    }

    fn adopt(&mut self, claim: ListenClaim, preload: MessageSender) -> bool {
        let AppBinding::Socket { inherited, own, .. } = &self.binding else { return false };
        let address = WorkerAddress::Unix(match (claim.via, claim.nth) {
            (Via::Fd, _) => inherited.clone(),
            (Via::Path, 1) => own.clone(),
            (Via::Path, nth) => own.with_added_extension(nth.to_string()),
        });
        let is_other = |before: &ListenClaim| (before.pid, before.thread) != (claim.pid, claim.thread);
        let before = self.preload.replace(preload);
        if let Some(before) = before.filter(|_| self.claim.as_ref().is_some_and(is_other)) {
            before.tell(ToWorker::Yield(claim));
        }
        self.claim = Some(claim);
        self.deafness_told = false;
        for task in [self.foreign_processes.take(), self.listen_check.take()].into_iter().flatten() {
            task.abort();
        }
        let listener = Some(claim.pid).filter(|pid| !self.process.is_apart(*pid));
        self.shown_pid.store(listener.unwrap_or(self.process.pid()), Ordering::Relaxed);
        if listener == Some(self.process.pid()) {
            raise_open_files(self.process.pid());
        }
        let is_other_process = std::mem::replace(&mut self.listener, listener) != listener;
        if is_other_process {
            self.other_group = listener.and_then(|pid| self.process.other_group_of(pid));
        }
        if let Some(pid) = listener.filter(|pid| is_other_process && *pid != self.process.pid()) {
            // No channel reports its end: an app may close its own, and a shell that started it keeps the channel open.
            self.tasks.spawn(tell_end(pid, self.news_sender.clone()));
        }
        self.address.replace(address.clone()) != Some(address)
    }

    /// The thread that serves the requests, if that is known.
    pub fn serving_thread(&self) -> Option<ServingThread> {
        match self.claim.filter(|claim| claim.thread) {
            Some(ListenClaim { pid, tid, .. }) if self.listener == Some(pid) => {
                tid.map(|tid| ServingThread { pid, tid: Some(tid) })
            }
            Some(_) => None,
            None => self.serving_pid().map(ServingThread::main_of),
        }
    }

    /// The port that the app asked for with the server that gets the requests. None: there is none, or it is closed.
    pub fn served_port(&self) -> Option<u16> {
        let listens = self.listen_check.is_none() && !self.claim_lost;
        self.claim.filter(|_| listens).map(|claim| claim.port)
    }

    /// A helper of the app gets the requests, as far as is known.
    pub fn is_helper(&self) -> bool {
        self.claim.is_some_and(|claim| claim.helper)
    }

    /// Process `pid` has closed its server. If nothing listens again in time, the worker task is told, every [`REOPENING`]. During the boot, the
    /// time is the rest of `start_timeout`: a first server may only test whether a port is free, or answer until the app's own server listens.
    pub fn closes(&mut self, pid: u32, start_timeout: Duration) {
        self.waiting.take_if(|(claim, _)| claim.pid == pid);
        if self.claim.is_none_or(|claim| claim.pid != pid) || self.listen_check.is_some() {
            return;
        }
        let boots_for = start_timeout.saturating_sub(self.started.elapsed());
        let (address, news_sender) = (self.address.clone(), self.news_sender.clone());
        self.listen_check = Some(self.tasks.spawn(async move {
            sleep(REOPENING.max(boots_for)).await;
            loop {
                // Another process or thread of the app may have the same socket.
                let is_closed = match &address {
                    Some(address) => is_closed(address).await,
                    None => true,
                };
                if is_closed {
                    news_sender.send(WorkerNews::NotListening).await;
                }
                sleep(REOPENING).await;
            }
        }));
    }
}

/// For the operator, about a server that waits.
fn told(ListenClaim { pid, port, .. }: ListenClaim, why: ClaimWait, wait: Duration) -> String {
    let wait = wait.as_secs_f64();
    match why {
        ClaimWait::Helper => format!(
            "process {pid}, which the app's command has started, listens on port {port}; Hostler waits {wait:.1} s for the process that \
             started it: if that one listens too, it is the app. To avoid the wait, set port of the pool (--port)"
        ),
        ClaimWait::FirstPort => format!(
            "the app listens on port {port}; Hostler waits up to {wait:.1} s for another server of it, which got the requests in an earlier \
             worker. To avoid the wait, set port of the pool (--port)"
        ),
    }
}
