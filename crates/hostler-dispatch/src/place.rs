//! The place of a request in the queue. Knows no order of classes and no waiting request.

use super::claim::{Priority, Ticket};

/// The position of one `Acquire`. The serial number separates two positions that show the same ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QueuePosition {
    pub priority: Priority,
    pub ticket: Ticket,
    pub serial: u64,
}

impl QueuePosition {
    /// Whether the request came with a ticket. Such a position does not count against the queue limit.
    pub fn returns(&self) -> bool {
        self.serial != self.ticket.number
    }
}
