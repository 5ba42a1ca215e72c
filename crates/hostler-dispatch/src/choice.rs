//! Chooses which member with a free slot gets the next request. Knows nothing of the waiting requests.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::claim::{MemberId, MemberPreference};
use super::member::MemberState;
use super::roster::Roster;

/// How a pool chooses among members with a free slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberChoice {
    /// The member with the fewest slots in use. Among equals, the most recently used one, because its caches and JIT are
    /// warm.
    #[default]
    Warm,
    /// The next member in turn.
    RoundRobin,
    /// The member with the smallest share of its slots in use. Among equals, the one that was used longest ago.
    LeastBusy,
}

/// The text is not the name of a [`MemberChoice`]. Holds the text.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such choice {0:?}: use \"warm\", \"round_robin\" or \"least_busy\"")]
pub struct UnknownChoice(pub String);

impl MemberChoice {
    const ALL: [Self; 3] = [Self::Warm, Self::RoundRobin, Self::LeastBusy];

    /// The name used in the configuration and the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::RoundRobin => "round_robin",
            Self::LeastBusy => "least_busy",
        }
    }

    /// The index of the next member among those that are `free`. `last` is the member that was chosen before.
    fn choose<E>(
        self,
        roster: &Roster<E>,
        last: Option<MemberId>,
        is_free: impl Fn(&MemberState<E>) -> bool,
    ) -> Option<usize> {
        let free = || roster.states().iter().enumerate().filter(|(_, state)| is_free(state));
        let chosen = match self {
            Self::Warm => free().min_by_key(|(_, state)| (state.in_use, Reverse(state.last_used))),
            Self::RoundRobin => {
                free().find(|(_, state)| Some(state.member.id) > last).or_else(|| free().next())
            }
            Self::LeastBusy => free().min_by(|(_, a), (_, b)| busier(a, b)),
        };
        chosen.map(|(index, _)| index)
    }
}

/// Chooses a member for one claim, among those with a free slot and, for a tunnel or a stream, with room for one.
pub(super) struct Chooser<'a, E, F> {
    pub choice: MemberChoice,
    pub roster: &'a Roster<E>,
    /// The member that was chosen before.
    pub last: Option<MemberId>,
    /// The claim is for a tunnel or a stream. These last long, so they go to the member with the fewest of both, under any
    /// [`MemberChoice`]. Also for a claim that spreads its clients.
    pub is_long_lived: bool,
    pub now: Instant,
    pub is_free: F,
}

impl<E, F: Fn(&MemberState<E>) -> bool> Chooser<'_, E, F> {
    /// The index of the chosen member. The narrowest preference of the claim is tried first, the widest last.
    pub fn state(&self, preference: &MemberPreference) -> Option<usize> {
        let MemberPreference { wanted, only, near, tried, alone, cautious, .. } = preference;
        if let Some(only) = only {
            return self.this(*only);
        }
        if let Some(index) = wanted.and_then(|wanted| self.this(wanted)) {
            return Some(index);
        }
        let is_new = |state: &MemberState<E>| !tried.contains(state.member.id);
        if *alone && let Some(index) = self.among(|state| state.in_use == 0) {
            return Some(index);
        }
        if *cautious && let Some(index) = self.among(|state| !state.is_wary(self.now) && is_new(state)) {
            return Some(index);
        }
        if *near && let Some(index) = self.among(|state| state.near && is_new(state)) {
            return Some(index);
        }
        if !tried.is_empty()
            && let Some(index) = self.among(is_new)
        {
            return Some(index);
        }
        self.among(|_| true)
    }

    fn this(&self, id: MemberId) -> Option<usize> {
        self.roster.index_of(id).filter(|index| (self.is_free)(&self.roster.states()[*index]))
    }

    fn among(&self, fits: impl Fn(&MemberState<E>) -> bool) -> Option<usize> {
        let is_free = |state: &MemberState<E>| (self.is_free)(state) && fits(state);
        if !self.is_long_lived {
            return self.choice.choose(self.roster, self.last, is_free);
        }
        let free = self.roster.states().iter().enumerate().filter(|(_, state)| is_free(state));
        let chosen = free.min_by_key(|(_, state)| (state.all_long_lived(), state.in_use, state.last_used));
        chosen.map(|(index, _)| index)
    }
}

/// Compares `in_use / slots` without a division. Among equals, the one that was used longest ago comes first.
fn busier<E>(a: &MemberState<E>, b: &MemberState<E>) -> std::cmp::Ordering {
    let (left, right) = (a.in_use as u128 * b.slots as u128, b.in_use as u128 * a.slots as u128);
    left.cmp(&right).then(a.last_used.cmp(&b.last_used))
}

impl fmt::Display for MemberChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for MemberChoice {
    type Err = UnknownChoice;

    fn from_str(text: &str) -> Result<Self, UnknownChoice> {
        Self::ALL
            .into_iter()
            .find(|choice| choice.as_str() == text)
            .ok_or_else(|| UnknownChoice(text.to_owned()))
    }
}
