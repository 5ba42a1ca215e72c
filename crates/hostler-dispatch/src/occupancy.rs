//! Who waits and who holds which slot at one moment, for a picture of the pool. Changes nothing.

use std::sync::Arc;

use slab::Slab;
use tokio::time::Instant;

use super::claim::MemberId;
use super::kinds::WorkKind;
use super::member::{HeldSlot, Member};
use super::state::PoolState;

/// The waiting requests and the slots in use of a pool at one moment. Long lists are cut; the counts are whole.
#[derive(Clone, Debug)]
pub struct Occupancy<T> {
    /// The moment.
    pub now: Instant,
    /// The pool gives no slots until it is resumed.
    pub paused: bool,
    /// More work comes than the pool can do.
    pub overloaded: bool,
    /// How many requests wait.
    pub queue_length: usize,
    /// How many requests may wait.
    pub queue_limit: usize,
    /// The requests that have waited longest, the oldest first.
    pub waiting: Vec<WaitingRequest>,
    /// How many members the pool has, with those that have left and still finish requests.
    pub member_count: usize,
    /// The members, in the order in which they joined.
    pub members: Vec<MemberOccupancy<T>>,
}

/// A request that waits for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingRequest {
    /// When it arrived.
    pub arrived: Instant,
    /// Its kind, as its claim says.
    pub kind: Option<WorkKind>,
}

/// One member and the slots of it that are in use.
#[derive(Clone, Debug)]
pub struct MemberOccupancy<T> {
    /// The number of the member.
    pub id: MemberId,
    /// How many requests it may have at once.
    pub slots: usize,
    /// How many it has.
    pub in_use: usize,
    /// Its open tunnels.
    pub tunnels: usize,
    /// Its open streams.
    pub streams: usize,
    /// It has left the pool and only finishes its requests.
    pub left: bool,
    /// It gets no requests: it could not be reached, it was ejected, or its health check fails.
    pub out: bool,
    /// Its slots in use, in no particular order.
    pub held: Vec<HeldSlot>,
    /// The caller's view of the endpoint.
    pub endpoint: T,
}

/// How long the lists of a picture may be.
#[derive(Clone, Copy, Debug)]
pub struct OccupancyLimits {
    /// The most waiting requests.
    pub waiting: usize,
    /// The most members.
    pub members: usize,
    /// The most slots of each member.
    pub slots: usize,
}

impl<E> Occupancy<Arc<Member<E>>> {
    /// The picture of this moment.
    pub(super) fn take(state: &PoolState<E>, now: Instant, limits: OccupancyLimits) -> Self {
        let members = state.roster.states().iter().take(limits.members).map(|member_state| MemberOccupancy {
            id: member_state.member.id,
            slots: member_state.slots,
            in_use: member_state.in_use,
            tunnels: member_state.tunnels.open,
            streams: member_state.streams.open,
            left: member_state.left,
            out: member_state.is_out(now),
            held: oldest(&member_state.held, limits.slots),
            endpoint: Arc::clone(&member_state.member),
        });
        let waiting = state.queue.first_arrivals(limits.waiting).into_iter();
        Self {
            now,
            paused: state.pause.is_on(),
            overloaded: state.has_overload(now),
            queue_length: state.queue.len(),
            queue_limit: state.queue_limit(),
            waiting: waiting.map(|(arrived, kind)| WaitingRequest { arrived, kind }).collect(),
            member_count: state.roster.states().len(),
            members: members.collect(),
        }
    }

    /// The same with the result of `view` for each endpoint. Call it after the pool is unlocked.
    pub(super) fn viewed<T>(self, view: impl Fn(&E) -> T) -> Occupancy<T> {
        let Self { now, paused, overloaded, queue_length, queue_limit, waiting, member_count, members } =
            self;
        let members = members.into_iter().map(|member| {
            let MemberOccupancy { id, slots, in_use, tunnels, streams, left, out, held, endpoint } = member;
            let endpoint = view(&endpoint.endpoint);
            MemberOccupancy { id, slots, in_use, tunnels, streams, left, out, held, endpoint }
        });
        let members = members.collect();
        Occupancy { now, paused, overloaded, queue_length, queue_limit, waiting, member_count, members }
    }
}

/// The slots that have been in use longest. Slots are used again in any order, so the slab says nothing about their age.
fn oldest(held: &Slab<HeldSlot>, most: usize) -> Vec<HeldSlot> {
    let mut all: Vec<_> = held.iter().map(|(_, held)| *held).collect();
    if all.len() > most {
        all.select_nth_unstable_by_key(most, |held| held.since);
        all.truncate(most);
    }
    all
}
