//! Deaths of workers in a row, and how much they say together. Knows not over what they died.

/// Processes that are named.
const MOST_NAMED: usize = 8;

/// Deaths in a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Toll {
    /// The processes that died, the last few.
    pub pids: Vec<u32>,
    pub(super) total: usize,
    /// By their own doing.
    own: usize,
    /// By their own doing, and without another request: there is no doubt whose work it was.
    certain: usize,
}

impl Toll {
    /// One more death; false if that process is known.
    pub fn add(&mut self, pid: u32, own: bool, alone: bool) -> bool {
        if self.pids.contains(&pid) {
            return false;
        }
        if self.pids.len() == MOST_NAMED {
            self.pids.remove(0);
        }
        self.pids.push(pid);
        self.total += 1;
        self.own += usize::from(own);
        self.certain += usize::from(own && alone);
        true
    }

    /// So many by their own doing, of which at most the first may have had other requests; or one more of whatever kind.
    pub fn is_enough(&self, kills: usize) -> bool {
        let certain = kills.saturating_sub(1).max(1);
        self.own >= kills && self.certain >= certain || self.total > kills
    }

    /// A death without doubt weighs two, any other one.
    pub fn weight(&self) -> usize {
        self.total + self.certain
    }
}
