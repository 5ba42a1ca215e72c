//! Reads the app's diary: which process has had which request, and whether a process had too many at once. Knows no Hostler.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use serde::Deserialize;

use super::request::DEADLY;

/// The entries so far, and the position for the next read.
pub struct Diary {
    file: PathBuf,
    read: usize,
    visits: HashMap<String, Vec<u32>>,
    /// Processes that have had a deadly request.
    pub doomed: HashSet<u32>,
    pub violations: Vec<String>,
}

#[derive(Deserialize)]
struct Line {
    pid: u32,
    id: Option<String>,
    violation: Option<usize>,
}

impl Diary {
    pub fn new(file: PathBuf) -> Self {
        Self { file, read: 0, visits: HashMap::new(), doomed: HashSet::new(), violations: Vec::new() }
    }

    /// Reads the new entries.
    pub fn read_on(&mut self) {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        // Another process may have written half of a line.
        let end = text.rfind('\n').map_or(0, |at| at + 1);
        for line in text[self.read..end].lines() {
            let Line { pid, id, violation } =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            let id = id.unwrap_or_default();
            if id.starts_with(DEADLY) {
                self.doomed.insert(pid);
            }
            self.visits.entry(id).or_default().push(pid);
            if violation.is_some() {
                self.violations.push(line.to_owned());
            }
        }
        self.read = end;
    }

    /// The processes that have had this request, in order.
    pub fn visits(&self, id: &str) -> &[u32] {
        self.visits.get(id).map_or(&[], Vec::as_slice)
    }
}
