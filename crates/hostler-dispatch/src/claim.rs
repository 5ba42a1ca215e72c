//! What a request states when it asks for a slot, and the order in which a pool serves requests. Knows neither queue nor
//! members.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::fair_key::FairKey;
use super::kinds::WorkKind;

/// An arrival number. With it a request keeps its position in the queue when it tries again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket {
    pub(super) number: u64,
    pub(super) arrived: Instant,
}

/// The number of a member. A pool never uses a number twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct MemberId(pub(super) NonZeroU64);

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a request may become that goes on after its slot was returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongLived {
    /// A connection that has changed to another protocol.
    Tunnel,
    /// An answer without end, such as an event stream.
    Stream,
}

/// A request's claim to a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// The ticket of an earlier attempt, if the request tries again.
    pub ticket: Option<Ticket>,
    /// Its priority class.
    pub priority: Priority,
    /// After this time the request needs no slot any more.
    pub deadline: Option<Instant>,
    /// The request may become a tunnel or a stream: room for it is kept at the member. A tunnel must be claimed. A stream
    /// need not be, but then its member may have no room for it.
    pub long_lived: Option<LongLived>,
    /// Which members may serve it.
    pub preference: MemberPreference,
    /// The kind of the request. Requests of one kind hold their slots for about the same time. `None`: the pool's average is the estimate.
    pub kind: Option<WorkKind>,
    /// How long the request is expected to hold its slot. Used if the pool serves short requests first. `None`: as long as its kind.
    pub expected: Option<Duration>,
    /// The key under which the request takes its share, if the pool shares its slots fairly. `None`: all requests without a key share one.
    pub fair: Option<FairKey>,
}

/// Which members may serve a claim. By default, any member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberPreference {
    /// Wait for this member, as long as it is there and gets requests. The claim waits beside the queue, so it holds up no
    /// other claim. [`Acquire::unbind`](super::Acquire::unbind) ends the binding.
    pub bound: Option<MemberId>,
    /// Prefer this member, if it has a free slot.
    pub wanted: Option<MemberId>,
    /// Only this member. Without a free slot there, the claim is refused at once.
    pub only: Option<MemberId>,
    /// Prefer a near member, as long as one of them has a free slot.
    pub near: bool,
    /// Avoid these members, as long as another has a free slot.
    pub tried: Tried,
    /// Do not wait for a member to join if the pool has none.
    pub present: bool,
    /// If all members with a free slot are ejected because they could not be reached, end their ejections and try one of
    /// them at once.
    pub forgiving: bool,
    /// More requests of the same client follow, so clients are spread over the members: the member with the fewest
    /// tunnels, then with the fewest requests, under any [`MemberChoice`](super::MemberChoice).
    pub spread: bool,
    /// While this request holds its slot, its member gets no other request, unless it is the only member, or until
    /// [`Lease::sharing`](super::Lease::sharing) is called.
    pub alone: bool,
    /// The request cannot be retried. It avoids members that have just been ejected and have not answered since.
    pub cautious: bool,
}

impl MemberPreference {
    /// Whether the choice of a member is the same as for a claim without a preference.
    pub(super) fn is_for_any(&self) -> bool {
        Self { present: false, forgiving: false, ..*self } == Self::default()
    }
}

/// The last members that a request was sent to, at most three.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried([Option<MemberId>; 3]);

impl Tried {
    /// Adds a member.
    pub fn add(&mut self, member: MemberId) {
        if !self.contains(member) {
            self.0.rotate_right(1);
            self.0[0] = Some(member);
        }
    }

    /// True as long as the request was sent to no member.
    pub fn is_empty(&self) -> bool {
        self.0[0].is_none()
    }

    /// Whether the request was sent to this member.
    pub fn contains(&self, member: MemberId) -> bool {
        self.0.contains(&Some(member))
    }
}

impl Claim {
    /// The claim of a request that tries again, at its old position in the queue.
    pub fn again(ticket: Ticket) -> Self {
        Self { ticket: Some(ticket), ..Self::default() }
    }
}

/// The priority class of a request. A higher class is served first, but a lower class always gets a share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Served before the others.
    High,
    /// The default.
    #[default]
    Normal,
    /// Served after the others.
    Low,
}

impl Priority {
    pub(super) const COUNT: usize = 3;
    pub(super) const ALL: [Self; Self::COUNT] = [Self::High, Self::Normal, Self::Low];

    pub(super) fn index(self) -> usize {
        self as usize
    }
}

/// When a pool refuses requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Under overload, requests that would wait long are refused on arrival.
    #[default]
    Adaptive,
    /// A request is refused only if the queue is full or its deadline has passed.
    Fifo,
}
