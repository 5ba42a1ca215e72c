//! A worker's process, and what is known and kept about it until it is gone. Decides nothing.

mod claims;
mod complaint;
mod port_in_use;
mod presence;
mod reach;
mod stopping;
mod tasks;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, timeout};

use super::channel::{read_control, read_ipc};
use super::collecting::Collecting;
use super::compile_cache::Flushing;
use super::context::raise_open_files;
use super::exit_watch::ExitNotifier;
use super::foreign_process::{self, ForeignWatch};
use super::health;
use super::heartbeat::Heartbeat;
use super::inspection::{Inspectable, PreloadReply};
use super::inspector::{self, Diagnosis, Notices};
use super::log::{OutputStream, Tail, WorkerLog};
use super::message::{ListenClaim, Report, ToWorker};
use super::message_sender::MessageSender;
use super::news::{NewsSender, WorkerNews};
use super::process::{OtherGroup, Process, cpu_time};
use super::process_files::runs_node;
use super::runtime_folder::RuntimeFolder;
use super::settings::WorkerAddress;
use super::spawn::{AppBinding, Spawn, with_preload};
use tasks::ProcessTasks;

pub(super) use claims::ClaimWait;
pub(super) use port_in_use::PortInUse;

/// How long to wait for the last lines of a dead worker. Its pipes close with its process group, unless a process has
/// left the group and holds them.
const LAST_OUTPUT: Duration = Duration::from_millis(250);

pub(super) struct RunningProcess {
    pub process: Process,
    pub started: Instant,
    /// Reports the end of the process to its requests.
    pub exit_notifier: ExitNotifier,
    pub address: Option<WorkerAddress>,
    /// The last answer of the health path other than 2xx.
    pub health: Option<String>,
    /// The last lines it printed.
    pub tail: Tail,
    /// Where it was stuck, once that is known.
    pub diagnosis: Option<Diagnosis>,
    /// It hangs because its event loop does not answer, not because a request took too long.
    pub silent: bool,
    /// It has stopped in the middle of a heap snapshot.
    pub stands_still: bool,
    /// Tasks that stop with the process.
    pub tasks: ProcessTasks,
    output: JoinSet<()>,
    /// The number of the process that the log shows with each line of its output.
    shown_pid: Arc<AtomicU32>,
    /// The process that listens, once it is known. `None` if it is in a PID namespace of its own.
    listener: Option<u32>,
    /// The group of the process that listens, if it is not that of the worker.
    other_group: Option<OtherGroup>,
    /// The claim of the server that gets the requests.
    claim: Option<ListenClaim>,
    /// The claim of a server that may not be the app's. It waits for a better one.
    waiting: Option<(ListenClaim, MessageSender)>,
    /// The process that listens is gone.
    claim_lost: bool,
    /// The task that checks whether a closed server listens again.
    listen_check: Option<AbortHandle>,
    /// The folder of its socket.
    folder: Arc<RuntimeFolder>,
    /// The task that checks whether the socket is still at its path.
    presence: Option<AbortHandle>,
    /// The task that requests the health path or the warm-up paths until the worker is ready.
    asking: Option<AbortHandle>,
    /// The log says that it does not listen any more.
    pub deafness_told: bool,
    /// When the log last said that its event loop does not turn.
    pub block_told: Option<Instant>,
    /// The process that listens on the PORT that Hostler has set, once it is known.
    pub port_owner: Option<u32>,
    /// Where that port accepts connections, once it is known.
    pub port_at: Option<SocketAddr>,
    /// Looks for processes without the preload, until the app listens.
    foreign_processes: Option<AbortHandle>,
    /// A server of the app that Hostler does not use, and why, as long as it uses none.
    pub unused_server: Option<String>,
    /// The app runs Node's cluster.
    pub has_cluster: bool,
    notices: Notices,
    news_sender: NewsSender,
    /// Sends messages to the preload in the process that listens.
    preload: Option<MessageSender>,
    reports: Option<mpsc::Sender<Option<Report>>>,
    collected: Option<mpsc::Sender<Duration>>,
    flushed: Option<mpsc::Sender<()>>,
    inspection: Option<mpsc::Sender<PreloadReply>>,
    /// How many profiles and heap snapshots were asked for.
    inspections: u64,
    /// Sends messages to the app, if it listens for them.
    app: Option<MessageSender>,
    binding: AppBinding,
}

/// Waits until the process of this group can be reached. Returns the task that looks for servers that are not the app's.
fn watch(
    binding: &mut AppBinding,
    (group, preload): (u32, &Path),
    news_sender: &NewsSender,
    tasks: &mut ProcessTasks,
) -> Option<AbortHandle> {
    match binding {
        AppBinding::Port(port) => {
            tasks.spawn(health::until_connectable(port.address, group, news_sender.clone()));
            None
        }
        AppBinding::Socket { control, given, .. } => {
            if let Some(listener) = control.take() {
                tasks.spawn(read_control(listener, news_sender.clone()));
            }
            let given = given.as_ref().map(|port| port.address);
            let option = with_preload("", preload).into();
            Some(
                tasks.spawn(foreign_process::watch(
                    ForeignWatch { group, given, option },
                    news_sender.clone(),
                )),
            )
        }
    }
}

impl RunningProcess {
    pub fn start(spawn: &Spawn<'_>, log: &WorkerLog, news_sender: NewsSender) -> io::Result<Self> {
        let mut spawned = spawn.spawn()?;
        let (tail, notices) = (Tail::default(), Notices::default());
        let shown_pid = Arc::new(AtomicU32::new(spawned.process.pid()));
        let (mut output, mut tasks) = (JoinSet::new(), ProcessTasks::default());
        if let Some(pipe) = spawned.stdout {
            let from = (OutputStream::Stdout, Arc::clone(&shown_pid));
            output.spawn(log.clone().read(from, pipe, tail.clone(), notices.clone()));
        }
        if let Some(pipe) = spawned.stderr {
            let from = (OutputStream::Stderr, Arc::clone(&shown_pid));
            output.spawn(log.clone().read(from, pipe, tail.clone(), notices.clone()));
        }
        tasks.spawn(read_ipc(spawned.channel, news_sender.clone()));
        let (group, preload) = (spawned.process.pid(), spawn.folder.preload());
        let foreign_processes = watch(&mut spawned.binding, (group, &preload), &news_sender, &mut tasks);
        Ok(Self {
            process: spawned.process,
            started: Instant::now(),
            exit_notifier: ExitNotifier::new(),
            address: None,
            health: None,
            tail,
            diagnosis: None,
            silent: false,
            stands_still: false,
            tasks,
            output,
            shown_pid,
            listener: None,
            other_group: None,
            claim: None,
            waiting: None,
            claim_lost: false,
            listen_check: None,
            folder: Arc::clone(spawn.folder),
            presence: None,
            asking: None,
            deafness_told: false,
            block_told: None,
            port_owner: None,
            port_at: None,
            foreign_processes,
            unused_server: None,
            has_cluster: false,
            notices,
            news_sender,
            preload: None,
            reports: None,
            collected: None,
            flushed: None,
            inspection: None,
            inspections: 0,
            app: None,
            binding: spawned.binding,
        })
    }

    /// The process that listens, or else the process that Hostler started.
    pub fn pid(&self) -> u32 {
        self.listener.unwrap_or(self.process.pid())
    }

    /// The same for the status, the log and the memory, and it knows an app without the preload. Hostler does not notice the end of such an
    /// app while the shell that has started it goes on, so nothing else relies on this number.
    pub fn app_pid(&self) -> u32 {
        self.listener.or(self.port_owner).unwrap_or(self.process.pid())
    }

    /// The process whose main thread serves the requests, if that is known.
    pub fn serving_pid(&self) -> Option<u32> {
        match &self.binding {
            _ if self.is_in_thread() => None,
            AppBinding::Socket { .. } => self.listener.or(self.port_owner),
            AppBinding::Port(_) => self.port_owner,
        }
    }

    /// The app reports that it is ready, or its port accepts connections. Returns whether the address is new.
    ///
    /// For an app on a socket the report has no effect: its `listening` message says the same, and the report may come before
    /// there is an address. An exception is an app without the preload that listens on the PORT that Hostler has set.
    pub fn accepts(&mut self) -> bool {
        let port = match &self.binding {
            AppBinding::Port(port) => port,
            AppBinding::Socket { given: Some(port), .. }
                if self.port_owner.is_some() && self.address.is_none() =>
            {
                port
            }
            AppBinding::Socket { .. } => return false,
        };
        if let Some(owner) = self.port_owner {
            self.shown_pid.store(owner, Ordering::Relaxed);
            if owner == self.process.pid() && runs_node(owner) {
                raise_open_files(owner);
            }
        }
        let address = WorkerAddress::Tcp(self.port_at.unwrap_or(port.address));
        self.address.replace(address.clone()) != Some(address)
    }

    /// The app listens in a thread of its own.
    fn is_in_thread(&self) -> bool {
        self.claim.is_some_and(|claim| claim.thread)
    }

    /// The CPU time used since the start, by all known processes of the worker.
    pub fn cost(&self) -> Duration {
        let started = self.process.pid();
        let app = Some(self.app_pid()).filter(|app| *app != started);
        [Some(started), app].into_iter().flatten().filter_map(cpu_time).sum()
    }

    pub fn hears(&mut self, app: MessageSender) {
        self.app = Some(app);
    }

    /// Returns whether the message is on its way.
    pub fn say(&self, message: ToWorker) -> bool {
        self.app.as_ref().is_some_and(|app| app.tell(message))
    }

    /// Sends a message to the preload. Returns whether it is on its way.
    pub fn say_to_preload(&self, message: ToWorker) -> bool {
        self.preload.as_ref().is_some_and(|preload| preload.tell(message))
    }

    /// Begins to ask the worker about its event loop, and to let it collect garbage. False if it has no preload to ask.
    pub fn attend<E: Send + Sync + 'static>(
        &mut self,
        heartbeat: Heartbeat<E>,
        collecting: Collecting<E>,
    ) -> bool {
        let Some(preload) = self.preload.clone() else { return false };
        let (sender, reports) = mpsc::channel(4);
        self.reports = Some(sender);
        self.tasks.spawn(heartbeat.attend(preload.clone(), reports, self.news_sender.clone()));
        let (sender, collected) = mpsc::channel(1);
        self.collected = Some(sender);
        self.tasks.spawn(collecting.attend(preload, collected));
        true
    }

    /// Begins to ask the worker to write its compile cache. Without a preload, nothing can be asked.
    pub fn flush_when_idle<E: Send + Sync + 'static>(&mut self, flushing: Flushing<E>) {
        if let Some(preload) = self.preload.clone() {
            let (sender, flushed) = mpsc::channel(1);
            self.flushed = Some(sender);
            self.tasks.spawn(flushing.attend(preload, flushed));
        }
    }

    /// The worker has written its compile cache.
    pub fn has_flushed(&self) {
        if let Some(flushed) = &self.flushed {
            let _ = flushed.try_send(());
        }
    }

    /// The worker has reported what it has done.
    pub fn reported(&self, report: Option<Report>) {
        if let Some(reports) = &self.reports {
            // If the heartbeat has not read the last four reports, it does not need this one.
            let _ = reports.try_send(report);
        }
    }

    /// The preload has answered about a profile or a heap snapshot.
    pub fn told_of_inspection(&self, reply: PreloadReply) {
        if let Some(inspection) = &self.inspection {
            let _ = inspection.try_send(reply);
        }
    }

    /// What is needed to take a profile or a heap snapshot. `Err`: why none can be taken.
    pub fn inspectable(&mut self) -> Result<Inspectable, &'static str> {
        let AppBinding::Socket { own, .. } = &self.binding else {
            return Err(
                "it runs with bind = \"port\", so it has no preload, which takes the profile or snapshot",
            );
        };
        let Some(preload) = self.preload.clone().filter(MessageSender::is_open) else {
            return Err("it has no preload, or has closed its channel to Hostler, so it cannot be asked");
        };
        if self.has_cluster {
            return Err(
                "its app runs Node's cluster, and Hostler reaches only the primary process, which serves no requests",
            );
        }
        let (sender, replies) = mpsc::channel(4);
        self.inspection = Some(sender);
        self.inspections += 1;
        Ok(Inspectable {
            pid: self.pid(),
            preload,
            replies,
            node: self.listener.filter(|pid| !self.is_in_thread() && self.process.includes(*pid)),
            notices: self.notices.clone(),
            place: own.with_added_extension(self.inspections.to_string()),
        })
    }

    /// The worker has collected garbage.
    pub fn collected(&self, took: Duration) {
        if let Some(collected) = &self.collected {
            let _ = collected.try_send(took);
        }
    }

    /// Begins to find out where the worker is stuck. False if that is not possible: only the preload can tell which
    /// process is Node.
    pub fn diagnose(&mut self) -> bool {
        let is_ours = |pid: &u32| self.process.includes(*pid) || self.other_group.is_some();
        let listener = self.listener.filter(is_ours);
        if let Some(pid) = listener {
            let (notices, news_sender) = (self.notices.clone(), self.news_sender.clone());
            self.tasks.spawn(async move {
                news_sender.send(WorkerNews::Diagnosed(inspector::diagnose(pid, notices).await)).await;
            });
        }
        listener.is_some()
    }

    /// A process has ended. Returns whether it was the one that listens.
    pub fn is_gone(&mut self, pid: u32) -> bool {
        let is_listener = self.listener == Some(pid);
        self.claim_lost |= is_listener;
        // The number of its group may soon be that of another one.
        self.other_group.take_if(|_| is_listener);
        is_listener
    }

    /// Kills the processes that Hostler knows of it.
    pub fn kill(&self) {
        self.process.kill();
        self.other_group.iter().for_each(OtherGroup::kill);
    }

    /// Asks whether it is ready, or prepares it. What was asked before, perhaps at another address, ends.
    pub fn ask(&mut self, asking: impl Future<Output = ()> + Send + 'static) {
        let asking = self.tasks.spawn(asking);
        if let Some(before) = self.asking.replace(asking) {
            before.abort();
        }
    }

    /// Waits until the last output of the process has been read.
    pub async fn read_last_output(&mut self) {
        self.tasks.abort_all();
        let _ = timeout(LAST_OUTPUT, async { while self.output.join_next().await.is_some() {} }).await;
        self.output.shutdown().await;
    }
}
