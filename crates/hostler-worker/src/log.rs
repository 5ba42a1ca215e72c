//! What workers print and what happens to them, as records for the program's log; knows no format.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncRead;

use super::inspector::Notices;
use super::lines::{LineReader, Overlong};

const LINE_LIMIT: usize = 16 * 1024;
const TAIL_LINES: usize = 20;

/// Takes the records. It is called on the runtime that reads the workers' pipes and must not wait: while it does,
/// the pipes fill, and a worker that prints stands still. It may drop what is too much.
pub type LogSink = Arc<dyn Fn(WorkerRecord) + Send + Sync>;

/// One entry for the log.
#[derive(Clone, Debug)]
pub struct WorkerRecord {
    /// The pool.
    pub pool: Arc<str>,
    /// The worker's number, from 1; 0 for what concerns all.
    pub worker: usize,
    /// What it is about.
    pub entry: LogEntry,
}

impl WorkerRecord {
    /// Whom it is about: `web/1`, or `web` for what concerns the whole pool.
    pub fn subject(&self) -> String {
        match self.worker {
            0 => self.pool.to_string(),
            worker => format!("{}/{worker}", self.pool),
        }
    }
}

/// What a record is about.
#[derive(Clone, Debug)]
pub enum LogEntry {
    /// The worker printed a line.
    Output {
        /// Where.
        stream: OutputStream,
        /// The line, without its end; invalid UTF-8 is replaced.
        line: String,
    },
    /// Something happened to the worker.
    Event(WorkerEvent),
}

/// Where a worker printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How much an event matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerLogLevel {
    /// All is as it should be.
    Info,
    /// Somebody should read this some day.
    Warn,
    /// Somebody should read this now.
    Error,
}

/// What happened to a worker. `Display` is a sentence without the worker's name.
#[derive(Clone, Debug)]
pub enum WorkerEvent {
    /// Its process was started.
    Started {
        /// The process.
        pid: u32,
    },
    /// It gets requests from now on.
    Ready {
        /// The process that listens.
        pid: u32,
        /// From spawn to ready.
        took: Duration,
    },
    /// Its process could not be started, or has ended without having been asked to.
    Died {
        /// The process, if there was one.
        pid: Option<u32>,
        /// How.
        how: String,
        /// What follows; nothing, if it was needed no more or had not yet taken the place of another.
        next: Option<NextLine>,
    },
    /// It gets no more requests, and ends when it has finished those that it has.
    Retires {
        /// The process that listens.
        pid: u32,
        /// Why.
        why: String,
    },
    /// A spare is started: workers die often, or the pool always has one.
    SpareHired,
    /// A spare takes the place of a worker that is missing.
    StepsIn {
        /// The process that listens.
        pid: u32,
    },
    /// All workers are back: the spare stands by.
    StepsBack {
        /// The process that listens.
        pid: u32,
    },
    /// All workers of the pool are being replaced, one by one.
    RestartBegan {
        /// How many.
        workers: usize,
    },
    /// They have been.
    RestartDone {
        /// How many.
        workers: usize,
        /// From the order to the end.
        took: Duration,
    },
    /// A restart has ended early.
    RestartFailed {
        /// Why.
        why: String,
    },
    /// It was to be recycled, but its successor did not get ready, so it stays.
    NotRecycled {
        /// Why it was to be.
        reason: String,
        /// How it went.
        how: String,
        /// How long until it is tried again.
        pause: Duration,
    },
    /// It is killed by Hostler.
    Killed {
        /// The process that listens.
        pid: u32,
        /// Why.
        why: String,
        /// What it printed last.
        tail: Vec<String>,
    },
    /// It was asked to stop, and did.
    Stopped {
        /// The process.
        pid: Option<u32>,
        /// How it ended.
        how: String,
    },
    /// The preload, or Hostler, has something to say about the app.
    Warning {
        /// What.
        text: String,
    },
}

/// What follows a death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextLine {
    /// How long until it boots again.
    pub restarts_in: Duration,
    /// Boots in a row that have failed; 0: it rests because boots have used up their CPU.
    pub failed_boots: u32,
}

impl WorkerEvent {
    /// How much it matters.
    pub fn level(&self) -> WorkerLogLevel {
        match self {
            Self::Started { .. }
            | Self::Ready { .. }
            | Self::Retires { .. }
            | Self::SpareHired
            | Self::StepsIn { .. }
            | Self::StepsBack { .. }
            | Self::RestartBegan { .. }
            | Self::RestartDone { .. }
            | Self::Stopped { .. } => WorkerLogLevel::Info,
            Self::Warning { .. } => WorkerLogLevel::Warn,
            Self::Died { .. }
            | Self::Killed { .. }
            | Self::RestartFailed { .. }
            | Self::NotRecycled { .. } => WorkerLogLevel::Error,
        }
    }
}

impl fmt::Display for WorkerEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { pid } => write!(f, "started (pid {pid})"),
            Self::Ready { pid, took } => write!(f, "ready (pid {pid}) in {} ms", took.as_millis()),
            Self::Died { pid, how, next } => {
                match pid {
                    None => write!(f, "did not start: {how}; ")?,
                    Some(pid) => write!(f, "died (pid {pid}): {how}; ")?,
                }
                match next {
                    None => f.write_str("it does not come back"),
                    Some(next) => next.fmt(f),
                }
            }
            Self::Retires { pid, why } => write!(f, "retires (pid {pid}): {why}"),
            Self::SpareHired => f.write_str("is started as a spare, to stand by for workers that die"),
            Self::StepsIn { pid } => write!(f, "steps in (pid {pid}): a worker is missing"),
            Self::StepsBack { pid } => write!(f, "steps back (pid {pid}): no worker is missing any more"),
            Self::RestartBegan { workers } => write!(f, "restart: {workers} workers, one by one"),
            Self::RestartDone { workers, took } => {
                write!(f, "restart: {workers} workers replaced in {:.1} s", took.as_secs_f64())
            }
            Self::RestartFailed { why } => write!(f, "restart failed: {why}"),
            Self::NotRecycled { reason, how, pause } => {
                let pause = pause.as_secs();
                write!(
                    f,
                    "not recycled ({reason}), as its successor did not get ready: {how}; tries again in {pause} s"
                )
            }
            Self::Killed { pid, why, tail } => {
                write!(f, "killed (pid {pid}): {why}; it printed ")?;
                if tail.is_empty() { f.write_str("nothing") } else { write!(f, "last:\n{}", tail.join("\n")) }
            }
            Self::Stopped { pid: None, how } => write!(f, "stopped ({how})"),
            Self::Stopped { pid: Some(pid), how } => write!(f, "stopped (pid {pid}): {how}"),
            Self::Warning { text } => f.write_str(text),
        }
    }
}

impl fmt::Display for NextLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.restarts_in.is_zero() {
            return f.write_str("restarts at once");
        }
        let rest = self.restarts_in.as_secs_f64();
        match self.failed_boots {
            0 => write!(f, "restarts in {rest:.1} s (boots have used up their restart_cpu)"),
            boots => write!(f, "restarts in {rest:.1} s (crash loop: {boots} in a row)"),
        }
    }
}

/// The last lines of a worker, for the case that it never gets ready.
#[derive(Clone, Default)]
pub(super) struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// The line that says most: the last that names an error, or else the last one. Node ends with its own version.
    pub fn telling_line(&self) -> Option<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let named = lines.iter().rev().find(|line| names_error(line));
        named.or_else(|| lines.iter().rev().find(|line| !line.trim().is_empty())).cloned()
    }

    fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == TAIL_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

/// As in `TypeError: x is not a function` or `Error [ERR_MODULE_NOT_FOUND]: ...`.
fn names_error(line: &str) -> bool {
    let name = line.split([':', ' ']).next().unwrap_or_default();
    name.len() < line.len() && name.ends_with("Error")
}

/// Where the records of one worker go.
#[derive(Clone)]
pub(super) struct WorkerLog {
    pub sink: LogSink,
    pub pool: Arc<str>,
    pub worker: usize,
}

impl WorkerLog {
    pub fn event(&self, event: WorkerEvent) {
        self.record(LogEntry::Event(event));
    }

    pub fn warn(&self, text: impl Into<String>) {
        self.event(WorkerEvent::Warning { text: text.into() });
    }

    /// Reads what a worker prints until the pipe ends.
    pub async fn read(
        self,
        stream: OutputStream,
        pipe: impl AsyncRead + Unpin,
        tail: Tail,
        notices: Notices,
    ) {
        let mut lines = LineReader::new(pipe, LINE_LIMIT, Overlong::Split);
        while let Some(line) = lines.next().await {
            let line = String::from_utf8(line)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
            let Some(line) = notices.keep_ours(line) else { continue };
            tail.push(line.clone());
            self.record(LogEntry::Output { stream, line });
        }
    }

    fn record(&self, entry: LogEntry) {
        (self.sink)(WorkerRecord { pool: Arc::clone(&self.pool), worker: self.worker, entry });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_a_dead_worker_printed_the_error_says_most() {
        let node = "node:internal/modules/cjs/loader:1210\n  throw err;\n\nError: Cannot find module './x'\n    at a.js\n\nNode.js v20.20.2";
        let cases = [
            (node, Some("Error: Cannot find module './x'")),
            ("TypeError [ERR_X]: no\n    at a.js", Some("TypeError [ERR_X]: no")),
            ("no database\n\n", Some("no database")),
            ("a\nMyError\n  Error: indented", Some("  Error: indented")),
            ("\n", None),
        ];
        for (printed, telling) in cases {
            let tail = Tail::default();
            printed.lines().for_each(|line| tail.push(line.to_owned()));
            assert_eq!(tail.telling_line().as_deref(), telling, "{printed}");
        }
    }
}
