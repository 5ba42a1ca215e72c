//! A buffer and the thread that empties it. Knows nothing of what is written.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// A pipe takes so much in one piece (PIPE_BUF): while a successor writes to the same one, no line breaks into another.
const PIECE: usize = 4096;
/// What may wait to be written; more is dropped.
const MOST: usize = 8 * 1024 * 1024;

/// Writes in the background.
pub struct Writer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    dropped: u64,
    ended: bool,
}

impl Writer {
    /// Writes to `out` until it is flushed for the last time.
    pub fn new(out: impl Write + Send + 'static) -> Self {
        let shared = Arc::new(Shared::default());
        let writing = shared.clone();
        let thread = std::thread::Builder::new().name("journal".into()).spawn(move || writing.run(out)).ok();
        Self { shared, thread: Mutex::new(thread) }
    }

    /// Appends a line, or drops it when too much waits already.
    pub fn append(&self, line: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.shared.lock();
        if state.waiting.len() > MOST || state.ended {
            state.dropped += 1;
            return;
        }
        let was_empty = state.waiting.is_empty();
        line(&mut state.waiting);
        drop(state);
        if was_empty {
            self.shared.changed.notify_one();
        }
    }

    /// Writes all and ends.
    pub fn flush(&self) {
        self.shared.lock().ended = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
}

/// As many whole lines at a time as go in one piece; a longer line goes alone.
fn pieces(mut lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let fits = &lines[..lines.len().min(PIECE)];
        let end = memchr::memrchr(b'\n', fits).or_else(|| memchr::memchr(b'\n', lines));
        let (piece, rest) = lines.split_at(end.map_or(lines.len(), |end| end + 1));
        lines = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

impl Shared {
    fn run(&self, mut out: impl Write) {
        let mut writing = Vec::new();
        loop {
            writing.clear();
            let (dropped, ended) = self.wait(&mut writing);
            if dropped > 0 {
                let _ = writeln!(
                    writing,
                    r#"{{"event":"log","level":"warn","text":"{dropped} log lines were dropped: nobody read fast enough"}}"#
                );
            }
            // Nobody is left to tell when the log itself fails.
            let _ = pieces(&writing).try_for_each(|piece| out.write_all(piece)).and_then(|()| out.flush());
            if ended {
                return;
            }
        }
    }

    fn wait(&self, writing: &mut Vec<u8>) -> (u64, bool) {
        let mut state = self.lock();
        while state.waiting.is_empty() && !state.ended {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::swap(&mut state.waiting, writing);
        (std::mem::take(&mut state.dropped), state.ended)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_written_whole_and_in_pieces_that_a_pipe_takes_at_once() {
        let line = |length: usize| [vec![b'x'; length - 1], vec![b'\n']].concat();
        let all = [line(4000), line(96), line(1), line(9000), line(4096), line(10)].concat();
        let lengths: Vec<_> = pieces(&all).map(<[u8]>::len).collect();
        assert_eq!(lengths, [4096, 1, 9000, 4096, 10]);
        assert_eq!(pieces(&all).collect::<Vec<_>>().concat(), all);
        assert_eq!(pieces(b"no end").collect::<Vec<_>>(), [b"no end"]);
    }
}
