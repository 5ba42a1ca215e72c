//! Tunnels and streams: how they begin and end, and what happens at their limits. Knows nothing of their bytes.

use tokio::time::Instant;

use super::claim::{LongLived, MemberId};
use super::member::Grant;
use super::shared::PoolInner;
use super::state::PoolState;

impl<E> PoolState<E> {
    /// Counts a tunnel or a stream, then returns the slot. In this order, so that the member is never without both.
    fn begin_long_lived(&mut self, grant: &Grant<E>, kind: LongLived, now: Instant) {
        match kind {
            LongLived::Tunnel => self.counters.tunnels += 1,
            LongLived::Stream => self.counters.streams += 1,
        }
        self.roster.begin_long_lived(grant.member.id, kind);
        self.release(grant, now);
    }

    /// Whether the answer to this grant may become a stream. The claim may have reserved the room for it.
    fn has_room_for_stream(&self, grant: &Grant<E>) -> bool {
        grant.long_lived == Some(LongLived::Stream)
            || self.roster.state(grant.member.id).is_none_or(|member_state| {
                member_state.has_room_for(LongLived::Stream, self.roster.settings())
            })
    }
}

impl<E> PoolInner<E> {
    /// Returns the slot and counts a tunnel at its member.
    pub fn begin_tunnel(&self, grant: &Grant<E>) {
        self.change(|state, now| state.begin_long_lived(grant, LongLived::Tunnel, now));
    }

    /// Returns the slot and counts a stream at its member. False, and nothing changes, if the member has too many.
    pub fn begin_stream(&self, grant: &Grant<E>) -> bool {
        self.change(|state, now| {
            let has_room = state.has_room_for_stream(grant);
            if has_room {
                state.begin_long_lived(grant, LongLived::Stream, now);
            } else {
                state.counters.refuse(LongLived::Stream);
            }
            has_room
        })
    }

    /// A tunnel or a stream has ended.
    pub fn end_long_lived(&self, id: MemberId, kind: LongLived) {
        self.change(|state, _| state.roster.end_long_lived(id, kind));
    }

    /// The member broke a stream off, and may be about to die. Returns the time until which it gets no requests. None if it got none before: that
    /// does not last longer, because it may have thousands of streams and break them off one after another, and requests would wait for the last.
    pub fn end_broken_stream(&self, id: MemberId) -> Option<Instant> {
        self.change(|state, now| {
            let was_out = state.roster.state(id).is_none_or(|one| one.is_ejected(now));
            let until = (!was_out).then(|| state.roster.suspend(id, now));
            state.roster.end_long_lived(id, LongLived::Stream);
            (until, state.take_back(id, now))
        })
        .0
    }
}
