//! The thread that writes the lines that wait, and the next one, which goes on with another file while that one is stuck.

use std::fs::File;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::output::{LogOutput, count, pieces};
use super::waiting::{WriterInner, WriterState};

/// The capacity that an empty buffer keeps.
const KEPT_CAPACITY: usize = 1024 * 1024;

/// If the next line comes within this time, lines come fast. To wake the thread for each costs several times what it costs to write it ...
const BUSY: Duration = Duration::from_millis(1);
/// ... so the thread writes only after this time ...
const GATHERING: Duration = Duration::from_millis(5);
/// ... or when so many bytes wait.
pub(super) const GATHERED: usize = 64 * 1024;

impl WriterInner {
    /// Starts the thread with this number.
    pub fn begin(self: &Arc<Self>, number: u64) -> io::Result<()> {
        let inner = self.clone();
        std::thread::Builder::new().name("journal".into()).spawn(move || inner.run(number)).map(drop)
    }

    /// Lets another thread go on with another file. With the same one it would be stuck, too.
    pub fn hand_over_if_stuck(self: &Arc<Self>, state: &mut WriterState) {
        let has_other = state.replacement.as_ref().is_some_and(|(identity, _)| *identity != state.at);
        let is_stuck = has_other && state.stuck_ms().is_some();
        // The new thread waits for the lock.
        if is_stuck && self.begin(state.thread + 1).is_ok() {
            state.hand_over();
        }
    }

    fn run(&self, number: u64) {
        let (mut writing, mut output, mut is_busy) = (Vec::new(), None, false);
        loop {
            writing.clear();
            writing.shrink_to(KEPT_CAPACITY);
            if is_busy {
                self.gather();
            }
            let asked = Instant::now();
            let (dropped, ended, replacement, error) = self.wait(&mut writing);
            is_busy = asked.elapsed() < BUSY;
            output = match replacement {
                Some(file) => Some(LogOutput::after(output, file)),
                None => output,
            };
            let Some(out) = &mut output else { return };
            let lines = writing.len();
            if dropped > 0 {
                (self.tell)(&mut writing, dropped, error.as_deref());
            }
            let (lines, told) = writing.split_at(lines);
            let (mut lost, mut error) = (0, None);
            for piece in pieces(lines) {
                if let Err(failed) = out.write(piece) {
                    lost += failed.lines as u64;
                    error = Some(failed.error);
                }
                self.goes_on(number, piece);
            }
            let is_told = out.write(told).is_ok();
            let error: Option<Arc<str>> = error.map(|error| error.to_string().into());
            let mut state = self.lock();
            if state.thread != number {
                // The lines of this thread were counted as dropped when the other thread took over.
                return;
            }
            let telling = std::mem::take(&mut state.telling);
            state.dropped += if is_told { 0 } else { telling };
            (state.writing, state.since) = (0, None);
            state.drop_lines(lost);
            state.last_error = error.clone().or(state.last_error.take());
            let is_over = ended && state.waiting.is_empty();
            drop(state);
            if let Some(error) = error.filter(|_| !out.has_complained) {
                (self.complain)(&error);
                out.has_complained = true;
            }
            if is_over {
                self.lock().finished = true;
                return self.changed.notify_all();
            }
        }
    }

    /// A piece is written or lost.
    fn goes_on(&self, number: u64, piece: &[u8]) {
        let lines = count(piece) as u64;
        let mut state = self.lock();
        if state.thread == number {
            state.writing -= piece.len();
            state.writing_lines -= lines;
            state.since = Some(Instant::now());
        }
    }

    /// Waits for more lines than one. None of them wakes the thread before its time.
    fn gather(&self) {
        let mut state = self.lock();
        state.is_gathering = true;
        let waits = |state: &mut WriterState| {
            state.waiting.len() < GATHERED && !state.ended && state.replacement.is_none()
        };
        let waited = self.changed.wait_timeout_while(state, GATHERING, waits);
        waited.unwrap_or_else(PoisonError::into_inner).0.is_gathering = false;
    }

    fn wait(&self, writing: &mut Vec<u8>) -> (u64, bool, Option<File>, Option<Arc<str>>) {
        let mut state = self.lock();
        while state.waiting.is_empty() && !state.ended && state.replacement.is_none() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::swap(&mut state.waiting, writing);
        (state.writing, state.since) = (writing.len(), Some(Instant::now()));
        state.sources.take(writing.len());
        state.writing_lines = count(writing) as u64;
        state.telling = std::mem::take(&mut state.dropped);
        let replacement = state.replacement.take().map(|(identity, file)| {
            state.at = identity;
            file
        });
        (state.telling, state.ended, replacement, state.last_error.clone())
    }
}
