//! What the registrar has to tell operators, without telling them the same thing every twenty seconds. Knows no registry.

use std::collections::HashSet;

use serde::Serialize;

use super::message::Invalid;
use super::registry::{Change, Gone, Oddity};
use crate::journal::{Journal, Level};

/// Clients repeat themselves for as long as they live: what has been told once is only counted. Beyond so many different
/// things, too.
const MOST_TOLD: usize = 200;
/// Of a text that somebody else wrote.
const LONGEST: usize = 200;

pub(super) struct Log {
    pub counts: Counts,
    journal: Journal,
    told: HashSet<String>,
}

/// Messages so far.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Counts {
    pub registered: u64,
    pub unregistered: u64,
    pub invalid: u64,
    pub odd: u64,
}

impl Log {
    pub fn new(journal: Journal) -> Self {
        Self { counts: Counts::default(), journal, told: HashSet::new() }
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// A message that was dropped.
    pub fn invalid(&mut self, subject: &str, why: &Invalid) {
        self.counts.invalid += 1;
        self.tell(format!("a message to {subject} is dropped: {why}"));
    }

    /// A part of a message that was passed over.
    pub fn odd(&mut self, oddity: &Oddity) {
        self.counts.odd += 1;
        self.tell(oddity.to_string());
    }

    /// What became of a look for those who are silent.
    pub fn pruned(&self, was_suspended: bool, is_suspended: bool, changes: &[Change]) {
        match (was_suspended, is_suspended) {
            (false, true) => self.event(Level::Warn, "NATS is away: nobody is taken out for being silent"),
            (true, false) => self
                .event(Level::Info, "NATS is back: whoever does not register anew goes when his time is up"),
            _ => {}
        }
        let silent = changes.iter().filter(|change| matches!(change, Change::Left(.., Gone::Silent))).count();
        if silent > 0 {
            self.event(Level::Info, &format!("{silent} members were silent for too long and are taken out"));
        }
    }

    fn tell(&mut self, text: String) {
        if self.told.len() < MOST_TOLD && !self.told.contains(&text) {
            self.event(Level::Warn, &text.chars().take(LONGEST).collect::<String>());
            self.told.insert(text);
        }
    }

    fn event(&self, level: Level, text: &str) {
        self.journal.event(level, &format!("registrar: {text}"));
    }
}
