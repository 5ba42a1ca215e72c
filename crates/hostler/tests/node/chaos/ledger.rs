//! The record of a run: requests with their results, and faults. Judges nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard};

use hostler_testkit::{ConnectionEnding, ReceivedAnswer};
use tokio::time::Instant;

use super::request::Request;

/// The result of a request, as its client sees it.
#[derive(Clone)]
pub enum Outcome {
    /// 200 with the complete, right body.
    Right,
    /// Any other answer.
    Other(Box<ReceivedAnswer>),
    /// No answer, for this reason.
    Nothing(String),
    /// The client did not wait for it.
    Left,
}

/// A request and its result.
#[derive(Clone)]
pub struct Entry {
    pub request: Request,
    pub outcome: Outcome,
    pub began: Instant,
    pub ended: Instant,
}

/// A fault of Hostler or of a worker.
#[derive(Clone)]
pub struct InjectedFault {
    pub at: Instant,
    pub pool: &'static str,
    /// The process that it ended, if known.
    pub kills: Option<u32>,
    /// It ended some worker of the pool.
    pub is_deadly: bool,
    pub what: String,
    /// The process or the request.
    pub detail: String,
}

/// Written by all tasks, read by the verdict.
pub struct Ledger {
    began: Instant,
    entries: Mutex<Vec<Entry>>,
    faults: Mutex<Vec<InjectedFault>>,
}

impl InjectedFault {
    /// An event that does no harm.
    pub fn harmless(what: String) -> Self {
        let (pool, detail) = ("", String::new());
        Self { at: Instant::now(), pool, kills: None, is_deadly: false, what, detail }
    }
}

impl Outcome {
    pub fn of(request: &Request, answer: ReceivedAnswer) -> Self {
        let is_right = answer.status == 200
            && answer.ending == ConnectionEnding::Whole
            && answer.body == request.right_body()
            && answer.interim.is_empty();
        if is_right { Self::Right } else { Self::Other(Box::new(answer)) }
    }

    /// An answer has come, of any kind.
    pub fn is_answer(&self) -> bool {
        matches!(self, Self::Right | Self::Other(_))
    }

    /// Hostler's own answer: its status and reason.
    pub fn refusal(&self) -> Option<(u16, String)> {
        let Self::Other(answer) = self else { return None };
        let reason = answer.field("hostler-refusal")?;
        (answer.ending == ConnectionEnding::Whole).then_some((answer.status, reason))
    }
}

impl Ledger {
    pub fn new() -> Self {
        Self { began: Instant::now(), entries: Mutex::default(), faults: Mutex::default() }
    }

    pub fn enter(&self, entry: Entry) {
        lock(&self.entries).push(entry);
    }

    pub fn record_fault(&self, fault: InjectedFault) {
        lock(&self.faults).push(fault);
    }

    pub fn faults(&self) -> Vec<InjectedFault> {
        lock(&self.faults).clone()
    }

    pub fn entries(&self) -> Vec<Entry> {
        lock(&self.entries).clone()
    }

    /// How many requests have ended.
    pub fn ended(&self) -> usize {
        lock(&self.entries).len()
    }

    /// Counts of all events, for people.
    pub fn summary(&self) -> String {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for InjectedFault { pool, what, .. } in self.faults() {
            *counts.entry(format!("{what} {pool}")).or_default() += 1;
        }
        counts.into_iter().map(|(kind, count)| format!("{count:5} {kind}")).collect::<Vec<_>>().join("\n")
    }

    /// A fault as a line of the schedule.
    pub fn line(&self, InjectedFault { at, pool, what, detail, .. }: &InjectedFault) -> String {
        format!("{} {what} {pool} {detail}", self.clock(*at))
    }

    /// Seconds since the start, for people.
    pub fn clock(&self, at: Instant) -> String {
        format!("{:7.3} s", at.saturating_duration_since(self.began).as_secs_f64())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Right => f.write_str("the right answer"),
            Self::Other(answer) => answer.fmt(f),
            Self::Nothing(why) => write!(f, "no answer: {why}"),
            Self::Left => f.write_str("the client left"),
        }
    }
}
