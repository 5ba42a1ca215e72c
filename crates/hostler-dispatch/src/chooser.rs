//! Chooses a member with a free slot for one claim. Knows nothing of the waiting requests.

use tokio::time::Instant;

use super::claim::{LongLived, MemberId, MemberPreference};
use super::free_index::SeatOrder;
use super::member::MemberState;
use super::roster::Roster;

/// Chooses a member for one claim, among those with a free slot and, for a tunnel or a stream, with room for one.
pub(super) struct Chooser<'a, E> {
    pub roster: &'a Roster<E>,
    /// The member that was chosen before.
    pub last: Option<MemberId>,
    /// The claim is for a tunnel or a stream. These last long, so they go to the member with the fewest of both, under any
    /// [`MemberChoice`](super::MemberChoice). Also for a claim that spreads its clients.
    pub kind: Option<LongLived>,
    pub now: Instant,
}

impl<E> Chooser<'_, E> {
    /// The place of the chosen member. The narrowest preference of the claim is tried first, the widest last.
    pub fn place(&self, preference: &MemberPreference) -> Option<usize> {
        let MemberPreference { wanted, only, near, tried, alone, cautious, .. } = preference;
        if let Some(only) = only {
            return self.this(*only);
        }
        if let Some(place) = wanted.and_then(|wanted| self.this(wanted)) {
            return Some(place);
        }
        let all = SeatOrder { spreads: self.kind.is_some() || preference.spread, near: false };
        let is_new = |state: &MemberState<E>| !tried.contains(state.member.id);
        if *alone && let Some(place) = self.first(all, |state| state.in_use == 0) {
            return Some(place);
        }
        let is_near = SeatOrder { near: true, ..all };
        if *cautious {
            let is_fit = |state: &MemberState<E>| !state.is_unproven(self.now) && is_new(state);
            let place = if *near { self.first(is_near, is_fit) } else { None };
            if let Some(place) = place.or_else(|| self.first(all, is_fit)) {
                return Some(place);
            }
        }
        if *near && let Some(place) = self.first(is_near, is_new) {
            return Some(place);
        }
        if !tried.is_empty()
            && let Some(place) = self.first(all, is_new)
        {
            return Some(place);
        }
        self.first(all, |_| true)
    }

    fn this(&self, id: MemberId) -> Option<usize> {
        self.roster.index_of(id).filter(|place| self.is_free(&self.roster.states()[*place]))
    }

    fn first(&self, order: SeatOrder, fits: impl Fn(&MemberState<E>) -> bool) -> Option<usize> {
        self.roster.first(order, self.last, |state| self.is_free(state) && fits(state))
    }

    /// A blocked member has no free slot as long as another is not blocked: a request that waits for that one is served sooner.
    fn is_free(&self, state: &MemberState<E>) -> bool {
        let is_avoided = state.blocked && self.roster.totals().are_some_blocked();
        !is_avoided
            && state.may_have_free_slot(self.now)
            && self.kind.is_none_or(|kind| state.has_room_for(kind, self.roster.settings()))
    }
}
