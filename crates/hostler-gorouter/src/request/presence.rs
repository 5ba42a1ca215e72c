//! Whether a registered route has members, for the threads that look it up. Knows no members.

use std::sync::atomic::{AtomicU8, Ordering};

use hostler_engine::gateway::RoutePresence;

const SERVED: u8 = 0;
const EMPTY: u8 = 1;
const GONE: u8 = 2;

/// The presence of one route. The registrar sets it at once; the table of routes follows when many changes have been merged.
#[derive(Debug, Default)]
pub struct SharedPresence(AtomicU8);

impl SharedPresence {
    pub fn set(&self, presence: RoutePresence) {
        let word = match presence {
            RoutePresence::Served => SERVED,
            RoutePresence::Empty => EMPTY,
            RoutePresence::Gone => GONE,
        };
        self.0.store(word, Ordering::Release);
    }

    pub fn get(&self) -> RoutePresence {
        match self.0.load(Ordering::Acquire) {
            SERVED => RoutePresence::Served,
            EMPTY => RoutePresence::Empty,
            _ => RoutePresence::Gone,
        }
    }
}
