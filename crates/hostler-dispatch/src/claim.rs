//! What a request says of itself when it asks for a slot, and how a pool treats those who wait; knows neither queue nor members.

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::queue::Ticket;
use super::roster::MemberId;

/// A request's claim to a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Its arrival, if it tries again.
    pub ticket: Option<Ticket>,
    /// Its class.
    pub priority: Priority,
    /// A slot is of no use to it from then on.
    pub deadline: Option<Instant>,
    /// What begins with the slot may go on without it: a [`TunnelGuard`](super::TunnelGuard) may be wanted.
    pub tunnel: bool,
    /// Which members it is for.
    pub preference: MemberPreference,
}

/// Which members a claim is for. By default, all are alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberPreference {
    /// This one if it has a free slot.
    pub wanted: Option<MemberId>,
    /// This one or none: without a free slot it is refused at once.
    pub only: Option<MemberId>,
    /// One that is near, as long as one of those has a free slot.
    pub near: bool,
    /// Not these, as long as another has a free slot.
    pub tried: Tried,
    /// Where there is no member, none is waited for.
    pub present: bool,
    /// Where a free slot is missing only because members could not be reached, that is forgotten, and one of them is tried at once.
    pub forgiving: bool,
    /// As long as it has the slot, its member gets nothing else, unless that is the only one there is.
    pub alone: bool,
    /// It can be had once only: another member is taken rather than one that has to prove itself again.
    pub cautious: bool,
}

/// Members that a request has been to: the last few.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried([Option<MemberId>; 3]);

impl Tried {
    /// One more.
    pub fn add(&mut self, member: MemberId) {
        if !self.contains(member) {
            self.0.rotate_right(1);
            self.0[0] = Some(member);
        }
    }

    /// True as long as it has been nowhere.
    pub fn is_empty(&self) -> bool {
        self.0[0].is_none()
    }

    /// Whether it was this one.
    pub fn contains(&self, member: MemberId) -> bool {
        self.0.contains(&Some(member))
    }
}

impl Claim {
    /// The claim of a request that tries again, at its old place.
    pub fn again(ticket: Ticket) -> Self {
        Self { ticket: Some(ticket), ..Self::default() }
    }
}

/// A request's class; the higher one is served first, the lowest is never starved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Before the others.
    High,
    /// As most are.
    #[default]
    Normal,
    /// After the others.
    Low,
}

impl Priority {
    pub(super) const COUNT: usize = 3;
    pub(super) const ALL: [Self; Self::COUNT] = [Self::High, Self::Normal, Self::Low];

    pub(super) fn index(self) -> usize {
        self as usize
    }
}

/// In which order a pool serves those who wait, and whom it refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// In order of arrival while the queue drains; under standing overload newest first, and those that cannot make it
    /// are refused early.
    #[default]
    Adaptive,
    /// In order of arrival, always.
    Fifo,
}
