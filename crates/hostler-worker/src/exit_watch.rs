//! Tells the end of a worker's process to the requests that it had. Knows neither the process nor the requests.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};

use super::process_end::is_alive;

/// Watches for the end of one process. A clone is cheap.
#[derive(Clone, Debug)]
pub struct ExitWatch {
    pid: u32,
    state: watch::Receiver<WatchState>,
    unfinished: Unfinished,
    tunnels: Unfinished,
}

/// The requests that the process has not finished although their client has left or their response pauses. Or the tunnels of the process.
#[derive(Clone, Debug, Default)]
struct Unfinished(Arc<Mutex<NotedRequests>>);

/// In the order in which they were noted: since when the process has them, and their names for the log.
type NotedRequests = BTreeMap<u64, (Instant, Arc<str>)>;

/// A request that the process has not finished, or a tunnel. Its owner drops it when the request or tunnel has ended.
#[derive(Debug)]
pub struct UnfinishedRequest {
    all: Unfinished,
    number: u64,
}

impl Drop for UnfinishedRequest {
    fn drop(&mut self) {
        self.all.lock().remove(&self.number);
    }
}

impl Unfinished {
    fn lock(&self) -> MutexGuard<'_, NotedRequests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, name: Arc<str>, since: Instant) -> UnfinishedRequest {
        let mut all = self.lock();
        let number = all.last_key_value().map_or(0, |(last, _)| last + 1);
        all.insert(number, (since, name));
        drop(all);
        UnfinishedRequest { all: self.clone(), number }
    }

    /// The oldest, for the log, and how many more there are. None: there is none.
    fn oldest(&self) -> Option<String> {
        let all = self.lock();
        let (since, name) = all.values().min_by_key(|(since, _)| *since)?;
        let oldest = format!("{name}, for {:.1} s", since.elapsed().as_secs_f64());
        Some(if all.len() == 1 { oldest } else { format!("{oldest}, and {} more", all.len() - 1) })
    }
}

/// What caused the end of a process, as far as its exit shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCause {
    /// The process itself: an exit code, an abort (V8 out of memory), a crash, or a hang.
    Own,
    /// A signal from outside (the kernel's out-of-memory killer, an operator), or the cause is unknown.
    Outside,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct WatchState {
    dismissed: bool,
    hung: bool,
    ended: Option<ExitCause>,
}

impl ExitWatch {
    /// A watch for a process that has ended and that nothing has watched.
    pub fn ended(pid: u32) -> Self {
        ExitNotifier::new().exit_watch(pid)
    }

    /// The process that listens.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The process does not finish a request that it got at `since`. `name`: as the log may show it.
    pub fn note_unfinished(&self, name: Arc<str>, since: Instant) -> UnfinishedRequest {
        self.unfinished.note(name, since)
    }

    /// The process has a tunnel from now on. `name`: as the log may show it.
    pub fn note_tunnel(&self, name: Arc<str>) -> UnfinishedRequest {
        self.tunnels.note(name, Instant::now())
    }

    /// Waits at most `time_limit` for the end of the process. Returns the cause if the process ended and Hostler had not
    /// told it to stop: it crashed, hung, exited, or was killed from outside.
    pub async fn death_within(&self, time_limit: Duration) -> Option<ExitCause> {
        let mut state = self.state.clone();
        let news = async { state.wait_for(|state| state.ended.is_some()).await.is_ok() };
        let ended = match timeout(time_limit, news).await {
            Ok(ended) => ended,
            // The task that watches the process may be slow, so ask the kernel.
            Err(_) => has_exited(self.pid).await,
        };
        let state = *self.state.borrow();
        let cause = if state.hung { ExitCause::Own } else { state.ended.unwrap_or(ExitCause::Outside) };
        (ended && !state.dismissed).then_some(cause)
    }
}

async fn has_exited(pid: u32) -> bool {
    let look = spawn_blocking(move || is_over(std::fs::read_to_string(format!("/proc/{pid}/stat")), pid));
    look.await.unwrap_or(false)
}

/// The process is gone, or is a zombie that its parent has not reaped yet. `stat`: its stat file.
fn is_over(stat: io::Result<String>, pid: u32) -> bool {
    match stat {
        Ok(stat) => stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X'])),
        // It is gone, or the system has no such files, as macOS.
        Err(_) => !is_alive(pid),
    }
}

/// Sends to all [`ExitWatch`]es of one process. Dropping it means that the process has ended.
#[derive(Debug)]
pub(super) struct ExitNotifier {
    state: watch::Sender<WatchState>,
    unfinished: Unfinished,
    tunnels: Unfinished,
}

impl ExitNotifier {
    pub fn new() -> Self {
        Self {
            state: watch::Sender::default(),
            unfinished: Unfinished::default(),
            tunnels: Unfinished::default(),
        }
    }

    pub fn exit_watch(&self, pid: u32) -> ExitWatch {
        ExitWatch {
            pid,
            state: self.state.subscribe(),
            unfinished: self.unfinished.clone(),
            tunnels: self.tunnels.clone(),
        }
    }

    /// The oldest request that the process has not finished, for the log, and how many more there are. None: there is none.
    pub fn unfinished(&self) -> Option<String> {
        self.unfinished.oldest()
    }

    /// The oldest tunnel of the process, in the same form: the process may hang because of a message in a tunnel.
    pub fn tunnels(&self) -> Option<String> {
        self.tunnels.oldest()
    }

    /// Hostler tells the process to stop, so its requests did not cause the end.
    pub fn dismiss(&self) {
        self.state.send_modify(|state| state.dismissed = true);
    }

    /// Hostler kills the process because it hangs. The cause of the end is then [`ExitCause::Own`], whatever the signal.
    pub fn hangs(&self) {
        self.state.send_modify(|state| state.hung = true);
    }

    pub fn end(&self, cause: ExitCause) {
        self.state.send_modify(|state| state.ended = Some(cause));
    }
}

impl Drop for ExitNotifier {
    fn drop(&mut self) {
        self.state.send_modify(|state| state.ended = state.ended.or(Some(ExitCause::Outside)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_worker_with_an_order_to_stop_has_not_died() {
        let (stopped, crashed) = (ExitNotifier::new(), ExitNotifier::new());
        let watches = [stopped.exit_watch(1), crashed.exit_watch(2)];
        stopped.dismiss();
        drop((stopped, crashed));
        let death = async |exit_watch: &ExitWatch| exit_watch.death_within(Duration::MAX).await;
        assert_eq!((death(&watches[0]).await, death(&watches[1]).await), (None, Some(ExitCause::Outside)));
    }

    #[tokio::test]
    async fn requests_of_a_process_learn_the_cause_of_its_end() {
        let notifiers = [ExitNotifier::new(), ExitNotifier::new(), ExitNotifier::new()];
        let watches = [1, 2, 3].map(|pid| notifiers[pid as usize - 1].exit_watch(pid));
        let [exits, is_killed, hangs] = notifiers;
        exits.end(ExitCause::Own);
        is_killed.end(ExitCause::Outside);
        hangs.hangs();
        // The signal that then kills it does not count.
        hangs.end(ExitCause::Outside);
        drop((exits, is_killed, hangs));
        for (exit_watch, cause) in watches.iter().zip([ExitCause::Own, ExitCause::Outside, ExitCause::Own]) {
            assert_eq!(exit_watch.death_within(Duration::MAX).await, Some(cause), "{exit_watch:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_unfinished_request_is_named() {
        let exit_notifier = ExitNotifier::new();
        let exit_watch = exit_notifier.exit_watch(1);
        assert_eq!(exit_notifier.unfinished(), None);
        let since = Instant::now();
        let newer = exit_watch.note_unfinished("GET /b".into(), since + Duration::from_secs(1));
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(exit_notifier.unfinished().as_deref(), Some("GET /b, for 2.0 s"));
        let older = exit_watch.note_unfinished("GET /a".into(), since);
        assert_eq!(exit_notifier.unfinished().as_deref(), Some("GET /a, for 3.0 s, and 1 more"));
        drop(older);
        assert_eq!(exit_notifier.unfinished().as_deref(), Some("GET /b, for 2.0 s"));
        drop(newer);
        assert_eq!(exit_notifier.unfinished(), None);
        let tunnels = ["GET /a", "GET /b"].map(|name| exit_watch.note_tunnel(name.into()));
        assert_eq!(exit_notifier.tunnels().as_deref(), Some("GET /a, for 0.0 s, and 1 more"));
        assert_eq!(exit_notifier.unfinished(), None);
        drop(tunnels);
        assert_eq!(exit_notifier.tunnels(), None);
    }

    #[tokio::test]
    async fn without_an_exit_report_the_kernel_is_asked() {
        let exit_notifier = ExitNotifier::new();
        let mut process = std::process::Command::new("true").spawn().unwrap();
        process.wait().unwrap();
        assert!(exit_notifier.exit_watch(process.id()).death_within(Duration::ZERO).await.is_some());
        assert!(exit_notifier.exit_watch(std::process::id()).death_within(Duration::ZERO).await.is_none());
    }

    #[test]
    fn a_process_without_a_stat_file_is_over_only_if_it_is_gone() {
        let missing = || -> io::Result<String> { Err(io::ErrorKind::NotFound.into()) };
        assert!(!is_over(missing(), std::process::id()));
        let mut process = std::process::Command::new("true").spawn().unwrap();
        process.wait().unwrap();
        assert!(is_over(missing(), process.id()));
    }
}
