//! Standard error, written without waiting for its reader: errors at the start, and panics. Knows no log.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::printable::{Allowed, printable_lines};
use super::writer::Writer;

/// How long the end of the program waits for the reader of standard error.
const TIME_LIMIT: Duration = Duration::from_millis(200);

/// Standard error. Dropping it at the end of the program waits a moment until all is written.
pub struct ErrorOutput(Option<Arc<Writer>>);

impl ErrorOutput {
    /// Without a free descriptor, or if the system refuses the thread, a line is written at once if the reader has room for it.
    pub fn open() -> Self {
        let tell = |out: &mut Vec<u8>, dropped: u64, _: Option<&str>| {
            out.extend_from_slice(format!("hostler: {dropped} lines were dropped here\n").as_bytes());
        };
        let writer = Writer::file(io::stderr()).and_then(|file| Writer::new(file, tell, |_| ()));
        Self(writer.ok().map(Arc::new))
    }

    /// Writes a line.
    pub fn say(&self, line: impl Display) {
        match &self.0 {
            Some(writer) => say(writer, &line),
            None => write_at_once(&printable(&line)),
        }
    }

    /// Writes panics here from now on. The default hook would block the panicking thread until the reader reads.
    pub fn take_panics(&self) {
        let Some(writer) = self.0.clone() else { return };
        std::panic::set_hook(Box::new(move |panic| {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or("<unnamed>");
            let trace = Backtrace::capture();
            match trace.status() {
                BacktraceStatus::Captured => say(&writer, &format_args!("thread '{name}' {panic}\n{trace}")),
                _ => say(&writer, &format_args!("thread '{name}' {panic}")),
            }
        }));
    }
}

/// Writes a line to standard error if its reader has room for it.
pub(super) fn say_at_once(line: &str) {
    write_at_once(&format!("hostler: {line}"));
}

fn write_at_once(text: &str) {
    let mut out = io::stderr();
    let mut ready = [PollFd::new(&out, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    if poll(&mut ready, Some(&now)).is_ok_and(|ready| ready > 0) {
        // Nothing is left to report an error to.
        let _ = out.write_all(format!("{text}\n").as_bytes());
    }
}

/// It may have several lines, and may end with what an app has printed.
fn printable(line: &dyn Display) -> String {
    printable_lines(&line.to_string(), Allowed::on_standard_error())
}

fn say(writer: &Writer, line: &dyn Display) {
    let text = printable(line);
    writer.append(|out| out.extend_from_slice(format!("{text}\n").as_bytes()));
}

impl Drop for ErrorOutput {
    fn drop(&mut self) {
        if let Some(writer) = &self.0 {
            writer.end(TIME_LIMIT);
        }
    }
}
