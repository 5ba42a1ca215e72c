//! Which of the members with a free slot gets the next request; knows nothing of those who wait.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::roster::{MemberId, Roster, Seat};

/// How a pool chooses among members with a free slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// The one with the fewest slots in use; among equals the one used last, whose caches and JIT are warm.
    #[default]
    Warm,
    /// The next in turn.
    RoundRobin,
    /// The one with the smallest share of its slots in use; among equals the one used longest ago.
    LeastBusy,
}

/// The text names no [`Choice`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such choice {0:?}: use \"warm\", \"round_robin\" or \"least_busy\"")]
pub struct UnknownChoice(pub String);

impl Choice {
    const ALL: [Self; 3] = [Self::Warm, Self::RoundRobin, Self::LeastBusy];

    /// The word for it in configuration and status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::RoundRobin => "round_robin",
            Self::LeastBusy => "least_busy",
        }
    }

    /// The index of the seat whose turn it is; `last` is the member that was chosen before.
    pub(super) fn choose<E>(self, roster: &Roster<E>, last: Option<MemberId>, now: Instant) -> Option<usize> {
        let seats = roster.seats();
        let free = || seats.iter().enumerate().filter(|(_, seat)| seat.has_free_slot(now));
        let chosen = match self {
            Self::Warm => free().min_by_key(|(_, seat)| (seat.in_use, Reverse(seat.last_used))),
            Self::RoundRobin => {
                free().find(|(_, seat)| Some(seat.member.id) > last).or_else(|| free().next())
            }
            Self::LeastBusy => free().min_by(|(_, a), (_, b)| busier(a, b)),
        };
        chosen.map(|(index, _)| index)
    }
}

/// The seat for a tunnel, under any [`Choice`]: tunnels last, so what counts is who has the fewest, not who is warm.
pub(super) fn for_tunnel<E>(roster: &Roster<E>, most: usize, now: Instant) -> Option<usize> {
    let seats = roster.seats().iter().enumerate();
    let free = seats.filter(|(_, seat)| seat.has_free_slot(now) && seat.has_room_for_tunnel(most));
    let chosen = free.min_by_key(|(_, seat)| (seat.all_tunnels(), seat.in_use, seat.last_used));
    chosen.map(|(index, _)| index)
}

/// Compares `in_use / slots` without dividing; equal shares go to the one used longest ago.
fn busier<E>(a: &Seat<E>, b: &Seat<E>) -> std::cmp::Ordering {
    let (left, right) = (a.in_use as u128 * b.slots as u128, b.in_use as u128 * a.slots as u128);
    left.cmp(&right).then(a.last_used.cmp(&b.last_used))
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Choice {
    type Err = UnknownChoice;

    fn from_str(text: &str) -> Result<Self, UnknownChoice> {
        Self::ALL
            .into_iter()
            .find(|choice| choice.as_str() == text)
            .ok_or_else(|| UnknownChoice(text.to_owned()))
    }
}
