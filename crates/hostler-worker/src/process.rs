//! One worker's process group: how it is signalled and seen to its end; knows nothing of readiness.

use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpgid, kill_process_group, pidfd_open, test_kill_process,
    test_kill_process_group, waitpgid,
};
use tokio::io::unix::AsyncFd;
use tokio::process::Child;
use tokio::time::sleep;

use super::context::SupervisorContext;
use super::exit_watch::ExitCause;
use super::guard::WatchedGroup;
use super::news::{Wire, WorkerNews};

/// How often an orphaned group is looked at; there is no event for the end of a process that is not our child.
const GLANCE: Duration = Duration::from_millis(20);
const GLANCES: u32 = 100;

/// A process group that ends with this value, if not before.
pub(super) struct Process {
    child: Child,
    group: Pid,
    exit: Option<Exit>,
    _watched: WatchedGroup,
}

/// How a process ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exit(Option<ExitStatus>);

impl Process {
    /// Takes over a child that leads a group of its own.
    pub fn new(child: Child, context: &SupervisorContext) -> io::Result<Self> {
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let group = group.ok_or_else(|| io::Error::other("a process without a number"))?;
        Ok(Self { child, group, exit: None, _watched: context.guard().watch(group) })
    }

    /// The process that we started; not always the one that listens.
    pub fn pid(&self) -> u32 {
        self.group.as_raw_pid().cast_unsigned()
    }

    /// Whether this is one of its processes.
    pub fn includes(&self, pid: u32) -> bool {
        Pid::from_raw(pid.cast_signed()).is_some_and(|pid| getpgid(Some(pid)) == Ok(self.group))
    }

    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Waits for the end. When the process that we started has ended, the rest of its group is killed; if
    /// `patient`, as during a graceful stop, the rest may first finish: npm may go before the app does.
    /// Can be dropped and called again.
    pub async fn ended(&mut self, patient: bool) -> Exit {
        let exit = match self.exit {
            Some(exit) => exit,
            None => *self.exit.insert(Exit(self.child.wait().await.ok())),
        };
        while patient && !is_gone(self.group) {
            sleep(GLANCE).await;
        }
        self.kill();
        exit
    }

    /// A group that is gone already is as good. Its number cannot belong to others while a member lives, and the
    /// last signal follows the leader's end at once.
    fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.group, signal);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.exit.is_none() {
            self.kill();
        }
        // In a container Hostler may be process 1, whose children its workers' orphans become.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(bury(self.group));
        }
    }
}

async fn bury(group: Pid) {
    for _ in 0..GLANCES {
        if is_gone(group) {
            return;
        }
        sleep(GLANCE).await;
    }
}

/// The CPU that a process has taken, while it lives: the 14th and 15th figures of its stat, which count clock ticks.
pub(super) fn cpu_time(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let ticks: u64 =
        rest.split_ascii_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
    Some(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// Tells of the end of a process that is not our child.
pub(super) async fn tell_end(pid: u32, wire: Wire) {
    end_of(pid).await;
    wire.send(WorkerNews::Gone { pid }).await;
}

/// Waits for the end of a process, whoever's child it is, and reaps nobody.
pub(super) async fn end_of(pid: u32) {
    let Some(number) = Pid::from_raw(pid.cast_signed()) else { return };
    match pidfd_open(number, PidfdFlags::NONBLOCK).map(watched) {
        // Readable when the process has ended, also before its parent has noticed.
        Ok(Ok(process)) => drop(process.readable().await),
        Err(Errno::SRCH) => {}
        // An old kernel, or no descriptor left. A number that is used again soon would deceive us, which is rare enough.
        _ => {
            while test_kill_process(number).is_ok() {
                sleep(GLANCE).await;
            }
        }
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe for the sake of types that close what they lent; OwnedFd never does"
)]
fn watched(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(descriptor)
}

/// Whether nobody is left in the group, having reaped those who are ours. Only for groups whose leader has been
/// reaped by its owner.
fn is_gone(group: Pid) -> bool {
    while let Ok(Some(_)) = waitpgid(group, WaitOptions::NOHANG) {}
    test_kill_process_group(group).is_err()
}

/// What a shell or npm adds to the signal that ended its child, for its own exit code.
const BY_SIGNAL: i32 = 128;

impl Exit {
    /// Whose doing it was: an exit code and the signals of a crash are the program's own.
    pub fn cause(self) -> ExitCause {
        use std::os::unix::process::ExitStatusExt;
        let Some(status) = self.0 else { return ExitCause::Outside };
        let by_child = status.code().filter(|code| *code > BY_SIGNAL).map(|code| code - BY_SIGNAL);
        let crashes =
            [Signal::ABORT, Signal::BUS, Signal::FPE, Signal::ILL, Signal::SEGV, Signal::SYS, Signal::TRAP];
        let from_outside = [Signal::HUP, Signal::INT, Signal::KILL, Signal::QUIT, Signal::TERM];
        match (status.signal(), by_child) {
            (Some(signal), _) if crashes.iter().all(|crash| crash.as_raw() != signal) => ExitCause::Outside,
            (None, Some(signal)) if from_outside.iter().any(|one| one.as_raw() == signal) => {
                ExitCause::Outside
            }
            _ => ExitCause::Own,
        }
    }

    /// A SIGKILL that we did not send is the kernel's (out of memory) or an operator's.
    pub fn was_killed(self) -> bool {
        use std::os::unix::process::ExitStatusExt;
        self.0.and_then(|status| status.signal()) == Some(Signal::KILL.as_raw())
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use std::os::unix::process::ExitStatusExt;
        match self.0.map(|status| (status.code(), status.signal())) {
            Some((Some(code), _)) => write!(f, "exit code {code}"),
            Some((None, Some(signal))) => write!(f, "signal {signal}{}", signal_name(signal)),
            _ => f.write_str("unknown end"),
        }
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn exit_codes_and_crashes_are_a_programs_own_doing_and_signals_of_others_are_not() {
        let code = |code: i32| Exit(Some(ExitStatus::from_raw(code << 8)));
        let signal = |signal: i32| Exit(Some(ExitStatus::from_raw(signal)));
        // process.exit(0), an uncaught exception, V8 without memory as itself and behind a shell, a segmentation fault.
        for own in [code(0), code(1), code(134), signal(6), signal(11), signal(5)] {
            assert_eq!(own.cause(), ExitCause::Own, "{own}");
        }
        // The kernel without memory, an operator, the same behind npm, an end of which nothing is known.
        for outside in [signal(9), signal(15), code(137), code(143), Exit(None)] {
            assert_eq!(outside.cause(), ExitCause::Outside, "{outside}");
        }
    }
}
