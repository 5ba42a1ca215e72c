//! A worker's process together with what is known of it and kept for it until it is gone; decides nothing.

use std::io;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::channel::{Speaker, speak_over_control, speak_over_ipc};
use super::collecting::Collecting;
use super::exit_watch::ExitNotifier;
use super::health;
use super::heartbeat::Heartbeat;
use super::inspector::{self, Diagnosis, Notices};
use super::lifecycle::Why;
use super::log::{OutputStream, Tail, WorkerLog};
use super::message::{LoopTime, ToWorker, Via};
use super::news::{Wire, WorkerNews};
use super::process::{Exit, Process, cpu_time, tell_end};
use super::settings::{WorkerAddress, WorkerSettings};
use super::spawn::{Spawn, Ways};

/// How long the last lines of a dead worker are waited for. Its pipes end with its group, unless somebody left the
/// group and holds them.
const LAST_WORDS: Duration = Duration::from_millis(250);

pub(super) struct RunningProcess {
    pub process: Process,
    pub started: Instant,
    /// Tells those who had requests with it what becomes of it.
    pub exit_notifier: ExitNotifier,
    pub address: Option<WorkerAddress>,
    /// The last answer of the health path that was not 2xx.
    pub health: Option<String>,
    /// The last lines it printed.
    pub tail: Tail,
    /// Where it was stuck, once it has been asked.
    pub diagnosis: Option<Diagnosis>,
    /// It hangs because it does not answer us, not because a request has taken too long.
    pub silent: bool,
    /// Tasks that end with the process.
    pub tasks: JoinSet<()>,
    output: JoinSet<()>,
    /// The process that listens, once that is known.
    listener: Option<u32>,
    /// The process that listens is gone.
    claim_lost: bool,
    notices: Notices,
    wire: Wire,
    /// The way to the preload in the process that listens.
    preload: Option<Speaker>,
    reports: Option<mpsc::Sender<Option<LoopTime>>>,
    collected: Option<mpsc::Sender<Duration>>,
    /// The way to the app, if it hears.
    app: Option<Speaker>,
    ways: Ways,
}

impl RunningProcess {
    pub fn start(spawn: &Spawn<'_>, log: &WorkerLog, wire: Wire) -> io::Result<Self> {
        let mut spawned = spawn.spawn()?;
        let (tail, notices) = (Tail::default(), Notices::default());
        let (mut output, mut tasks) = (JoinSet::new(), JoinSet::new());
        if let Some(pipe) = spawned.stdout {
            output.spawn(log.clone().read(OutputStream::Stdout, pipe, tail.clone(), notices.clone()));
        }
        if let Some(pipe) = spawned.stderr {
            output.spawn(log.clone().read(OutputStream::Stderr, pipe, tail.clone(), notices.clone()));
        }
        tasks.spawn(speak_over_ipc(spawned.channel, wire.clone()));
        match &mut spawned.ways {
            Ways::Port(port) => drop(tasks.spawn(health::until_connectable(port.address, wire.clone()))),
            Ways::Socket { control, .. } => {
                if let Some(listener) = control.take() {
                    tasks.spawn(speak_over_control(listener, wire.clone()));
                }
            }
        }
        Ok(Self {
            process: spawned.process,
            started: Instant::now(),
            exit_notifier: ExitNotifier::new(),
            address: None,
            health: None,
            tail,
            diagnosis: None,
            silent: false,
            tasks,
            output,
            listener: None,
            claim_lost: false,
            notices,
            wire,
            preload: None,
            reports: None,
            collected: None,
            app: None,
            ways: spawned.ways,
        })
    }

    /// The process that listens, or else the one that was started.
    pub fn pid(&self) -> u32 {
        self.listener.unwrap_or(self.process.pid())
    }

    /// A process says where it listens. An app may close its server and listen again, then elsewhere.
    /// Returns whether its address is new.
    pub fn listens(&mut self, via: Via, pid: u32, preload: Speaker) -> bool {
        let Ways::Socket { inherited, own, .. } = &self.ways else { return false };
        self.preload = Some(preload);
        let path = if via == Via::Fd { inherited } else { own };
        let address = WorkerAddress::Unix(path.clone());
        if self.listener.replace(pid) != Some(pid) && pid != self.process.pid() {
            // No channel tells of its end: an app may close its own, and a shell that started it holds them open.
            self.tasks.spawn(tell_end(pid, self.wire.clone()));
        }
        self.address.replace(address.clone()) != Some(address)
    }

    /// The app says that it is ready, or its port accepts connections. On a socket that says nothing which
    /// listening does not say, and may come before there is an address. Returns whether its address is new.
    pub fn accepts(&mut self) -> bool {
        let Ways::Port(port) = &self.ways else { return false };
        self.address.replace(WorkerAddress::Tcp(port.address)).is_none()
    }

    /// The CPU that it has taken since it was started, in all its processes that are known.
    pub fn cost(&self) -> Duration {
        let started = self.process.pid();
        let listener = self.listener.filter(|listener| *listener != started);
        [Some(started), listener].into_iter().flatten().filter_map(cpu_time).sum()
    }

    pub fn hears(&mut self, app: Speaker) {
        self.app = Some(app);
    }

    /// Whether the message is on its way.
    pub fn say(&self, message: ToWorker) -> bool {
        self.app.as_ref().is_some_and(|app| app.tell(message))
    }

    /// Begins to ask how it is doing inside, and to let it collect its garbage.
    /// False if nobody is in there to be asked.
    pub fn attend<E: Send + Sync + 'static>(
        &mut self,
        heartbeat: Heartbeat<E>,
        collecting: Collecting<E>,
    ) -> bool {
        let Some(preload) = self.preload.clone() else { return false };
        let (sender, reports) = mpsc::channel(4);
        self.reports = Some(sender);
        self.tasks.spawn(heartbeat.attend(preload.clone(), reports, self.wire.clone()));
        let (sender, collected) = mpsc::channel(1);
        self.collected = Some(sender);
        self.tasks.spawn(collecting.attend(preload, collected));
        true
    }

    /// It has answered how it is doing.
    pub fn reported(&self, time: Option<LoopTime>) {
        if let Some(reports) = &self.reports {
            // A heartbeat that has not read the last four knows enough.
            let _ = reports.try_send(time);
        }
    }

    /// It has collected garbage.
    pub fn collected(&self, took: Duration) {
        if let Some(collected) = &self.collected {
            let _ = collected.try_send(took);
        }
    }

    /// Begins to ask where it is stuck. False if nobody can be asked: only the preload says which process is Node.
    pub fn diagnose(&mut self) -> bool {
        let listener = self.listener.filter(|pid| self.process.includes(*pid));
        if let Some(pid) = listener {
            let (notices, wire) = (self.notices.clone(), self.wire.clone());
            self.tasks.spawn(async move {
                wire.send(WorkerNews::Diagnosed(inspector::diagnose(pid, notices).await)).await;
            });
        }
        listener.is_some()
    }

    /// A process has ended. Returns whether it was the one that listens.
    pub fn is_gone(&mut self, pid: u32) -> bool {
        self.claim_lost |= self.listener == Some(pid);
        self.listener == Some(pid)
    }

    /// Waits for the end. Can be dropped and called again.
    pub async fn ended(&mut self, graceful: bool) -> Exit {
        let app_may_live = graceful && self.is_behind_another();
        self.process.ended(app_may_live).await
    }

    /// Whether the app may outlive the process that we started, as it does when npm takes a signal for itself.
    fn is_behind_another(&self) -> bool {
        match self.ways {
            Ways::Socket { .. } => {
                !self.claim_lost && self.listener.is_some_and(|pid| pid != self.process.pid())
            }
            // Whose port it is, nobody says.
            Ways::Port(_) => true,
        }
    }

    /// Waits until what it printed at the end has been read.
    pub async fn last_words(&mut self) {
        self.tasks.abort_all();
        let _ = timeout(LAST_WORDS, async { while self.output.join_next().await.is_some() {} }).await;
    }

    /// Why it is killed, for people.
    pub fn complaint(&self, why: Why, settings: &WorkerSettings) -> String {
        let start = settings.start_timeout.as_secs_f64();
        match (why, &self.address, &self.ways) {
            (Why::StartTimeout, None, Ways::Socket { .. }) => format!(
                "it has not listened on a TCP port within its start_timeout ({start} s); \
                 if it is not a Node program, use bind = \"port\""
            ),
            (Why::StartTimeout, None, Ways::Port(port)) => format!(
                "nothing accepted connections on {} within its start_timeout ({start} s); \
                 the app must listen on the PORT of its environment",
                port.address
            ),
            (Why::StartTimeout, Some(_), _) => format!(
                "its health path {} has not answered 2xx within its start_timeout ({start} s); at last it {}",
                settings.health.as_deref().unwrap_or_default(),
                self.health.as_deref().unwrap_or("did not answer")
            ),
            (Why::StopTimeout, ..) => {
                format!(
                    "it has not stopped within its stop_timeout ({} s)",
                    settings.stop_timeout.as_secs_f64()
                )
            }
            (Why::Orphaned, ..) => format!(
                "the app (pid {}) is gone, though what started it (pid {}) still runs",
                self.pid(),
                self.process.pid()
            ),
            (Why::Hung, ..) => format!(
                "hung: {} its hang_timeout ({} s); it is {}",
                match self.silent {
                    true => "with requests at hand it has not turned its event loop for",
                    false => "a request has taken longer than",
                },
                settings.hang_timeout.as_secs_f64(),
                self.diagnosis.as_ref().unwrap_or(&Diagnosis::Unasked)
            ),
            (Why::Ordered, ..) => "there was no time for more".to_owned(),
        }
    }
}
