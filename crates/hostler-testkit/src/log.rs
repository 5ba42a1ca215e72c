//! The lines of a program's log as they are written. Knows no meaning except JSON.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// A thread collects the lines. It ends with the program that writes them.
pub(crate) struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    ended: Receiver<()>,
}

impl Log {
    /// Collects the lines of this stream.
    pub fn of(out: impl Read + Send + 'static) -> Self {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (ending, ended) = channel();
        let collected = lines.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                collected.lock().unwrap().push(line);
            }
            drop(ending);
        });
        Self { lines, ended }
    }

    /// All lines so far.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// The lines that are JSON.
    pub fn values(&self) -> Vec<Value> {
        self.lines().iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The text after `text` in the first line with it, up to a quote or the end of the line.
    pub fn after(&self, text: &str) -> Option<String> {
        let lines = self.lines();
        let found = lines.iter().find_map(|line| line.split_once(text))?.1;
        Some(found.split('"').next()?.to_owned())
    }

    /// Whether the writer ends within this time.
    pub fn ends_within(&self, time: std::time::Duration) -> bool {
        use std::sync::mpsc::RecvTimeoutError::Disconnected;
        matches!(self.ended.recv_timeout(time), Err(Disconnected))
    }
}
