//! The one way to standard output: access lines, worker output, events. Knows how lines look and that nobody may wait for them.
//!
//! Lines are collected in memory and written by a thread of its own. When the reader of our output stands still, lines are
//! dropped and counted: requests never wait for a log, and the end of the program waits a moment at most.

mod complaints;
mod gorouter;
mod line;
mod writer;

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

pub use complaints::Complaints;
pub use gorouter::Hop;
pub use line::{Access, Level};
pub use writer::WriterUsage;

use writer::Writer;

/// How long the end of the program waits for the reader of its standard output. With [`Complaints`] it is a second.
const TIME_LIMIT: Duration = Duration::from_millis(800);

use line::{Event, WorkerLine};

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON value a line.
    Json,
    /// For people.
    Pretty,
    /// JSON, but for exchanges: those are as Cloud Foundry's gorouter writes them.
    Gorouter,
}

/// A handle on the log; cheap to clone.
#[derive(Clone)]
pub struct Journal {
    form: LogFormat,
    access: bool,
    writer: Arc<Writer>,
}

impl Journal {
    /// A journal on standard output; `access`: one line an exchange.
    pub fn open(form: LogFormat, access: bool) -> io::Result<Self> {
        Ok(Self::new(form, access, Writer::file(io::stdout())?))
    }

    /// A journal in a file.
    pub fn new(form: LogFormat, access: bool, out: File) -> Self {
        let writer = Writer::new(out, move |out, dropped| {
            let text = format!("{dropped} log lines were dropped: their reader did not keep up");
            Event { level: Level::Warn, text: &text }.write(out, form);
        });
        Self { form, access, writer: Arc::new(writer) }
    }

    /// An exchange has ended. The line is only made if it is wanted.
    pub fn access<'a>(&self, line: impl FnOnce() -> Access<'a>) {
        if self.access && self.form != LogFormat::Gorouter {
            self.write(|out, form| line().write(out, form));
        }
    }

    /// An exchange has ended, for who reads gorouter's lines. It is only made if it is wanted.
    pub fn hop<'a>(&self, line: impl FnOnce() -> Hop<'a>) {
        if self.access && self.form == LogFormat::Gorouter {
            self.write(|out, _| line().write(out));
        }
    }

    /// Something happened that an operator should know.
    pub fn event(&self, level: Level, text: &str) {
        self.write(|out, form| Event { level, text }.write(out, form));
    }

    /// A worker wrote a line.
    pub fn worker_line(&self, pool: &str, worker: usize, stream: &str, text: &str) {
        self.write(|out, form| WorkerLine { pool, worker, stream, text }.write(out, form));
    }

    /// What is written and what is not; for the Status.
    pub fn usage(&self) -> WriterUsage {
        self.writer.usage()
    }

    /// Waits until all is written, or for a moment; for the end of the program.
    pub fn end(&self) {
        self.writer.end(TIME_LIMIT);
    }

    fn write(&self, line: impl FnOnce(&mut Vec<u8>, LogFormat)) {
        self.writer.append(|out| line(out, self.form));
    }
}
