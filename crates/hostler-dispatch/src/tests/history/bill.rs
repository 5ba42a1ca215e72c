//! What the payer of a request is told, so that a history can compare it with what must be told. Knows no pool.

use std::sync::Mutex;
use std::time::Duration;

use crate::{Payer, SlotCost};

/// One thing that a payer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BillEntry {
    /// The request with this number held its slot for so long.
    Held(u64, Duration),
    /// The member ended the request without a response.
    Besides(Duration),
    /// The request ended early: for how long it held its slot, and what its key is charged besides.
    Early(Duration, Duration),
}

/// All that the payer of one request was told.
#[derive(Default)]
pub struct Bill(Mutex<Vec<BillEntry>>);

impl Bill {
    pub fn entries(&self) -> Vec<BillEntry> {
        self.0.lock().unwrap().clone()
    }

    fn add(&self, entry: BillEntry) {
        self.0.lock().unwrap().push(entry);
    }
}

impl Payer for Bill {
    fn pay(&self, mark: u64, cost: SlotCost) {
        self.add(BillEntry::Held(mark, cost.hold));
    }

    fn pay_besides(&self, charged: Duration) {
        self.add(BillEntry::Besides(charged));
    }

    fn pay_early(&self, held: Duration, besides: Duration) {
        self.add(BillEntry::Early(held, besides));
    }
}
