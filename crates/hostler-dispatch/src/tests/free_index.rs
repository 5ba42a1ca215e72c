//! The index of free slots and the sums, compared with a plain look at each member. The random histories call `check` after their steps.

use std::cmp::Reverse;

use tokio::time::Instant;

use super::*;
use crate::chooser::Chooser;
use crate::free_index::SeatOrder;
use crate::member::MemberState;
use crate::roster::Roster;
use crate::totals::Totals;
use crate::{MemberId, MemberPreference, Tried};

/// The member that a pool must choose: the rules in the simplest code.
struct Scan<'a, E> {
    roster: &'a Roster<E>,
    settings: &'a PoolSettings,
    last: Option<MemberId>,
    kind: Option<LongLived>,
    now: Instant,
}

impl<E> Scan<'_, E> {
    fn place(&self, preference: &MemberPreference) -> Option<usize> {
        let MemberPreference { wanted, only, near, tried, alone, cautious, spread, .. } = *preference;
        let this = |id: MemberId| self.among(spread, |state| state.member.id == id);
        if let Some(only) = only {
            return this(only);
        }
        let is_new = |state: &MemberState<E>| !tried.contains(state.member.id);
        wanted
            .and_then(this)
            .or_else(|| if alone { self.among(spread, |state| state.in_use == 0) } else { None })
            .or_else(|| {
                let is_sure = |state: &MemberState<E>| !state.is_unproven(self.now) && is_new(state);
                let near_and_sure = |state: &MemberState<E>| state.near && is_sure(state);
                let first = if cautious && near { self.among(spread, near_and_sure) } else { None };
                first.or_else(|| if cautious { self.among(spread, is_sure) } else { None })
            })
            .or_else(|| if near { self.among(spread, |state| state.near && is_new(state)) } else { None })
            .or_else(|| self.among(spread, is_new))
            .or_else(|| self.among(spread, |_| true))
    }

    fn among(&self, spread: bool, fits: impl Fn(&MemberState<E>) -> bool) -> Option<usize> {
        let is_free = |state: &MemberState<E>| {
            let has_room = self.kind.is_none_or(|kind| state.has_room_for(kind, self.settings));
            state.may_have_free_slot(self.now) && has_room && fits(state)
        };
        let free = || self.roster.states().iter().enumerate().filter(|(_, state)| is_free(state));
        let chosen = match self.settings.choice {
            _ if spread || self.kind.is_some() => {
                free().min_by_key(|(_, state)| (state.all_long_lived(), state.in_use, state.last_used))
            }
            MemberChoice::Warm => free().min_by_key(|(_, state)| (state.in_use, Reverse(state.last_used))),
            MemberChoice::RoundRobin => {
                free().find(|(_, state)| Some(state.member.id) > self.last).or_else(|| free().next())
            }
            MemberChoice::LeastBusy => free().min_by(|(_, a), (_, b)| {
                let (left, right) = (a.in_use * b.slots, b.in_use * a.slots);
                left.cmp(&right).then(a.last_used.cmp(&b.last_used))
            }),
        };
        chosen.map(|(place, _)| place)
    }
}

/// Compares the sums of a pool with a look at each member.
pub(super) fn check_sums<E>(pool: &Pool<E>) {
    let state = pool.shared.lock();
    let mut totals = Totals::default();
    for member_state in state.roster.states() {
        totals.replace(Totals::default(), Totals::of(member_state, state.roster.settings()));
    }
    assert_eq!(*state.roster.totals(), totals);
}

/// Compares the index of a pool with a look at each member.
pub(super) fn check<E>(pool: &Pool<E>) {
    let mut state = pool.shared.lock();
    let (settings, now) = (*state.roster.settings(), Instant::now());
    let roster = &mut state.roster;
    roster.advance(now);
    let ids: Vec<_> = roster.states().iter().map(|state| Some(state.member.id)).chain([None]).collect();
    for preference in preferences(&ids) {
        for kind in [None, Some(LongLived::Tunnel), Some(LongLived::Stream)] {
            let spreads = kind.is_some() || preference.spread;
            roster.prepare(SeatOrder { spreads, near: false });
            roster.prepare(SeatOrder { spreads, near: preference.near });
            for last in &ids {
                let (roster, settings, last) = (&*roster, &settings, *last);
                let chosen = Chooser { roster, last, kind, now }.place(&preference);
                let expected = Scan { roster, settings, last, kind, now }.place(&preference);
                assert_eq!(chosen, expected, "{preference:?} {kind:?} after {last:?}");
            }
        }
    }
}

fn preferences(ids: &[Option<MemberId>]) -> Vec<MemberPreference> {
    let any = MemberPreference::default();
    let mut tried = Tried::default();
    ids.iter().rev().flatten().take(2).for_each(|id| tried.add(*id));
    let first = ids[0];
    let base = [
        any,
        MemberPreference { near: true, ..any },
        MemberPreference { tried, ..any },
        MemberPreference { near: true, cautious: true, ..any },
        MemberPreference { near: true, tried, cautious: true, ..any },
        MemberPreference { alone: true, ..any },
        MemberPreference { cautious: true, ..any },
        MemberPreference { wanted: first, ..any },
        MemberPreference { only: first, ..any },
    ];
    base.into_iter().flat_map(|one| [one, MemberPreference { spread: true, ..one }]).collect()
}

#[test]
fn a_pool_of_thousands_takes_turns_and_finds_the_last_free_slot() {
    let pool =
        Pool::new("test", PoolSettings { choice: MemberChoice::RoundRobin, ..PoolSettings::default() });
    let _members: Vec<_> = (0..3000).map(|_| pool.join("a", 1)).collect();
    let leases: Vec<_> = (0..2999).map(|_| lease(&pool)).collect();
    let ids: Vec<_> = leases.iter().map(Lease::member).collect();
    assert!(ids.is_sorted(), "in turn");
    let last = lease(&pool);
    assert!(last.member() > ids[2998]);
    waiting(&pool).assert_waits();
}

#[test]
fn each_endpoint_is_visited_once_however_many_there_are() {
    let pool = pool(9);
    let _members: Vec<_> = (0..200).map(|_| pool.join("a", 1)).collect();
    let visits = AtomicUsize::new(0);
    pool.each_endpoint(|_| _ = visits.fetch_add(1, Ordering::SeqCst));
    assert_eq!(visits.load(Ordering::SeqCst), 200);
}
