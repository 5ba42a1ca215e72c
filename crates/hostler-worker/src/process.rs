//! One worker's process group: how it is signalled, and how its end is awaited. Knows nothing of readiness.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitOptions, getpgid, getpgrp, kill_process, kill_process_group, test_kill_process_group,
    waitpgid,
};
use tokio::process::Child;
use tokio::time::sleep;

use super::context::SupervisorContext;
use super::exit_watch::ExitCause;
use super::guard::WatchedGroup;
use super::memory_group::MemoryGroups;
use super::news::{NewsSender, WorkerNews};
use super::own_children::OwnChild;
use super::process_end::{GLANCE, end_of};
use super::process_files::{
    group_of, groups_below, has_only_zombies, number_below, processes, stat_after_name,
};

/// The most checks of an orphaned group before the wait ends.
const GLANCES: u32 = 100;

/// A process group. It is killed when this value is dropped.
pub(super) struct Process {
    child: Child,
    group: Pid,
    exit: Option<Exit>,
    /// The process has ended and its group was killed. It gets no more signals, because another group may soon have its number.
    is_over: bool,
    /// How many processes the kernel had killed because no memory was left, when this one was started.
    pub kills_before: Option<u64>,
    watched: WatchedGroup,
    _own: OwnChild,
}

/// The group of an app that is not in the group of its worker: `dumb-init` and `setsid` start their program in a new session.
pub(super) struct OtherGroup {
    group: Pid,
    /// It was told to stop.
    is_told: bool,
    /// The guard ends it, too.
    _watched: WatchedGroup,
}

/// How a process ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exit(Option<ExitStatus>);

impl Process {
    /// Takes over a child that leads its own process group.
    pub fn new((child, own): (Child, OwnChild), context: &SupervisorContext) -> io::Result<Self> {
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let group = group.ok_or_else(|| io::Error::other("a process without a number"))?;
        let kills_before = MemoryGroups::own().kills();
        let watched = context.guard().watch(group);
        Ok(Self { child, group, exit: None, is_over: false, kills_before, watched, _own: own })
    }

    /// The process that Hostler started. The process that listens may be another.
    pub fn pid(&self) -> u32 {
        self.group.as_raw_pid().cast_unsigned()
    }

    /// Whether this process belongs to the group.
    pub fn includes(&self, pid: u32) -> bool {
        Pid::from_raw(pid.cast_signed()).is_some_and(|pid| getpgid(Some(pid)) == Ok(self.group))
    }

    /// Whether a process of the worker has this number only in a PID namespace of its own, as below `bwrap --unshare-pid`. Here it is the number of
    /// another process, or of none.
    pub fn is_apart(&self, pid: u32) -> bool {
        let is_ours = |pid: u32| group_of(pid) == Some(self.pid()) || descends_from(pid, self.pid());
        !is_ours(pid) && processes().any(|here| number_below(here) == Some(pid) && is_ours(here))
    }

    /// The group of this process, if it is not the worker's own. `None` also if the worker has not started a process with this number: a process in
    /// another PID namespace reports a number that is another process here.
    pub fn other_group_of(&self, pid: u32) -> Option<OtherGroup> {
        let group = getpgid(Pid::from_raw(pid.cast_signed())).ok()?;
        let is_other = group != self.group && group != getpgrp() && group != Pid::INIT;
        let is_other = is_other && descends_from(pid, self.pid());
        is_other.then(|| OtherGroup { group, is_told: false, _watched: self.watched.watch_also(group) })
    }

    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Tells one process of the group to stop, and when it has ended, the others.
    pub fn terminate_first(&self, pid: u32) -> impl Future<Output = ()> + Send + use<> {
        if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let group = self.group;
        async move {
            end_of(pid).await;
            let _ = kill_process_group(group, Signal::TERM);
        }
    }

    /// Kills the group, and the groups that its processes have made for what they have started.
    pub fn kill(&self) {
        // After the exit status was read, the kernel may give the number to another process.
        let below = if self.exit.is_none() { groups_below(self.pid()) } else { vec![] };
        self.signal(Signal::KILL);
        kill_all(below);
    }

    /// Waits for the end. When the process that Hostler started has ended, the rest of its group is killed. If `patient`
    /// (a graceful stop), the rest may finish first, because npm may exit before the app. The future can be dropped and
    /// made again.
    pub async fn ended(&mut self, patient: bool) -> Exit {
        let exit = match self.exit {
            Some(exit) => exit,
            None => *self.exit.insert(Exit(self.child.wait().await.ok())),
        };
        let mut living = None;
        while patient && !self.is_over && !is_gone(self.group, &mut living) {
            sleep(GLANCE).await;
        }
        self.kill();
        self.is_over = true;
        exit
    }

    /// An error is ignored: the group may be gone. The number cannot belong to another group while a member lives, and the
    /// last signal is sent directly after the leader's end.
    fn signal(&self, signal: Signal) {
        if !self.is_over {
            let _ = kill_process_group(self.group, signal);
        }
    }
}

impl OtherGroup {
    pub fn kill(&self) {
        let below = groups_below(self.group.as_raw_pid().cast_unsigned());
        let _ = kill_process_group(self.group, Signal::KILL);
        kill_all(below);
    }

    /// Waits for the end of the app's group when the process that Hostler started has ended. If `patient` (a graceful stop), the group gets SIGTERM
    /// once, as that process may not have passed it on, and may finish. Otherwise it is killed. The future can be dropped and made again.
    pub async fn ended(&mut self, patient: bool) {
        let mut living = None;
        while !is_gone(self.group, &mut living) {
            if !patient {
                return self.kill();
            }
            if !std::mem::replace(&mut self.is_told, true) {
                let _ = kill_process_group(self.group, Signal::TERM);
            }
            sleep(GLANCE).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.exit.is_none() {
            self.kill();
        }
        // In a container Hostler may be process 1, and so becomes the parent of orphans.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(reap(self.group));
        }
    }
}

/// Kills these groups. Each may have ended meanwhile.
fn kill_all(groups: Vec<Pid>) {
    for group in groups {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

async fn reap(group: Pid) {
    let mut living = None;
    for _ in 0..GLANCES {
        if is_gone(group, &mut living) {
            return;
        }
        sleep(GLANCE).await;
    }
}

/// Whether `ancestor` is the parent of `pid`, or a parent of that, and so on.
fn descends_from(mut pid: u32, ancestor: u32) -> bool {
    // No number of a process is 0, so this ends at the first one.
    while let Some(parent) = parent_of(pid).filter(|parent| *parent != 0) {
        if parent == ancestor {
            return true;
        }
        pid = parent;
    }
    false
}

/// Field 4 of the stat file.
fn parent_of(pid: u32) -> Option<u32> {
    stat_after_name(pid)?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The CPU time of a living process: fields 14 and 15 of its stat file, in clock ticks.
pub(super) fn cpu_time(pid: u32) -> Option<Duration> {
    let stat = stat_after_name(pid)?;
    let ticks: u64 =
        stat.split_ascii_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
    Some(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// The end of a process is reported this much later. A process that takes its place reports that over another connection, and that report must
/// be read first if it was sent before the end.
const END_GRACE: Duration = Duration::from_millis(50);

/// Reports the end of a process that is not our child.
pub(super) async fn tell_end(pid: u32, news_sender: NewsSender) {
    end_of(pid).await;
    sleep(END_GRACE).await;
    news_sender.send(WorkerNews::Gone { pid }).await;
}

/// Whether no process of the group is left, or only zombies of which we are not the parent. Reaps those that are our children. Only for groups
/// whose leader was reaped by its owner. `living`: see [`has_only_zombies`].
fn is_gone(group: Pid, living: &mut Option<u32>) -> bool {
    while let Ok(Some(_)) = waitpgid(group, WaitOptions::NOHANG) {}
    test_kill_process_group(group).is_err() || has_only_zombies(group, living)
}

/// A shell and npm add this to the number of the signal that ended their child, and use it as their exit code.
const BY_SIGNAL: i32 = 128;

impl Exit {
    /// The cause of the end: an exit code and the signals of a crash are the program's own doing.
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

    /// The exit code, or the number of the signal.
    pub fn code_and_signal(self) -> (Option<i32>, Option<i32>) {
        use std::os::unix::process::ExitStatusExt;
        (self.0.and_then(|status| status.code()), self.0.and_then(|status| status.signal()))
    }

    /// A SIGKILL that Hostler did not send comes from the kernel (out of memory) or from an operator.
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
    #[cfg(target_os = "linux")]
    fn a_group_of_which_only_zombies_are_left_is_gone() {
        // `sleep` takes the place of the shell, and never asks for the status of the child. Nor does process 1 of some containers.
        let script = "setsid sh -c 'until grep -q sleep /proc/$PPID/comm; do :; done' & exec sleep 600";
        let mut parent = std::process::Command::new("sh").args(["-c", script]).spawn().unwrap();
        let is_zombie = |pid: &u32| {
            parent_of(*pid) == Some(parent.id())
                && stat_after_name(*pid).is_some_and(|stat| stat.starts_with('Z'))
        };
        let zombie = loop {
            if let Some(pid) = processes().find(is_zombie) {
                break Pid::from_raw(pid.cast_signed()).unwrap();
            }
            std::thread::yield_now();
        };
        assert!(test_kill_process_group(zombie).is_ok(), "the kernel counts it");
        let counts_as_gone = is_gone(zombie, &mut None);
        parent.kill().unwrap();
        parent.wait().unwrap();
        assert!(counts_as_gone);
    }

    #[test]
    fn exit_codes_and_crash_signals_blame_the_program_and_outside_signals_do_not() {
        let code = |code: i32| Exit(Some(ExitStatus::from_raw(code << 8)));
        let signal = |signal: i32| Exit(Some(ExitStatus::from_raw(signal)));
        // process.exit(0), an uncaught exception, V8 out of memory (direct and behind a shell), a segmentation fault.
        for own in [code(0), code(1), code(134), signal(6), signal(11), signal(5)] {
            assert_eq!(own.cause(), ExitCause::Own, "{own}");
        }
        // The kernel's out-of-memory killer, an operator, the same behind npm, an unknown end.
        for outside in [signal(9), signal(15), code(137), code(143), Exit(None)] {
            assert_eq!(outside.cause(), ExitCause::Outside, "{outside}");
        }
    }
}
