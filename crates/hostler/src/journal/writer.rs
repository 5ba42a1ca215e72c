//! A buffer and the thread that empties it. Knows nothing of what is written.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

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
            let _ = out.write_all(&writing).and_then(|()| out.flush());
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
