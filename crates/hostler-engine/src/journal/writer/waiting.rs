//! The lines that wait to be written, those that were dropped, and what is known of the thread that writes. Writes nothing itself.

use std::collections::HashMap;
use std::fs::File;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::output::FileIdentity;

/// Appends the line that reports how many lines were dropped, and with which error.
pub(super) type TellDropped = dyn Fn(&mut Vec<u8>, u64, Option<&str>) + Send + Sync;

/// What the handle of a writer and its thread share.
pub(super) struct WriterInner {
    pub state: Mutex<WriterState>,
    pub changed: Condvar,
    pub tell: Box<TellDropped>,
    pub complain: Box<dyn Fn(&str) + Send + Sync>,
}

/// The lines that wait, and what is known of the thread that writes them.
#[derive(Default)]
pub(super) struct WriterState {
    pub waiting: Vec<u8>,
    pub sources: SourceBytes,
    /// The number of the thread that writes. A thread with a lower number is stuck, and ends when it goes on.
    pub thread: u64,
    /// The bytes and the lines that the thread has still to write, and since when it has written nothing.
    pub writing: usize,
    pub writing_lines: u64,
    pub since: Option<Instant>,
    /// Dropped lines that no log line has reported yet, and those that the thread is about to report.
    pub dropped: u64,
    pub telling: u64,
    pub dropped_in_all: u64,
    /// Why the last lines were dropped, if it was an error.
    pub last_error: Option<Arc<str>>,
    /// The file to which the thread writes.
    pub at: FileIdentity,
    /// The file to which the thread will write its next lines.
    pub replacement: Option<(FileIdentity, File)>,
    /// The thread waits for more lines, and takes all of them soon: the first one need not wake it.
    pub is_gathering: bool,
    /// No further line is taken.
    pub ended: bool,
    /// The thread has written everything and ended.
    pub finished: bool,
}

/// How many bytes of the lines of each source wait or are in the hands of the thread.
#[derive(Default)]
pub(super) struct SourceBytes {
    waiting: HashMap<Box<str>, usize>,
    in_hand: HashMap<Box<str>, usize>,
    /// The bytes of all lines that the thread has taken.
    taken: usize,
}

impl SourceBytes {
    /// Of the bytes that the thread has taken, so many are left to write. Those of each source are thought to be spread over all of them.
    pub fn of(&self, source: &str, left: usize) -> usize {
        let bytes = |of: &HashMap<Box<str>, usize>| of.get(source).copied().unwrap_or_default();
        let in_hand = bytes(&self.in_hand) as u64 * left as u64 / self.taken.max(1) as u64;
        bytes(&self.waiting) + in_hand as usize
    }

    pub fn add(&mut self, source: &str, bytes: usize) {
        match self.waiting.get_mut(source) {
            Some(sum) => *sum += bytes,
            None => {
                self.waiting.insert(source.into(), bytes);
            }
        }
    }

    /// The thread takes all lines that wait.
    pub fn take(&mut self, bytes: usize) {
        self.in_hand = std::mem::take(&mut self.waiting);
        self.taken = bytes;
    }
}

impl WriterInner {
    pub fn lock(&self) -> MutexGuard<'_, WriterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WriterState {
    pub fn drop_lines(&mut self, lines: u64) {
        self.dropped += lines;
        self.dropped_in_all += lines;
    }

    /// Lets the next thread write. Lines that this thread has in hand count as dropped, although the reader may still get them.
    pub fn hand_over(&mut self) {
        self.thread += 1;
        let lines = std::mem::take(&mut self.writing_lines);
        self.drop_lines(lines);
        self.dropped += std::mem::take(&mut self.telling);
        (self.writing, self.since, self.last_error) = (0, None, None);
    }

    /// For how many milliseconds nothing was written. A short write is normal: None.
    pub fn stuck_ms(&self) -> Option<u64> {
        let since = self.since?.elapsed();
        (since >= Duration::from_secs(1)).then_some(since.as_millis() as u64)
    }
}
