//! The log on standard output or in a file: access lines, output of workers, events. Knows the formats, and never blocks its callers.
//!
//! Lines are collected in memory and written by a separate thread. When the reader of our output stops reading, lines are dropped and
//! counted: a request never waits for the log, and the end of the program waits less than a second.

mod app_line;
mod colour;
mod error_output;
mod json;
mod line;
mod pretty;
mod printable;
mod priority;
mod rules;
mod seldom;
mod writer;

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustix::fs::OFlags;
use rustix::io::Errno;

pub use colour::is_coloured;
pub use error_output::ErrorOutput;
pub use line::{Access, Level, LogFormat, WorkerLine};
pub use printable::{Allowed, is_unsafe, on_one_line, printable_lines};
pub use rules::LogRules;
pub use seldom::SeldomLine;
pub use writer::WriterUsage;

use priority::Priorities;
use writer::Writer;

/// How long the end of the program waits for the reader of standard output. With [`ErrorOutput`] it is one second in total.
const TIME_LIMIT: Duration = Duration::from_millis(800);

use line::Event;

/// A handle on the log. Cheap to clone.
#[derive(Clone)]
pub struct Journal {
    form: LogFormat,
    access: bool,
    rules: Arc<ArcSwap<LogRules>>,
    priorities: Arc<Priorities>,
    writer: Arc<Writer>,
}

impl Journal {
    /// Writes to this file, or else to standard output. `access`: with a line for each exchange. `journal_stream`: the environment variable
    /// `JOURNAL_STREAM`. If it names standard output, each line gets its priority.
    pub fn open(
        form: LogFormat,
        access: bool,
        file: Option<&Path>,
        journal_stream: Option<&str>,
    ) -> io::Result<Self> {
        let priorities = Priorities::new(journal_stream, file.is_none());
        Self::writing(form, access, opened(file)?, priorities)
    }

    /// Opens a file for [`Self::go_on_in`], or else standard output. May block.
    pub fn opened(file: Option<&Path>) -> io::Result<File> {
        opened(file)
    }

    /// Further lines go to this file, or to standard output (`is_stdout`).
    pub fn go_on_in(&self, out: File, is_stdout: bool) {
        let was_stdout = self.priorities.to_stdout(is_stdout);
        self.writer.replace(out, |waiting| {
            if was_stdout && !is_stdout {
                self.priorities.unmark(waiting);
            }
        });
    }

    /// Further lines follow these rules.
    pub fn follow(&self, rules: LogRules) {
        self.rules.store(Arc::new(rules));
    }

    /// Writes to a file.
    pub fn new(form: LogFormat, access: bool, out: File) -> io::Result<Self> {
        Self::writing(form, access, out, Priorities::new(None, false))
    }

    fn writing(form: LogFormat, access: bool, out: File, priorities: Priorities) -> io::Result<Self> {
        let priorities = Arc::new(priorities);
        let marking = priorities.clone();
        let tell = move |out: &mut Vec<u8>, dropped: u64, error: Option<&str>| {
            let why = error.unwrap_or("the reader of the log is too slow");
            let (text, start) = (format!("{dropped} log lines were dropped: {why}"), out.len());
            write_event(out, form, &Event { level: Level::Warn, text: &text });
            marking.mark(out, start, Level::Warn);
        };
        let complain = |error: &str| {
            error_output::say_at_once(&format!("the log cannot be written, so its lines are lost: {error}"));
        };
        let writer = Arc::new(Writer::new(out, tell, complain)?);
        Ok(Self { form, access, rules: Arc::default(), priorities, writer })
    }

    /// Writes an access line. The closure runs only if access lines are on.
    pub fn access<'a>(&self, line: impl FnOnce() -> Access<'a>) {
        if !self.access {
            return;
        }
        let (rules, mut line) = (self.rules.load(), line());
        if rules.choose(&mut line) {
            let (host, target) = (LogRules::redacted_host(line.host), rules.redacted_target(line.target));
            let referer = line.referer.map(|url| rules.redacted(url));
            let line = Access { host: &host, target: &target, referer: referer.as_deref(), ..line };
            self.write(Level::of_status(line.status), |out, form| match form {
                LogFormat::Json => json::access(out, &line),
                LogFormat::Pretty { coloured } => pretty::access(out, &line, coloured),
            });
        }
    }

    /// Writes a line in a format that the journal does not know. `write` adds the line with its line break.
    pub fn line(&self, level: Level, write: impl FnOnce(&mut Vec<u8>, &LogRules)) {
        let rules = self.rules.load();
        self.write(level, |out, _| write(out, &rules));
    }

    /// Writes an event for the operator. It is not lost because workers print too much.
    pub fn event(&self, level: Level, text: &str) {
        if !self.rules.load().has_event(level) {
            return;
        }
        self.writer.append_reserved(|out| {
            let start = out.len();
            write_event(out, self.form, &Event { level, text });
            self.priorities.mark(out, start, level);
        });
    }

    /// Writes a line of a worker's output. The line is parsed before the lock is taken, so that no request waits for it. A worker that prints
    /// too much loses the lines of its own pool, and not those of other pools or of requests.
    pub fn worker_line(&self, line: WorkerLine<'_>) {
        let mut text = Vec::with_capacity(line.text.len() + 256);
        let level = match self.form {
            LogFormat::Json => json::worker_line(&mut text, &line),
            LogFormat::Pretty { coloured } => pretty::worker_line(&mut text, &line, coloured),
        };
        let level = level.unwrap_or(if line.stream == "stderr" { Level::Warn } else { Level::Info });
        self.priorities.mark(&mut text, 0, level);
        self.writer.append_modest(line.pool, |out| out.extend_from_slice(&text));
    }

    /// The URL as the log shows it, for texts that also appear elsewhere.
    pub fn redacted<'a>(&self, url: &'a str) -> Cow<'a, str> {
        self.rules.load().redacted(url)
    }

    /// Counters for the Status.
    pub fn usage(&self) -> WriterUsage {
        self.writer.usage()
    }

    /// Waits until all is written, within a time limit. For the end of the program.
    pub fn end(&self) {
        self.writer.end(TIME_LIMIT);
    }

    fn write(&self, level: Level, line: impl FnOnce(&mut Vec<u8>, LogFormat)) {
        self.writer.append(|out| {
            let start = out.len();
            line(out, self.form);
            self.priorities.mark(out, start, level);
        });
    }
}

/// Lines are added to the end of a file, also by a predecessor that still runs. To open a named pipe does not wait for its reader: Hostler
/// would neither start nor stop meanwhile.
fn opened(file: Option<&Path>) -> io::Result<File> {
    let Some(file) = file else { return Writer::file(io::stdout()) };
    let at_once = OFlags::NONBLOCK.bits().cast_signed();
    let opened = OpenOptions::new().append(true).create(true).mode(0o640).custom_flags(at_once).open(file);
    opened.map_err(|error| match (Errno::from_io_error(&error), file.metadata()) {
        (Some(Errno::NXIO), Ok(found)) if found.file_type().is_fifo() => {
            io::Error::other("it is a named pipe that no program reads")
        }
        // So is /dev/stdout under systemd.
        (Some(Errno::NXIO), Ok(found)) if found.file_type().is_socket() => {
            io::Error::other("it is a socket; leave log.file out if the log should go to standard output")
        }
        _ => error,
    })
}

fn write_event(out: &mut Vec<u8>, form: LogFormat, event: &Event<'_>) {
    match form {
        LogFormat::Json => json::event(out, event),
        LogFormat::Pretty { coloured } => pretty::event(out, event, coloured),
    }
}
