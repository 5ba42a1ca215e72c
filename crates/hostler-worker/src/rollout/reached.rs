//! How far a restart has come. Decides nothing.

use std::fmt;

use super::Plan;

/// How far a restart had come when it failed. `Display` is a part of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// How many workers had been replaced.
    pub replaced: usize,
    /// How many workers there are.
    pub total: usize,
    /// A worker is ready, an old or a new one.
    pub any_ready: bool,
}

impl Plan {
    /// How many workers are of the newest generation, and how many workers there are.
    pub fn progress(&self) -> (usize, usize) {
        let new = self.places.iter().filter(|place| place.release == self.release).count();
        (new, self.places.len())
    }

    pub(super) fn reached(&self) -> Reached {
        let (replaced, total) = self.progress();
        Reached { replaced, total, any_ready: self.places.iter().any(|place| place.ready) }
    }
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { replaced, total, any_ready } = self;
        let others = if *any_ready { "the others stay" } else { "and none is ready" };
        write!(f, "{replaced} of {total} workers were replaced, {others}")
    }
}
