//! Starts all parts of a running Hostler, owns their tasks, and stops them in reverse order. Contains no logic of the parts.

mod admin_task;
mod announce;
mod boot;
mod cache;
mod channel;
mod commands;
mod descriptors;
mod development;
mod environment;
mod file_stamp;
mod fixed;
mod listeners;
mod lookups;
mod notify;
mod pool_context;
mod pool_drain;
mod pools;
mod predecessor;
mod probe;
mod program;
mod registrar;
mod reload;
mod routes;
mod run_options;
mod running;
mod runtime;
mod settings;
mod signals;
mod socket_activation;
mod start_error;
mod stop;
mod successor;
mod tables;
mod threads;
mod tls;
mod tls_watch;
mod upgrade;
mod watch;

use std::io::{self, IsTerminal};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use admin_task::AdminTask;
use hostler_config::{AccessLog, Config, Invocation, ListenAddress};
use hostler_engine::cache::Telling;
use hostler_engine::journal::{Journal, Level, LogFormat, is_coloured};
use hostler_native::geo::Geo;
use hostler_native::postal::Postal;
use hostler_worker::NeverReady;
use listeners::Listeners;
use notify::Notify;
use predecessor::{Handover, Inheritance};
use running::{RunningServer, Takeover};
use signals::{EarlySignals, SignalAction, Signals};
use threads::DataPlane;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::admin::{self, AdminCommand, AdminListener, PendingCommand};
use crate::listen::ListenerKind;

pub use environment::Environment;
pub use predecessor::Predecessor;
pub use run_options::{RunOptions, WatchOptions};
pub use socket_activation::{GivenError, GivenListeners};
pub use start_error::StartError;

/// How long the service manager waits for the workers at most. systemd itself gives up after 90 s.
const BOOT_LIMIT: Duration = Duration::from_secs(60);
/// How long the end waits for blocking threads, which cannot be interrupted.
const BLOCKING_LIMIT: Duration = Duration::from_millis(100);

/// What there is before the configuration is read, which may take long: the runtime of the control thread, and the signals that would end the
/// process.
pub struct Foundation {
    runtime: Runtime,
    signals: EarlySignals,
}

impl Foundation {
    pub fn new() -> io::Result<Self> {
        let runtime = runtime::new()?;
        let signals = EarlySignals::new(&runtime)?;
        Ok(Self { runtime, signals })
    }
}

/// Runs until it is told to stop and has stopped, or until a successor has taken over and all clients have left.
pub fn run(
    Foundation { runtime, signals }: Foundation,
    config: Config,
    invocation: Invocation,
    options: RunOptions,
    given: GivenListeners,
    predecessor: Option<&Predecessor>,
) -> Result<(), StartError> {
    descriptors::raise();
    let journal = journal(&config, &invocation.load_context.environment)?;
    let admin = config.server.admin.clone();
    runtime.spawn(hostler_worker::reap_orphans());
    let outcome =
        runtime.block_on(serve(signals, (config, invocation, options), given, predecessor, &journal));
    // A DNS lookup or a file operation that still runs is not waited for.
    runtime.shutdown_timeout(BLOCKING_LIMIT);
    admin::remove_if_dead(admin.as_ref());
    journal.end();
    outcome
}

fn tell_of_successor(journal: &Journal, pid: u32) {
    let text = "it accepts new connections, existing ones close after their next response";
    journal.event(Level::Info, &format!("pid {pid} has taken over: {text}"));
}

async fn serve(
    signals: EarlySignals,
    (config, invocation, options): (Config, Invocation, RunOptions),
    given: GivenListeners,
    predecessor: Option<&Predecessor>,
    journal: &Journal,
) -> Result<(), StartError> {
    let notify = Notify::of(&invocation.load_context.environment);
    let handover = predecessor.map(Predecessor::handover).transpose().map_err(StartError::TakeOver)?;
    let (inherited, mut inheritance) = match &handover {
        Some(handover) => handover.receive_sockets().await.map_err(StartError::TakeOver)?,
        None => {
            given.describe().for_each(|line| journal.event(Level::Info, &line));
            (given.assign(&config)?, Inheritance::default())
        }
    };
    let broken = std::mem::take(&mut inheritance.broken);
    let listeners = Listeners::open(&config, inherited, invocation.may_move_admin())?;
    let start = (config, invocation, options);
    let running = Arc::new(RunningServer::start(start, listeners, inheritance, journal.clone())?);
    // Not before: the start reads files, and while their disk hangs, no stop that this process handles would be heard.
    let mut signals = Signals::new(signals)?;
    if let Err(error) =
        wait_until_allowed_to_begin(&running, (handover.as_deref(), &broken), &mut signals).await
    {
        stop::stop_workers(&running, &mut signals, true).await;
        journal.event(Level::Info, &format!("stopped before it served requests: {error}"));
        // A stop before the first client is no failure.
        return handover.map_or(Ok(()), |_| Err(StartError::TakeOver(error)));
    }
    let OpenedServer { data_plane, mut commands, admin, telling } = open(&running)?;
    let is_successor = handover.is_some();
    upgrade::begun(handover.clone(), telling).await;
    let booting = tell_when_ready(&running, &notify, is_successor);
    development::begin(&running)?;
    let announcement = announce::begin(&running);

    let ending = until_stop(&running, (is_successor, &notify, &booting), &mut signals, &mut commands).await;
    booting.abort();
    // Commands that arrive from now on get the answer that Hostler is stopping.
    drop(commands);
    // An upgrade is not possible from here on, and its copies must not keep sockets open.
    running.listeners.store(None);
    match &ending {
        ServerEnding::Successor(pid) => {
            // The successor goes on with the announcement.
            drop(announcement);
            notify.succeeded_by(*pid);
            tell_of_successor(journal, *pid);
            admin.end();
            stop::leave(&running, &mut signals).await;
        }
        ServerEnding::Signal | ServerEnding::NeverReady(_) => {
            // Health checks fail before anything else changes.
            running.connections().announce_end();
            notify.stopping();
            Handover::stopping(handover.as_deref()).await;
            if let Some(announcement) = announcement {
                announcement.end().await;
            }
            journal.event(Level::Info, "stopping: no new connections; finishing the accepted requests");
        }
    }
    let at_once = stop::drain(&running, data_plane, &mut signals).await;
    let at_once = stop::end_pools(&running, &mut signals, at_once).await;
    stop::wait_for(handover.filter(|_| !at_once), &running, &mut signals).await;
    if let Some(tracer) = &running.sources.tracer {
        tracer.end().await;
    }
    journal.event(Level::Info, "stopped");
    admin.ended().await;
    ending.outcome()
}

/// Tells the service manager that this process lives, and that requests are served: when each pool has a ready worker. A pool whose
/// worker fails does not hold up the others, and a manager does not wait for ever. The workers of a successor are ready already.
fn tell_when_ready(running: &Arc<RunningServer>, notify: &Notify, is_successor: bool) -> JoinHandle<()> {
    let (running, notify) = (running.clone(), notify.clone());
    tokio::spawn(notify.clone().keep_alive());
    tokio::spawn(async move {
        if !is_successor {
            let pools = running.pools.load_full();
            // After the limit, Hostler serves what it can.
            let _ = tokio::time::timeout(BOOT_LIMIT, boot::each_tried(&pools)).await;
        }
        notify.ready();
    })
}

/// Why Hostler ends.
enum ServerEnding {
    /// A signal has told it to stop.
    Signal,
    /// The process with this number has taken over.
    Successor(u32),
    /// The app of `hostler run` does not start.
    NeverReady(NeverReady),
}

impl ServerEnding {
    fn outcome(self) -> Result<(), StartError> {
        match self {
            Self::NeverReady(never_ready) => Err(StartError::NeverReady(never_ready)),
            Self::Signal | Self::Successor(_) => Ok(()),
        }
    }
}

/// Serves signals and commands until Hostler must stop.
async fn until_stop(
    running: &Arc<RunningServer>,
    (is_successor, notify, booting): (bool, &Notify, &JoinHandle<()>),
    signals: &mut Signals,
    commands: &mut mpsc::UnboundedReceiver<PendingCommand>,
) -> ServerEnding {
    let mut takeover = running.takeover.subscribe();
    let (mut until, mut is_passed_on) = (None, false);
    let never_ready = boot::never_ready(&running.pools.load());
    let mut never_ready = pin!(never_ready);
    // The workers of the predecessor may have worked.
    let ends_if_never_ready = running.options.ends_if_never_ready && !is_successor;
    loop {
        tokio::select! {
            action = signals.next() => match action {
                SignalAction::Stop if stop::pass_on(running, action) => is_passed_on = true,
                SignalAction::Stop => return ServerEnding::Signal,
                SignalAction::Drain => {
                    stop::pass_on(running, action);
                    until = Some(until.unwrap_or_else(|| stop::announce(running)));
                }
                SignalAction::Reload => commands::reload_for_signal(running, notify, booting),
                SignalAction::Upgrade => {
                    commands::spawn_for_signal(running, action, AdminCommand::Upgrade, || ());
                }
            },
            Some(pending) = commands.recv() => commands::spawn(running, pending),
            Ok(()) = takeover.changed() => match *takeover.borrow_and_update() {
                Takeover::Done(pid) => {
                    if is_passed_on {
                        // The stop is for this process, too: it does not wait for silent clients.
                        signals.keep(SignalAction::Stop);
                    }
                    return ServerEnding::Successor(pid);
                }
                Takeover::NotYet if is_passed_on => return ServerEnding::Signal,
                Takeover::NotYet | Takeover::Begins(_) => {}
            },
            () = stop::reached(until) => return ServerEnding::Signal,
            never_ready = &mut never_ready, if ends_if_never_ready => {
                let NeverReady { boots, last } = &never_ready;
                let text = format!("the app was never ready, after {boots} tries: {last}");
                running.journal.event(Level::Error, &text);
                return ServerEnding::NeverReady(never_ready);
            }
        }
    }
}

/// Waits until registered routes have had time to register. In a takeover: also until the workers are ready and the predecessor allows
/// the start.
async fn wait_until_allowed_to_begin(
    running: &RunningServer,
    (handover, broken): (Option<&Handover>, &[String]),
    signals: &mut Signals,
) -> io::Result<()> {
    let pools = running.pools.load_full();
    // They did not work before, and would hold up the upgrade of all others.
    let pools: Vec<_> = pools.iter().filter(|pool| !broken.iter().any(|name| **name == *pool.name)).collect();
    let filled = async {
        if let Some(registering) = &running.registering {
            registering.filled().await;
        }
    };
    let ready = async {
        let Some(handover) = handover else {
            filled.await;
            return Ok(());
        };
        let all_ready = async { tokio::join!(boot::all_ready(&pools), filled).0 };
        tokio::select! {
            ready = all_ready => {
                ready.map_err(io::Error::other)?;
                let (registrations, purges) = handover.ready().await?;
                running.shared_cache.tell(purges);
                if let Some(registering) = &running.registering {
                    registering.take_over(registrations, &running.journal);
                }
                Ok(())
            }
            error = handover.ends() => Err(error),
        }
    };
    tokio::select! {
        outcome = ready => outcome,
        () = signals.stop() => Err(io::Error::other("told to stop")),
    }
}

struct OpenedServer {
    data_plane: DataPlane,
    commands: mpsc::UnboundedReceiver<PendingCommand>,
    admin: AdminTask,
    /// None without a predecessor.
    telling: Option<Telling>,
}

/// Starts to accept clients and commands.
fn open(running: &Arc<RunningServer>) -> Result<OpenedServer, StartError> {
    let listeners = running.listeners.load_full().expect("invariant: they are taken only when Hostler stops");
    let telling = running.predecessor.as_ref().map(|_| Telling::begin(&running.shared_cache));
    let shares = listeners.by_thread(running.pool_context.threads)?;
    let data_plane = DataPlane::start(
        shares,
        &running.listening,
        running.gateway.clone(),
        &running.journal,
        &running.sources,
    )?;
    // Commands, which need them, are served later, and nothing else sets them.
    let _ = running.sweeps.set(data_plane.sweeps());
    tokio::spawn(tls_watch::watch(running.clone()));
    tokio::spawn(admin::watch_for_advice(running.sources.clone()));
    tokio::spawn(watch::watch::<Geo>(running.clone()));
    tokio::spawn(watch::watch::<Postal>(running.clone()));
    let (commands, received) = mpsc::unbounded_channel();
    let mut admin = AdminTask::default();
    for (listener_kind, address) in listeners.addresses() {
        let scheme = match listener_kind {
            ListenerKind::Plain => "http",
            ListenerKind::Tls => "https",
        };
        running.journal.event(Level::Info, &format!("listening on {scheme}://{address}"));
    }
    running
        .tls
        .iter()
        .flat_map(|tls| tls.describe())
        .for_each(|line| running.journal.event(Level::Info, &line));
    if let Some(listener) = listeners.admin()? {
        let address = listener.address()?;
        let listener = AdminListener::try_from(listener)?;
        let (sources, access) = (running.sources.clone(), running.admin_access.clone());
        admin.begin(|ended| admin::serve(listener, sources, commands, access, ended));
        let told = match &address {
            ListenAddress::Tcp(address) => format!("live page on http://{address}/"),
            ListenAddress::Unix(_) => format!("admin listener on {address}"),
        };
        running.journal.event(Level::Info, &told);
        running.note_admin(&listeners);
        if let Some((taken, real)) = listeners.moved_admin() {
            let told =
                format!("{taken} is taken, so commands need another address: hostler status --admin {real}");
            running.journal.event(Level::Info, &told);
        }
    }
    Ok(OpenedServer { data_plane, commands: received, admin, telling })
}

fn journal(config: &Config, environment: &Environment) -> Result<Journal, StartError> {
    let file = config.log.file.as_deref();
    let is_terminal = file.is_none() && io::stdout().is_terminal();
    let force_color = environment.get("FORCE_COLOR").map(String::as_str);
    let pretty = LogFormat::Pretty { coloured: file.is_none() && is_coloured(force_color) };
    let (form, access) = match config.server.access_log {
        AccessLog::Auto if is_terminal => (pretty, true),
        AccessLog::Auto | AccessLog::Json => (LogFormat::Json, true),
        AccessLog::Pretty => (pretty, true),
        // The gateway's `access_format` writes these access lines.
        AccessLog::Gorouter => (LogFormat::Json, false),
        AccessLog::Off => (pretty, false),
    };
    let stream = environment.get("JOURNAL_STREAM").map(String::as_str);
    // The system may also refuse the thread that writes.
    let of_file = |error: &io::Error| file.filter(|_| error.kind() != io::ErrorKind::WouldBlock);
    let journal = Journal::open(form, access, file, stream).map_err(|source| match of_file(&source) {
        Some(file) => StartError::Log { file: file.to_owned(), source },
        None => StartError::System(source),
    })?;
    journal.follow(settings::log_rules(&config.log));
    Ok(journal)
}
