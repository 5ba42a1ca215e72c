//! The signals that Hostler listens to. Knows not what follows from them.

use std::io::{self, IsTerminal};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Some supervisors tell a process to stop, and then its group, to which it belongs (`timeout`, a shell whose terminal is closed):
/// those are one signal. A second one that is meant comes later.
const ECHO: Duration = Duration::from_millis(250);
/// Wishes that may wait for whoever fulfils them.
const MOST_WAITING: usize = 64;

/// SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2, from the moment on in which they come.
pub(super) struct Signals(mpsc::Receiver<Wish>);

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// SIGTERM or SIGINT.
    Stop,
    /// SIGHUP, unless a terminal was closed.
    Reload,
    /// SIGUSR1.
    Drain,
    /// SIGUSR2.
    Upgrade,
}

/// The task that hears them: also while nobody asks, so that it is known when each has come.
struct SignalStream {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    drain: Signal,
    upgrade: Signal,
    has_terminal: bool,
    stops: Stops,
}

/// The last signal to stop that counted.
#[derive(Default)]
struct Stops(Option<Instant>);

impl Signals {
    /// From now on none of them ends the process by itself.
    pub fn new() -> io::Result<Self> {
        let ear = SignalStream {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            drain: signal(SignalKind::user_defined1())?,
            upgrade: signal(SignalKind::user_defined2())?,
            has_terminal: has_terminal(),
            stops: Stops::default(),
        };
        let (heard, wishes) = mpsc::channel(MOST_WAITING);
        tokio::spawn(ear.listen(heard));
        Ok(Self(wishes))
    }

    /// The next one. Two to stop within a quarter of a second are one.
    pub async fn next(&mut self) -> Wish {
        match self.0.recv().await {
            Some(wish) => wish,
            // The runtime is ending.
            None => std::future::pending().await,
        }
    }
}

impl SignalStream {
    async fn listen(mut self, heard: mpsc::Sender<Wish>) {
        loop {
            let wish = self.next().await;
            if wish == Wish::Stop && self.stops.is_echo(Instant::now()) {
                continue;
            }
            // One too many is one that has been said before.
            let _ = heard.try_send(wish);
        }
    }

    async fn next(&mut self) -> Wish {
        tokio::select! {
            _ = self.terminate.recv() => Wish::Stop,
            _ = self.interrupt.recv() => Wish::Stop,
            _ = self.hang_up.recv() => self.hung_up(),
            _ = self.drain.recv() => Wish::Drain,
            _ = self.upgrade.recv() => Wish::Upgrade,
        }
    }

    /// The same signal says that a terminal was closed: then nobody is left to whom we belong.
    fn hung_up(&self) -> Wish {
        if self.has_terminal && !has_terminal() { Wish::Stop } else { Wish::Reload }
    }
}

impl Stops {
    /// Whether it says again what was said a moment ago. Each is compared with the last one that counted, so that a supervisor that
    /// repeats itself without end is heard.
    fn is_echo(&mut self, now: Instant) -> bool {
        if self.0.is_some_and(|last| now < last + ECHO) {
            return true;
        }
        self.0 = Some(now);
        false
    }
}

/// One that was closed is none any more.
fn has_terminal() -> bool {
    io::stdin().is_terminal() || io::stdout().is_terminal() || io::stderr().is_terminal()
}

impl Wish {
    /// The signal that brings it.
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
