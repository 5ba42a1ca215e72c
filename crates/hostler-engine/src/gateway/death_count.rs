//! Deaths of workers in a row, and how much they weigh together. Does not know over which request they died.

use crate::exchange::Death;

/// How many processes are named.
const MAX_PIDS: usize = 8;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DeathCount {
    /// The processes that died, the last few.
    pub pids: Vec<u32>,
    pub(super) total: usize,
    /// Deaths that the worker caused itself.
    own: usize,
    /// Deaths that the worker caused itself while it had no other request. They prove which request did it.
    certain: usize,
}

impl DeathCount {
    /// Adds a death, unless that process has been counted already.
    pub fn add(&mut self, death: &Death) {
        if self.pids.contains(&death.pid) {
            return;
        }
        if self.pids.len() == MAX_PIDS {
            self.pids.remove(0);
        }
        self.pids.push(death.pid);
        self.total += 1;
        self.own += usize::from(death.own);
        self.certain += usize::from(death.own && death.alone);
    }

    /// Whether a request with these deaths is convicted. Either workers have ended by themselves at least `kills` times, and at least
    /// `kills` - 1 of these deaths (and at least one) are certain. Or there are more than `kills` deaths of any kind.
    pub fn is_enough(&self, kills: usize) -> bool {
        let certain = kills.saturating_sub(1).max(1);
        self.own >= kills && self.certain >= certain || self.total > kills
    }

    /// A certain death weighs two, any other weighs one.
    pub fn weight(&self) -> usize {
        self.total + self.certain
    }
}
