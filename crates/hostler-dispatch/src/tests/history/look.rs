//! What a pool shows when a test looks inside: who waits, who was handed a slot, and the members.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::place::QueuePosition;
use crate::queue::WaitOutcome;
use crate::{AcquireError, FairKey, MemberId, Order, Pool, PoolCounters};

/// Turns of short requests: see `short_first.rs`. Written down again, so that a change there is noticed here.
const PATIENCE: u32 = 12;

/// A request in the queue.
#[derive(Clone, Copy, Debug)]
pub struct Queued {
    pub place: QueuePosition,
    pub bound: Option<MemberId>,
    pub key: FairKey,
    pub turn: Instant,
    pub cost: Duration,
    /// For how long it is expected to hold its slot.
    pub work: Duration,
}

/// A wait that has ended. Its owner has not polled it yet.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    pub place: QueuePosition,
    /// The member whose slot it got, and the member for which it waited.
    pub how: Result<(MemberId, Option<MemberId>), AcquireError>,
    /// Whose share it takes, and for how long it is expected to hold its slot. `None` if it got none.
    pub share: Option<(FairKey, Duration)>,
}

#[derive(Clone, Copy, Debug)]
pub struct MemberLook {
    pub slots: usize,
    pub in_use: usize,
    pub left: bool,
}

#[derive(Clone, Debug)]
pub struct Look {
    pub queued: BTreeMap<u64, Queued>,
    pub ended: BTreeMap<u64, Ended>,
    pub members: BTreeMap<MemberId, MemberLook>,
    pub queue_length: usize,
    pub counters: PoolCounters,
    pub order: Order,
    pub fair: bool,
    /// How much the debts of a fair pool have gone because no request waited, in nanoseconds.
    pub forgiven: u128,
    /// What the requests of a fair pool have cost their keys, in nanoseconds.
    pub settled: u128,
    /// The pool's clock.
    pub at: Instant,
    /// The slots of the pool, as far as they are a number.
    pub parallel: usize,
    /// The same without members that get no requests at the moment.
    pub working: usize,
    pub observed: usize,
}

impl Look {
    pub fn take(pool: &Pool<u8>) -> Self {
        let state = pool.shared.lock();
        let (lines, ended) = state.queue.parts();
        let any = lines.iter().flat_map(|line| line.newcomers.iter().chain(line.returned.iter()));
        let bound = lines.iter().flat_map(|line| line.bound.iter());
        let queued = any.chain(bound).map(|(place, waiter)| {
            let label = waiter.span.label();
            let queued = Queued {
                place,
                bound: waiter.span.preference.bound,
                key: waiter.span.work.key(),
                turn: place.ticket.arrived + label.cost * PATIENCE,
                cost: label.cost,
                work: waiter.span.work.time,
            };
            (place.serial, queued)
        });
        let ended = ended.map(|(place, outcome)| {
            let (how, share) = match outcome {
                WaitOutcome::Handed(grant, span) => {
                    let share = (span.work.key(), span.work.time);
                    (Ok((grant.member.id, span.preference.bound)), Some(share))
                }
                WaitOutcome::Refused(error) => (Err(*error), None),
            };
            (place.serial, Ended { place: *place, how, share })
        });
        let members =
            state.roster.states().iter().map(|one| {
                (one.member.id, MemberLook { slots: one.slots, in_use: one.in_use, left: one.left })
            });
        Self {
            queued: queued.collect(),
            ended: ended.collect(),
            members: members.collect(),
            queue_length: state.queue.len(),
            counters: state.counters,
            order: state.roster.settings().order,
            fair: state.roster.settings().fair,
            forgiven: state.queue.fair.as_ref().map_or(0, |fair| fair.forgiven),
            settled: state.queue.fair.as_ref().map_or(0, |fair| fair.settled),
            at: state.at(Instant::now()).served,
            parallel: state.roster.totals().parallel,
            working: state.roster.working_slots(Instant::now()),
            observed: state.roster.totals().observed,
        }
    }

    /// How a wait has ended, if its owner does not know it yet.
    pub fn end_of(&self, serial: u64) -> Option<Result<MemberId, AcquireError>> {
        self.ended.get(&serial).map(|ended| ended.how.map(|(member, _)| member))
    }

    /// The requests that were handed a slot, with the member for which they waited.
    pub fn handed(&self) -> impl Iterator<Item = (QueuePosition, MemberId, Option<MemberId>)> {
        self.ended.values().filter_map(|ended| {
            let (member, bound) = ended.how.ok()?;
            Some((ended.place, member, bound))
        })
    }
}
