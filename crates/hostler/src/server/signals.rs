//! The signals that Hostler listens to. Knows not what follows from them.

use std::io::{self, IsTerminal};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    drain: Signal,
    upgrade: Signal,
    has_terminal: bool,
}

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

impl Signals {
    /// From now on none of them ends the process by itself.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            drain: signal(SignalKind::user_defined1())?,
            upgrade: signal(SignalKind::user_defined2())?,
            has_terminal: has_terminal(),
        })
    }

    /// The next one.
    pub async fn next(&mut self) -> Wish {
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
