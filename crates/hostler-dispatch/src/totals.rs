//! Sums over the members of a pool, kept up to date so that no request looks at each member. Knows no requests.

use super::claim::LongLived;
use super::member::MemberState;
use super::settings::PoolSettings;

/// The sums over the members that have not left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub members: usize,
    /// The requests that the members work on at the same time.
    pub parallel: usize,
    /// The part of `parallel` that is due to unhealthy members, which get no requests.
    unhealthy: usize,
    /// Members that perhaps get no requests at the moment: ejected ones, also some whose ejection is over, and unhealthy ones.
    pub out: usize,
    /// Members whose event loop is observed.
    pub observed: usize,
    /// Members whose event loop does not turn.
    blocked: usize,
    /// Members with room for one more tunnel.
    with_tunnel_room: usize,
    /// Members with room for one more stream.
    with_stream_room: usize,
    /// Members in any doubt. Also those that have left.
    pub doubted: usize,
}

impl Totals {
    /// What one member adds.
    pub fn of<E>(state: &MemberState<E>, settings: &PoolSettings) -> Self {
        let doubted = usize::from(state.is_in_any_doubt());
        if state.left {
            return Self { doubted, ..Self::default() };
        }
        Self {
            members: 1,
            parallel: state.parallel(),
            unhealthy: if state.unhealthy { state.parallel() } else { 0 },
            out: usize::from(state.unhealthy || state.ejected_until.is_some()),
            observed: usize::from(state.event_loop.is_some()),
            blocked: usize::from(state.blocked),
            with_tunnel_room: usize::from(state.has_room_for(LongLived::Tunnel, settings)),
            with_stream_room: usize::from(state.has_room_for(LongLived::Stream, settings)),
            doubted,
        }
    }

    /// The requests that the healthy members work on at the same time; those of all members if none is healthy.
    pub fn healthy_slots(&self) -> usize {
        match self.parallel - self.unhealthy {
            0 => self.parallel,
            slots => slots,
        }
    }

    /// Whether some members are blocked, and others are not.
    pub fn are_some_blocked(&self) -> bool {
        self.blocked > 0 && self.blocked < self.members
    }

    /// How many members have room for one more of this kind.
    pub fn with_room(&self, kind: LongLived) -> usize {
        match kind {
            LongLived::Tunnel => self.with_tunnel_room,
            LongLived::Stream => self.with_stream_room,
        }
    }

    /// A member that added `before` adds `after` from now on.
    pub fn replace(&mut self, before: Self, after: Self) {
        let replace = |sum: &mut usize, before: usize, after: usize| *sum = *sum + after - before;
        replace(&mut self.members, before.members, after.members);
        replace(&mut self.parallel, before.parallel, after.parallel);
        replace(&mut self.unhealthy, before.unhealthy, after.unhealthy);
        replace(&mut self.out, before.out, after.out);
        replace(&mut self.observed, before.observed, after.observed);
        replace(&mut self.blocked, before.blocked, after.blocked);
        replace(&mut self.with_tunnel_room, before.with_tunnel_room, after.with_tunnel_room);
        replace(&mut self.with_stream_room, before.with_stream_room, after.with_stream_room);
        replace(&mut self.doubted, before.doubted, after.doubted);
    }
}
