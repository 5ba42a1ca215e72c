//! The registrar's log lines, each written once a day although clients repeat their messages every twenty seconds. Knows no registry.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

use hostler_engine::journal::{Journal, Level};
use serde::Serialize;
use tokio::time::Instant;

use super::message::Invalid;
use super::registry::{Departure, RouteChange};
use super::words::IgnoredPart;

/// How many different lines are written at most in a [`DAY`]. Clients repeat a bad message for as long as they run, so a line that was
/// written once is only counted from then on.
const MAX_LOGGED: usize = 200;
/// After this time each line is new again. Otherwise the last of the lines would be written some day, and no new trouble would be seen.
const DAY: Duration = Duration::from_secs(24 * 3600);
/// How many characters of a client's text a line contains at most.
const MAX_TEXT: usize = 200;
/// Why a member is removed.
const LATE: &str = "did not register again in time (registrar.stale_threshold)";

pub(super) struct RegistrarLog {
    pub counts: RegistrarCounts,
    journal: Journal,
    told: ToldLines,
}

/// The lines that were written in a day.
struct ToldLines {
    lines: HashSet<String>,
    since: Instant,
}

/// Counts of messages.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct RegistrarCounts {
    pub registered: u64,
    pub unregistered: u64,
    pub invalid: u64,
    pub odd: u64,
    /// Messages and URIs that were refused.
    pub refused: RefusedCounts,
}

/// Counts of refusals, by reason.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct RefusedCounts {
    pub own_address: u64,
    pub message_size: u64,
    pub uris: u64,
    pub routes: u64,
    pub memory: u64,
}

/// A message that is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    #[error("the member {0} is refused: it is {1}, an address of this Hostler")]
    OwnAddress(SocketAddr, SocketAddr),
    #[error("a message is refused: it has more than {0} bytes (registrar.max_message_size)")]
    MessageSize(usize),
    #[error("a message of {0}:{1} is refused: it has more than {2} URIs (registrar.max_uris)")]
    Uris(String, u16, usize),
}

impl RegistrarLog {
    pub fn new(journal: Journal) -> Self {
        Self { counts: RegistrarCounts::default(), journal, told: ToldLines::new(Instant::now()) }
    }

    /// Logs a message that cannot be parsed. Only its text tells which program has sent it.
    pub fn invalid(&mut self, subject: &str, why: &Invalid, payload: &[u8]) {
        self.counts.invalid += 1;
        let text = String::from_utf8_lossy(payload);
        self.tell(format!("a message to {subject} is dropped: {why}: {text}"));
    }

    /// Logs a message that is refused.
    pub fn refused(&mut self, why: &Refused) {
        let counts = &mut self.counts.refused;
        match why {
            Refused::OwnAddress(..) => counts.own_address += 1,
            Refused::MessageSize(_) => counts.message_size += 1,
            Refused::Uris(..) => counts.uris += 1,
        }
        self.tell(why.to_string());
    }

    /// Logs a part of a registration that is ignored.
    pub fn odd(&mut self, oddity: &IgnoredPart) {
        match oddity {
            IgnoredPart::MostRoutes(_) => self.counts.refused.routes += 1,
            IgnoredPart::MostMemory(_) => self.counts.refused.memory += 1,
            IgnoredPart::Uri(..) | IgnoredPart::Balancing(_) => self.counts.odd += 1,
        }
        self.tell(oddity.to_string());
    }

    /// Logs the result of pruning.
    pub fn pruned(&self, was_suspended: bool, is_suspended: bool, changes: &[RouteChange]) {
        match (was_suspended, is_suspended) {
            (false, true) => self.event(
                Level::Warn,
                "NATS is unreachable: Hostler removes no members (registrar.suspend_pruning)",
            ),
            (true, false) => self.event(
                Level::Info,
                "NATS is back: Hostler removes members that do not register again in time (registrar.stale_threshold)",
            ),
            _ => {}
        }
        let is_silent = |change: &&RouteChange| matches!(change, RouteChange::Left(.., Departure::Silent));
        let silent = changes.iter().filter(is_silent).count();
        match silent {
            0 => {}
            1 => self.event(Level::Info, &format!("1 member is removed, because it {LATE}")),
            _ => {
                self.event(Level::Info, &format!("{silent} members are removed, because they {LATE}"));
            }
        }
    }

    fn tell(&mut self, text: String) {
        let text: String = text.chars().take(MAX_TEXT).collect();
        if self.told.is_new(&text, Instant::now()) {
            self.event(Level::Warn, &text);
        }
    }

    fn event(&self, level: Level, text: &str) {
        self.journal.event(level, &format!("registrar: {text}"));
    }
}

impl ToldLines {
    fn new(now: Instant) -> Self {
        Self { lines: HashSet::new(), since: now }
    }

    /// Whether this line is to be written. It is once a day.
    fn is_new(&mut self, text: &str, now: Instant) -> bool {
        if now.saturating_duration_since(self.since) >= DAY {
            *self = Self::new(now);
        }
        self.lines.len() < MAX_LOGGED && self.lines.insert(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_written_once_a_day_and_the_limit_is_one_of_a_day() {
        let now = Instant::now();
        let mut told = ToldLines::new(now);
        for day in 0..3 {
            let now = now + day * DAY;
            assert!(told.is_new("refused", now) && !told.is_new("refused", now), "day {day}");
            let written = (0..1000).filter(|line| told.is_new(&format!("{day} {line}"), now)).count();
            assert_eq!(written, MAX_LOGGED - 1, "day {day}");
        }
    }
}
