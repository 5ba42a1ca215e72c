//! How slots come back in a history: what that must cost, and what the payer of the request must be told.

use std::time::Duration;

use tokio::time::Instant;

use super::actors::Running;
use super::bill::{Bill, BillEntry};
use super::steps::{Ending, Pick};
use super::world::{World, take};
use crate::place::QueuePosition;
use crate::{AcquireError, Claim, LeaseEnding, LongLived};

/// What the key of a request pays besides if the member hangs up on it: see `shared.rs`. Written down again, so that a change there is
/// noticed here.
const DEATH: Duration = Duration::from_secs(1);
/// The grain of a charge.
const MICROSECOND: Duration = Duration::from_micros(1);

impl World<'_> {
    /// A lease ends.
    pub fn end(&mut self, pick: Pick, how: Ending) -> Option<(Claim, QueuePosition)> {
        let Running { place, claim, lease, bill, charged } = take(&mut self.running, pick)?;
        let (serial, now) = (place.serial, Instant::now());
        let held = now - lease.since();
        let charged = charged.unwrap_or_default();
        let early = charged.saturating_sub(held);
        let cost = match how {
            Ending::Unreachable => Duration::ZERO,
            Ending::HungUp => held + DEATH,
            Ending::Abandoned => held + early,
            Ending::Finished | Ending::Dropped | Ending::Unanswered | Ending::Unprocessed => held,
        };
        // A stream has given its slot back, and its payer knows that.
        let mut told = bill.entries();
        let has_slot = !lease.is_stream();
        if has_slot {
            self.ended.push((serial, cost));
            self.counted.member_failures += u64::from(matches!(how, Ending::Unreachable));
            told = vec![BillEntry::Held(serial, held)];
            match how {
                Ending::HungUp => told.push(BillEntry::Besides(DEATH)),
                Ending::Abandoned => told.push(BillEntry::Early(held, early)),
                _ => {}
            }
        }
        let before = self.estimate(&claim);
        match how {
            Ending::Finished => drop(lease.finish(now)),
            Ending::Dropped => drop(lease),
            Ending::Abandoned => lease.end(LeaseEnding::Abandoned(now)),
            Ending::Unreachable => lease.end(LeaseEnding::Unreachable),
            Ending::HungUp => lease.end(LeaseEnding::HungUp),
            Ending::Unanswered => lease.end(LeaseEnding::Unanswered),
            Ending::Unprocessed => lease.end(LeaseEnding::Unprocessed),
        }
        self.check_bill(serial, &bill, &told);
        if has_slot && matches!(how, Ending::Abandoned) && !early.is_zero() {
            self.early += 1;
            let (least, after) = (before.min(charged), self.estimate(&claim));
            if after + MICROSECOND < least {
                let what =
                    format!("request {serial} ended early, so such requests cost {after:?}, not {least:?}");
                self.error.get_or_insert(what);
            }
        }
        Some((claim, place))
    }

    /// The payer of a request was told all that it must know, each thing once.
    fn check_bill(&mut self, serial: u64, bill: &Bill, told: &[BillEntry]) {
        let entries = bill.entries();
        if entries != told {
            let what = format!("the payer of request {serial} is told {entries:?}, and not {told:?}");
            self.error.get_or_insert(what);
        }
    }

    /// A request becomes a tunnel.
    pub fn tunnel(&mut self, pick: Pick) {
        let may = |running: &Running| {
            running.claim.long_lived == Some(LongLived::Tunnel) && !running.lease.is_stream()
        };
        let all: Vec<_> = (0..self.running.len()).filter(|at| may(&self.running[*at])).collect();
        let Some(at) = all.get(pick % all.len().max(1)) else { return };
        let Running { place, lease, bill, .. } = self.running.remove(*at);
        let (serial, held) = (place.serial, lease.since().elapsed());
        self.ended.push((serial, held));
        self.counted.tunnels += 1;
        self.tunnels.push(lease.tunnel_guard());
        self.check_bill(serial, &bill, &[BillEntry::Held(serial, held)]);
    }

    /// The response to a request becomes a stream, if there is room.
    pub fn stream(&mut self, pick: Pick) {
        let count = self.running.len().max(1);
        let Some(running) = self.running.get_mut(pick % count).filter(|one| !one.lease.is_stream()) else {
            return;
        };
        let (serial, bill) = (running.place.serial, running.bill.clone());
        let held = running.lease.since().elapsed();
        if running.lease.begin_stream() {
            self.counted.streams += 1;
            self.ended.push((serial, held));
            self.check_bill(serial, &bill, &[BillEntry::Held(serial, held)]);
        } else {
            self.count(AcquireError::TooManyStreams);
            self.check_bill(serial, &bill, &[]);
        }
    }
}
