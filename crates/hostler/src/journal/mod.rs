//! The one way to standard output: access lines, worker output, events. Knows how lines look and that nobody may wait for them.
//!
//! Lines are collected in memory and written by a thread of its own. When whoever reads our output stands still, lines are
//! dropped and counted; requests never wait for a log.

mod gorouter;
mod line;
mod writer;

use std::sync::Arc;

pub use gorouter::Hop;
pub use line::{Access, Level};
pub use writer::Writer;

use line::{Event, WorkerLine};

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
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
    form: Form,
    access: bool,
    writer: Arc<Writer>,
}

impl Journal {
    /// A journal that writes through `writer`; `access`: one line an exchange.
    pub fn new(form: Form, access: bool, writer: Writer) -> Self {
        Self { form, access, writer: Arc::new(writer) }
    }

    /// An exchange has ended. The line is only made if it is wanted.
    pub fn access<'a>(&self, line: impl FnOnce() -> Access<'a>) {
        if self.access && self.form != Form::Gorouter {
            self.write(|out, form| line().write(out, form));
        }
    }

    /// An exchange has ended, for who reads gorouter's lines. It is only made if it is wanted.
    pub fn hop<'a>(&self, line: impl FnOnce() -> Hop<'a>) {
        if self.access && self.form == Form::Gorouter {
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

    /// Waits until all is written; for the end of the program.
    pub fn flush(&self) {
        self.writer.flush();
    }

    fn write(&self, line: impl FnOnce(&mut Vec<u8>, Form)) {
        self.writer.append(|out| line(out, self.form));
    }
}
