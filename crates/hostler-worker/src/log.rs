//! What workers print and what happens to them, as records for the program's log. Knows no format.

mod tail;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::io::AsyncRead;

use super::heartbeat::BLOCKED;
use super::inspector::Notices;
use super::lines::{LineReader, Overlong};
pub use tail::OutputStream;
pub(super) use tail::Tail;

const LINE_LIMIT: usize = 16 * 1024;

/// Receives the records.
///
/// It is called on the runtime that reads the workers' pipes, so it must not block: while it does, the pipes fill, and a
/// worker that prints stands still. It may drop records if there are too many.
pub type LogSink = Arc<dyn Fn(WorkerRecord) + Send + Sync>;

/// One record for the log.
#[derive(Clone, Debug)]
pub struct WorkerRecord {
    /// The pool.
    pub pool: Arc<str>,
    /// The worker's number, from 1. 0: the record concerns the whole pool.
    pub worker: usize,
    /// What the record says.
    pub entry: LogEntry,
}

impl WorkerRecord {
    /// The subject of the record: `web/1`, or `web` for the whole pool.
    pub fn subject(&self) -> String {
        match self.worker {
            0 => self.pool.to_string(),
            worker => format!("{}/{worker}", self.pool),
        }
    }
}

/// What a record says.
#[derive(Clone, Debug)]
pub enum LogEntry {
    /// The worker printed a line.
    Output {
        /// Standard output or standard error.
        stream: OutputStream,
        /// The line, without its end. Invalid UTF-8 is replaced.
        line: String,
        /// It is a whole line, not a piece of one that was too long.
        is_whole: bool,
        /// The process that listens, or else the one that Hostler started. Another process of the worker may have printed it.
        pid: u32,
    },
    /// Something happened to the worker.
    Event(WorkerEvent),
}

/// The severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerLogLevel {
    /// Normal operation.
    Info,
    /// An operator should read this some day.
    Warn,
    /// An operator should read this now.
    Error,
}

/// What happened to a worker. `Display` is a sentence without the worker's name.
#[derive(Clone, Debug)]
pub enum WorkerEvent {
    /// The process was started.
    Started {
        /// The process.
        pid: u32,
    },
    /// The worker gets requests from now on.
    Ready {
        /// The process that listens.
        pid: u32,
        /// The time from spawn to ready.
        took: Duration,
    },
    /// The process could not be started, or has ended although Hostler had not asked for it.
    Died {
        /// The process, if there was one.
        pid: Option<u32>,
        /// How it ended.
        how: String,
        /// What follows. `None`: the worker was not needed any more, or had not yet replaced another.
        next: Option<NextLine>,
    },
    /// The worker gets no more requests, and ends when it has finished its running ones.
    Retires {
        /// The process that listens.
        pid: u32,
        /// Why.
        why: String,
    },
    /// Its event loop has not turned for some seconds although it has requests.
    Blocked {
        /// The process that listens.
        pid: u32,
    },
    /// A spare is started: workers die often, one is blocked, or the pool always has a spare.
    SpareStarted,
    /// A spare takes the place of a worker that is missing or blocked.
    SpareJoined {
        /// The process that listens.
        pid: u32,
    },
    /// All workers are back and turn, so the spare stands by.
    SpareLeft {
        /// The process that listens.
        pid: u32,
    },
    /// The pool gets another number of workers.
    Scaled {
        /// How many workers.
        workers: usize,
        /// Why.
        why: String,
    },
    /// All workers of the pool are being replaced, one by one.
    RestartBegan {
        /// How many workers.
        workers: usize,
    },
    /// All workers of the pool have been replaced.
    RestartDone {
        /// How many workers.
        workers: usize,
        /// The time from the command to the end.
        took: Duration,
    },
    /// A restart has ended early.
    RestartFailed {
        /// Why.
        why: String,
    },
    /// The worker was to be recycled, but its successor did not get ready, so it stays.
    NotRecycled {
        /// Why it was to be recycled.
        reason: String,
        /// What happened to the successor.
        how: String,
        /// The time until the next attempt.
        pause: Duration,
    },
    /// Hostler kills the worker.
    Killed {
        /// The process that listens.
        pid: u32,
        /// Why.
        why: String,
        /// The last lines it printed.
        tail: Vec<String>,
    },
    /// The worker was asked to stop, and stopped.
    Stopped {
        /// The process.
        pid: Option<u32>,
        /// How it ended.
        how: String,
    },
    /// The folder of the compile cache cannot be used.
    NoCompileCache {
        /// Why.
        why: String,
        /// The operator has named the folder.
        is_asked_for: bool,
    },
    /// The worker opens Node's inspector.
    Inspector {
        /// The process that listens.
        pid: u32,
        /// The address of the inspector.
        address: SocketAddr,
    },
    /// The preload or Hostler reports something about the app that is in order.
    Note {
        /// The report.
        text: String,
    },
    /// The preload or Hostler warns about the app.
    Warning {
        /// The warning.
        text: String,
    },
}

/// What follows a death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextLine {
    /// The time until the worker boots again.
    pub restarts_in: Duration,
    /// Failed boots in a row. 0: the worker waits because boots have used up their CPU time.
    pub failed_boots: u32,
    /// It boots again when a file changes, not after a time.
    pub waits_for_change: bool,
}

impl WorkerEvent {
    /// The severity of the event.
    pub fn level(&self) -> WorkerLogLevel {
        match self {
            Self::Started { .. }
            | Self::Ready { .. }
            | Self::Retires { .. }
            | Self::SpareStarted
            | Self::SpareJoined { .. }
            | Self::SpareLeft { .. }
            | Self::Scaled { .. }
            | Self::RestartBegan { .. }
            | Self::RestartDone { .. }
            | Self::NoCompileCache { is_asked_for: false, .. }
            | Self::Inspector { .. }
            | Self::Note { .. }
            | Self::Stopped { .. } => WorkerLogLevel::Info,
            Self::NoCompileCache { is_asked_for: true, .. } | Self::Blocked { .. } | Self::Warning { .. } => {
                WorkerLogLevel::Warn
            }
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
                    None => f.write_str("Hostler does not start it again"),
                    Some(next) => next.fmt(f),
                }
            }
            Self::Retires { pid, why } => write!(f, "ends (pid {pid}): {why}"),
            Self::Blocked { pid } => {
                let blocked = BLOCKED.as_secs();
                write!(
                    f,
                    "is blocked (pid {pid}): it has requests, and its event loop has not turned for {blocked} s"
                )
            }
            Self::SpareStarted => f.write_str("is started as a spare for workers that die or are blocked"),
            Self::SpareJoined { pid } => {
                write!(f, "spare joins the pool (pid {pid}): a worker is missing or blocked")
            }
            Self::SpareLeft { pid } => {
                write!(f, "spare leaves the pool (pid {pid}): no worker is missing or blocked any more")
            }
            Self::Scaled { workers: 0, why } => write!(f, "falls asleep: {why}"),
            Self::Scaled { workers: 1, why } => write!(f, "1 worker is wanted: {why}"),
            Self::Scaled { workers, why } => write!(f, "{workers} workers are wanted: {why}"),
            Self::RestartBegan { workers: 1 } => f.write_str("restart: 1 worker"),
            Self::RestartBegan { workers } => write!(f, "restart: {workers} workers, one by one"),
            Self::RestartDone { workers, took } => {
                let s = if *workers == 1 { "" } else { "s" };
                write!(f, "restart: {workers} worker{s} replaced in {:.1} s", took.as_secs_f64())
            }
            Self::RestartFailed { why } => write!(f, "restart failed: {why}"),
            Self::NoCompileCache { why, is_asked_for: true } => write!(f, "no compile cache: {why}"),
            Self::NoCompileCache { why, is_asked_for: false } => {
                write!(f, "the compile cache is kept only until Hostler ends: {why}")
            }
            Self::NotRecycled { reason, how, pause } => {
                let pause = pause.as_secs();
                write!(
                    f,
                    "not recycled ({reason}), because its successor did not get ready: {how}; next attempt in {pause} s"
                )
            }
            Self::Killed { pid, why, tail } => {
                write!(f, "killed (pid {pid}): {why}; it printed ")?;
                if tail.is_empty() { f.write_str("nothing") } else { write!(f, "last:\n{}", tail.join("\n")) }
            }
            Self::Stopped { pid: None, how } => write!(f, "stopped ({how})"),
            Self::Stopped { pid: Some(pid), how } => write!(f, "stopped (pid {pid}): {how}"),
            Self::Inspector { pid, address } => write!(f, "opens the inspector on {address} (pid {pid})"),
            Self::Warning { text } | Self::Note { text } => f.write_str(text),
        }
    }
}

impl fmt::Display for NextLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.waits_for_change {
            return f.write_str("restarts when a file changes");
        }
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

/// Writes the records of one worker.
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

    /// Reads what a worker prints, until the pipe ends.
    pub async fn read(
        self,
        (stream, pid): (OutputStream, Arc<AtomicU32>),
        pipe: impl AsyncRead + Unpin,
        tail: Tail,
        notices: Notices,
    ) {
        let mut lines = LineReader::new(pipe, LINE_LIMIT, Overlong::Split);
        while let Some(line) = lines.next_or_begun(|begun| tail.begin(stream, begun)).await {
            let line = String::from_utf8(line)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
            let Some(line) = notices.keep_app_output(line) else { continue };
            tail.push(stream, &line);
            let (is_whole, pid) = (lines.was_whole(), pid.load(Ordering::Relaxed));
            self.record(LogEntry::Output { stream, line, is_whole, pid });
        }
    }

    /// Writes the beginnings of lines whose end will not be read.
    pub fn cut_off(&self, tail: &Tail, pid: u32) {
        for (stream, line) in tail.begun() {
            self.record(LogEntry::Output { stream, line, is_whole: false, pid });
        }
    }

    fn record(&self, entry: LogEntry) {
        (self.sink)(WorkerRecord { pool: Arc::clone(&self.pool), worker: self.worker, entry });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn a_worker_that_prints_very_many_lines_lets_other_tasks_run() {
        const LINES: usize = 10_000;
        let written = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&written);
        let sink: LogSink = Arc::new(move |_: WorkerRecord| {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        let log = WorkerLog { sink, pool: "web".into(), worker: 1 };
        let printed = "\n".repeat(LINES);
        let reading = tokio::spawn(async move {
            let from = (OutputStream::Stdout, Arc::default());
            log.read(from, printed.as_bytes(), Tail::default(), Notices::default()).await;
        });
        yield_now().await;
        let so_far = written.load(Ordering::Relaxed);
        assert!(so_far < LINES, "all at once");
        reading.await.unwrap();
        assert_eq!(written.load(Ordering::Relaxed), LINES);
    }

    #[test]
    fn the_error_line_of_a_dead_worker_is_chosen_from_its_output() {
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
            printed.lines().for_each(|line| tail.push(OutputStream::Stderr, line));
            assert_eq!(tail.most_useful_line().as_deref(), telling, "{printed}");
        }
    }

    #[test]
    fn of_long_lines_the_beginning_is_kept() {
        let tail = Tail::default();
        let long = format!("{{\"a\":\"{}\"}}", "€".repeat(80_000));
        (0..100).for_each(|_| tail.push(OutputStream::Stdout, &long));
        tail.begin(OutputStream::Stderr, long.as_bytes());
        let kept = tail.lines();
        assert_eq!(kept.len(), 20);
        for line in &kept {
            let beginning = line.strip_suffix('…').unwrap();
            assert!(
                long.starts_with(beginning) && (4000..=4096).contains(&beginning.len()),
                "{}",
                line.len()
            );
        }
        let short = "x".repeat(4096);
        tail.push(OutputStream::Stderr, &short);
        assert_eq!(tail.last_words(), [short]);
    }

    #[test]
    fn a_port_in_use_is_read_from_the_last_error() {
        let cases = [
            ("Error: listen EADDRINUSE: address already in use :::9090\n    at x\n\nNode.js v20", Some(9090)),
            ("Error: listen EADDRINUSE: address already in use 127.0.0.1:80", Some(80)),
            ("Error: listen EADDRINUSE: address already in use /run/a.sock", None),
            ("Error: listen EADDRINUSE: address already in use :::9090\nTypeError: later", None),
            ("no database", None),
        ];
        for (printed, port) in cases {
            let tail = Tail::default();
            printed.lines().for_each(|line| tail.push(OutputStream::Stderr, line));
            assert_eq!(tail.port_in_use(), port, "{printed}");
        }
    }
}
