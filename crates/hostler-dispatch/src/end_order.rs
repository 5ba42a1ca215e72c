//! Whether requests of one member end before others that it got earlier. Knows no times.

/// The ends of the requests of one member.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EndOrder {
    /// How many requests have ended. It wraps around.
    ended: u32,
    /// The most requests that one has passed since this figure was last taken.
    most_passed: usize,
}

/// What the member had when a request began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    /// How many other requests, up to 65535.
    pub others: u16,
    /// How many requests had ended.
    ended: u32,
}

impl EndOrder {
    /// A request begins at a member with so many others.
    pub fn begin(&self, others: usize) -> Beside {
        Beside { others: u16::try_from(others).unwrap_or(u16::MAX), ended: self.ended }
    }

    /// A request ends. It has passed the others that are still there, if these are a quarter of them or more: fewer may only have been sent in
    /// another order. Without an answer it has passed none, because its client may have left.
    pub fn end(&mut self, beside: Beside, is_answered: bool) {
        let others = usize::from(beside.others);
        // Later requests may be among those that have ended. So it has passed so many at least.
        let passed = others.saturating_sub(self.ended.wrapping_sub(beside.ended) as usize);
        if is_answered && passed * 4 >= others {
            self.most_passed = self.most_passed.max(passed);
        }
        self.ended = self.ended.wrapping_add(1);
    }

    /// The most requests that one has passed since the last call.
    pub fn take_most_passed(&mut self) -> usize {
        std::mem::take(&mut self.most_passed)
    }
}
