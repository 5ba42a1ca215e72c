//! The last lines that a worker has printed, and the most useful of them. Writes no log.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The stream on which a worker printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The lines in the log when a worker is killed ...
const TAIL_LINES: usize = 20;
/// ... and those that are kept for the case that its boot fails: a stack trace, and the lines before it.
const KEPT_LINES: usize = 50;
/// So many bytes are kept of a line. An app may print objects of 256 KiB, and 20 of them would make one line of the log.
const KEPT_BYTES: usize = 4 * 1024;

/// The last lines of a worker, for the case that it never gets ready.
#[derive(Clone, Default)]
pub struct Tail(Arc<Mutex<LastLines>>);

#[derive(Default)]
struct LastLines {
    whole: VecDeque<(OutputStream, String)>,
    /// Lines whose end has not come, one of a stream at most. An app that asks a question waits within its line.
    begun: Vec<(OutputStream, String)>,
}

impl LastLines {
    fn all(&self) -> impl DoubleEndedIterator<Item = &(OutputStream, String)> {
        self.whole.iter().chain(&self.begun)
    }
}

impl Tail {
    pub fn lines(&self) -> Vec<String> {
        let lines = self.lock();
        let surplus = lines.all().count().saturating_sub(TAIL_LINES);
        lines.all().skip(surplus).map(|(_, line)| line.clone()).collect()
    }

    /// The last lines of standard error; if there are none, those of standard output.
    pub fn last_words(&self) -> Vec<String> {
        let lines = self.lock();
        let of = |wanted: OutputStream| {
            let lines = lines.all().filter(move |(stream, _)| *stream == wanted);
            lines.map(|(_, line)| line.clone()).collect::<Vec<_>>()
        };
        let errors = of(OutputStream::Stderr);
        if errors.iter().any(|line| !line.trim().is_empty()) { errors } else { of(OutputStream::Stdout) }
    }

    /// The last warning that the preload has printed, because it had no channel to Hostler.
    pub fn last_warning_of_preload(&self) -> Option<String> {
        let lines = self.lock();
        let warning = lines.all().rev().find_map(|(_, line)| line.split_once("HostlerWarning: "));
        warning.map(|(_, text)| text.to_owned())
    }

    /// The most useful line: the last one that names an error, or else the last one. (The very last line of Node is its
    /// version.)
    pub fn most_useful_line(&self) -> Option<String> {
        let lines = self.lock();
        let newest_first = || lines.all().rev().map(|(_, line)| line);
        let named = newest_first().find(|line| names_error(line));
        named.or_else(|| newest_first().find(|line| !line.trim().is_empty())).cloned()
    }

    /// The port that was in use, if this is what the last error says: `Error: listen EADDRINUSE: address already in use :::9090`.
    pub fn port_in_use(&self) -> Option<u16> {
        let line = self.most_useful_line()?;
        let (_, address) = line.split_once("EADDRINUSE: address already in use ")?;
        let (_, port) = address.split_whitespace().next()?.rsplit_once(':')?;
        port.parse().ok()
    }

    pub(super) fn push(&self, stream: OutputStream, line: &str) {
        let mut lines = self.lock();
        if lines.whole.len() == KEPT_LINES {
            lines.whole.pop_front();
        }
        lines.whole.push_back((stream, beginning(line)));
        lines.begun.retain(|(of, _)| *of != stream);
    }

    /// What is there of a line whose end has not come. Empty: nothing.
    pub(super) fn begin(&self, stream: OutputStream, text: &[u8]) {
        let mut lines = self.lock();
        lines.begun.retain(|(of, _)| *of != stream);
        if !text.is_empty() {
            // One byte more shows that there is more.
            let text = &text[..text.len().min(KEPT_BYTES + 1)];
            lines.begun.push((stream, beginning(&String::from_utf8_lossy(text))));
        }
    }

    /// What is there of lines whose end has not come.
    pub(super) fn begun(&self) -> Vec<(OutputStream, String)> {
        self.lock().begun.clone()
    }

    fn lock(&self) -> MutexGuard<'_, LastLines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is kept of a line.
fn beginning(line: &str) -> String {
    let cut = line.floor_char_boundary(KEPT_BYTES);
    let rest = if cut < line.len() { "…" } else { "" };
    format!("{}{rest}", &line[..cut])
}

/// For example `TypeError: x is not a function` or `Error [ERR_MODULE_NOT_FOUND]: ...`.
fn names_error(line: &str) -> bool {
    let name = line.split([':', ' ']).next().unwrap_or_default();
    name.len() < line.len() && name.ends_with("Error")
}
