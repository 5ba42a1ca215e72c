//! The signals that Hostler handles. Does not know what they cause.

use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::time::Duration;
use std::{process, thread};

use rustix::process::Signal as SignalNumber;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep};

/// Some process supervisors signal a process and then its process group, which contains it (`timeout`, a shell whose terminal closes).
/// Such a pair counts as one signal. An operator's second signal comes later than this.
const REPEAT_WINDOW: Duration = Duration::from_millis(250);
/// How often it is looked whether the terminal is still there.
const TERMINAL_LOOK: Duration = Duration::from_secs(5);
/// A SIGHUP within this time after the terminal was found closed has been sent because of that, even on a busy machine.
const TERMINAL_ENDS: Duration = Duration::from_secs(10);
/// How many requests may wait to be read.
const MAX_WAITING: usize = 64;

/// SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1 and SIGUSR2, in the order in which they arrive.
pub(super) struct Signals {
    heard: mpsc::Receiver<SignalAction>,
    /// What was heard while only a stop was waited for.
    kept: VecDeque<SignalAction>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignalAction {
    /// SIGTERM, SIGINT or SIGQUIT. With SIGQUIT, operators of nginx ask for a stop that finishes requests.
    Stop,
    /// SIGHUP, unless it was sent because the terminal was closed.
    Reload,
    /// SIGUSR1.
    Drain,
    /// SIGUSR2.
    Upgrade,
}

/// The task that receives signals. It runs all the time, so that the time of each signal is known.
struct SignalStream {
    stopping: StopSignals,
    others: EarlySignals,
    stops: Stops,
}

/// SIGTERM, SIGINT and SIGQUIT.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
}

/// The terminal in which Hostler was started, if there was one.
#[derive(Clone, Copy)]
struct Terminal {
    was_there: bool,
    /// When it was found closed.
    closed: Option<Instant>,
}

/// The last stop signal that counted.
#[derive(Default)]
struct Stops(Option<Instant>);

/// Handles the signals other than stops from before the configuration is read: a sender does not know how far the start is.
pub(super) struct EarlySignals {
    hang_up: Signal,
    drain: Signal,
    upgrade: Signal,
    terminal: Terminal,
    /// Only for process 1 of a container: the kernel drops a stop signal that process 1 does not handle. Any other process just ends.
    starting: Option<oneshot::Sender<()>>,
}

impl StopSignals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.quit.recv() => {}
        }
    }
}

/// Ends this process at a stop signal until the returned sender is dropped. On a thread of its own: the start reads files on the thread that
/// handles signals later, and their disk may hang.
fn end_at_stop() -> io::Result<oneshot::Sender<()>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut stopping = {
        let _entered = runtime.enter();
        StopSignals::new()?
    };
    let (starting, is_over) = oneshot::channel::<()>();
    let wait = async move {
        tokio::select! {
            biased;
            _ = is_over => {}
            // A stop before the first client is no failure.
            () = stopping.next() => process::exit(0),
        }
    };
    thread::Builder::new().name("start".to_owned()).spawn(move || runtime.block_on(wait))?;
    Ok(starting)
}

impl EarlySignals {
    /// From now on none of these signals ends the process. One that comes before [`Signals::new`] is kept until then.
    pub fn new(runtime: &Runtime) -> io::Result<Self> {
        let _entered = runtime.enter();
        // SIGXFSZ: a file, such as the log, has reached `RLIMIT_FSIZE`. If the signal is handled, only the write fails; otherwise the process ends.
        // Programs that Hostler starts do not inherit this.
        drop(signal(SignalKind::from_raw(SignalNumber::XFSZ.as_raw()))?);
        Ok(Self {
            hang_up: signal(SignalKind::hangup())?,
            drain: signal(SignalKind::user_defined1())?,
            upgrade: signal(SignalKind::user_defined2())?,
            terminal: Terminal { was_there: has_terminal(), closed: None },
            starting: (process::id() == 1).then(end_at_stop).transpose()?,
        })
    }
}

impl Signals {
    /// From now on no signal to stop ends the process by itself either.
    pub fn new(mut early: EarlySignals) -> io::Result<Self> {
        let stopping = StopSignals::new()?;
        // Not before: a signal in between would be lost.
        drop(early.starting.take());
        let ear = SignalStream { stopping, others: early, stops: Stops::default() };
        let (sender, heard) = mpsc::channel(MAX_WAITING);
        tokio::spawn(ear.listen(sender));
        Ok(Self { heard, kept: VecDeque::new() })
    }

    /// The next request. Two stop signals within a quarter of a second count as one.
    pub async fn next(&mut self) -> SignalAction {
        match self.kept.pop_front() {
            Some(action) => action,
            None => self.newest().await,
        }
    }

    /// Waits for a stop. Other requests are kept for [`Self::next`], each of them once.
    pub async fn stop(&mut self) {
        loop {
            match self.newest().await {
                SignalAction::Stop => return,
                other if self.kept.contains(&other) => {}
                other => self.kept.push_back(other),
            }
        }
    }

    /// [`Self::next`] returns it again.
    pub fn keep(&mut self, action: SignalAction) {
        self.kept.push_back(action);
    }

    async fn newest(&mut self) -> SignalAction {
        match self.heard.recv().await {
            Some(action) => action,
            // The runtime is ending.
            None => std::future::pending().await,
        }
    }
}

impl SignalStream {
    async fn listen(mut self, heard: mpsc::Sender<SignalAction>) {
        loop {
            let action = self.next().await;
            if action == SignalAction::Stop && self.stops.is_echo(Instant::now()) {
                continue;
            }
            // If the queue is full, the same request is in it already.
            let _ = heard.try_send(action);
        }
    }

    async fn next(&mut self) -> SignalAction {
        let EarlySignals { hang_up, drain, upgrade, terminal, .. } = &mut self.others;
        loop {
            return tokio::select! {
                () = self.stopping.next() => SignalAction::Stop,
                _ = hang_up.recv() => terminal.hung_up(has_terminal(), Instant::now()),
                _ = drain.recv() => SignalAction::Drain,
                _ = upgrade.recv() => SignalAction::Upgrade,
                () = sleep(TERMINAL_LOOK), if terminal.is_open() => {
                    terminal.look(has_terminal(), Instant::now());
                    continue;
                }
            };
        }
    }
}

impl Terminal {
    fn is_open(self) -> bool {
        self.was_there && self.closed.is_none()
    }

    fn look(&mut self, is_there: bool, now: Instant) {
        if self.is_open() && !is_there {
            self.closed = Some(now);
        }
    }

    /// What a SIGHUP means. If the controlling terminal has just been closed, it is a stop. Otherwise it is a reload, also long after the terminal was
    /// closed: then the operator has left Hostler running, for example with `setsid` or `disown`.
    fn hung_up(&mut self, is_there: bool, now: Instant) -> SignalAction {
        self.look(is_there, now);
        match self.closed {
            Some(closed) if now < closed + TERMINAL_ENDS => SignalAction::Stop,
            _ => SignalAction::Reload,
        }
    }
}

impl Stops {
    /// Whether the signal repeats the one before. It is compared with the last signal that counted. So if a supervisor repeats a signal all the
    /// time, one signal in each [`REPEAT_WINDOW`] counts.
    fn is_echo(&mut self, now: Instant) -> bool {
        if self.0.is_some_and(|last| now < last + REPEAT_WINDOW) {
            return true;
        }
        self.0 = Some(now);
        false
    }
}

/// False if there is none or it was closed.
fn has_terminal() -> bool {
    io::stdin().is_terminal() || io::stdout().is_terminal() || io::stderr().is_terminal()
}

impl SignalAction {
    /// The name of the signal.
    pub fn signal(self) -> &'static str {
        match self {
            Self::Stop => "SIGTERM",
            Self::Reload => "SIGHUP",
            Self::Drain => "SIGUSR1",
            Self::Upgrade => "SIGUSR2",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn a_hang_up_stops_only_if_the_terminal_was_closed_just_now() {
        let open = Terminal { was_there: true, closed: None };
        let none = Terminal { was_there: false, closed: None };
        for (mut terminal, is_there, expected) in [
            (open, true, SignalAction::Reload),
            (open, false, SignalAction::Stop),
            (none, false, SignalAction::Reload),
        ] {
            assert_eq!(terminal.hung_up(is_there, Instant::now()), expected);
        }
        let mut left_long_ago = open;
        left_long_ago.look(false, Instant::now());
        assert_eq!(left_long_ago.hung_up(false, Instant::now()), SignalAction::Stop);
        advance(TERMINAL_ENDS).await;
        assert_eq!(left_long_ago.hung_up(false, Instant::now()), SignalAction::Reload);
    }

    #[tokio::test(start_paused = true)]
    async fn two_signals_to_stop_within_a_quarter_of_a_second_are_one() {
        let mut stops = Stops::default();
        let mut counted = Vec::new();
        for _ in 0..10 {
            counted.push(!stops.is_echo(Instant::now()));
            advance(Duration::from_millis(100)).await;
        }
        // At 0, 300, 600 and 900 ms.
        let expected = [true, false, false, true, false, false, true, false, false, true];
        assert_eq!(counted, expected);
    }
}
