//! The figures of a pool at one moment, as plain data. Knows no requests.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use super::choice::MemberChoice;
use super::claim::{MemberId, Policy, Priority};
use super::counters::PoolCounters;
use super::json::{microseconds, milliseconds};
use super::member::{Member, MemberState};
use super::state::PoolState;

/// How long a member counts as unreachable after the last connection to it failed, if no other was made. With few requests the next one comes
/// long after the back-off. Without any, the member may be up again.
const UNREACHABLE: Duration = Duration::from_secs(60);

/// The figures of a pool at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct PoolSnapshot<T = ()> {
    /// How the pool chooses among members.
    pub choice: MemberChoice,
    /// The order in which waiting requests are served, and when they are refused.
    pub policy: Policy,
    /// The pool gives no slots until it is resumed.
    pub paused: bool,
    /// The pool has no member until a request comes, or the first request waits for a member.
    pub asleep: bool,
    /// More work comes than the pool can do. Requests that would wait long are refused on arrival.
    pub overloaded: bool,
    /// The mean time that a slot is held, over the last holdings. `None` until enough were measured. In JSON: microseconds.
    #[serde(rename = "service_time_us", serialize_with = "microseconds")]
    pub service_time: Option<Duration>,
    /// The number of waiting requests.
    pub queue_length: usize,
    /// The same number, by class.
    pub waiting: WaitingCounts,
    /// How many requests may wait at present.
    pub queue_limit: usize,
    /// How long the oldest request has waited. In JSON: milliseconds.
    #[serde(rename = "oldest_wait_ms", serialize_with = "milliseconds")]
    pub oldest_wait: Option<Duration>,
    /// The same of those that one more member could serve: the request of a sticky client waits for its own member.
    #[serde(skip)]
    pub oldest_wait_for_any: Option<Duration>,
    /// Slots of all members. Of members that have left: those in use.
    pub slots: usize,
    /// Slots in use, with those of members that have left and still finish requests.
    pub in_use: usize,
    /// Open tunnels, with those of members that have left.
    pub tunnels: usize,
    /// Open streams, with those of members that have left.
    pub streams: usize,
    /// The counters since the pool was made.
    pub counters: PoolCounters,
    /// The members, in the order in which they joined.
    pub members: Vec<MemberSnapshot<T>>,
}

/// The number of waiting requests, by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WaitingCounts {
    /// With high priority.
    pub high: usize,
    /// With normal priority.
    pub normal: usize,
    /// With low priority.
    pub low: usize,
}

/// One member at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct MemberSnapshot<T = ()> {
    /// The figures. In JSON they are beside the endpoint's fields.
    #[serde(flatten)]
    pub figures: MemberFigures,
    /// The caller's view of the endpoint, from `snapshot_with`.
    pub endpoint: T,
}

/// The figures of one member at one moment.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct MemberFigures {
    /// The number of the member.
    pub id: MemberId,
    /// How long ago it joined the pool. In JSON: milliseconds.
    #[serde(rename = "joined_ms", serialize_with = "milliseconds")]
    pub joined: Duration,
    /// How many requests the member may have at once.
    pub slots: usize,
    /// How many requests it has.
    pub in_use: usize,
    /// How many slots were taken since it joined.
    pub granted: u64,
    /// Its open tunnels.
    pub tunnels: usize,
    /// Its open streams.
    pub streams: usize,
    /// The last connection to it failed less than a minute ago. After its back-off the next request tries it.
    pub unreachable: bool,
    /// It is ejected because requests timed out on it, or has one request again that shows whether it responds. It gets no other.
    pub ejected: bool,
    /// Its health check fails, and it gets no requests.
    pub unhealthy: bool,
    /// It has left the pool and only finishes its requests.
    pub left: bool,
}

impl MemberFigures {
    fn take<E>(state: &MemberState<E>, now: Instant) -> Self {
        let is_recent = |failed: Instant| now.saturating_duration_since(failed) < UNREACHABLE;
        Self {
            id: state.member.id,
            joined: now.saturating_duration_since(state.joined),
            slots: state.slots,
            in_use: state.in_use,
            granted: state.granted,
            tunnels: state.tunnels.open,
            streams: state.streams.open,
            unreachable: state.out_of_reach.is_some_and(is_recent),
            ejected: state.is_kept_out(now),
            unhealthy: state.unhealthy,
            left: state.left,
        }
    }
}

/// The members, before their endpoints are viewed.
type Members<E> = Vec<(MemberFigures, Arc<Member<E>>)>;

impl<T> PoolSnapshot<T> {
    /// Whether the pool has work: requests that wait or are served, tunnels, or streams.
    pub fn is_busy(&self) -> bool {
        self.in_use > 0 || self.queue_length > 0 || self.tunnels > 0 || self.streams > 0
    }

    /// All figures without the members. [`Self::with_members`] adds them after the pool is unlocked.
    pub(super) fn take<E>(state: &PoolState<E>, now: Instant) -> (Self, Members<E>) {
        let PoolState { queue, roster, .. } = state;
        let (settings, states) = (roster.settings(), roster.states());
        let members =
            states.iter().map(|state| (MemberFigures::take(state, now), Arc::clone(&state.member))).collect();
        let since = |arrived: Instant| now.saturating_duration_since(arrived);
        let figures = Self {
            choice: settings.choice,
            policy: settings.policy,
            paused: state.pause.is_on(),
            asleep: state.pause.is_asleep(),
            overloaded: state.has_overload(now),
            service_time: state.admission.mean_time(),
            queue_length: queue.len(),
            waiting: WaitingCounts {
                high: queue.len_of(Priority::High) + queue.bound_of(Priority::High),
                normal: queue.len_of(Priority::Normal) + queue.bound_of(Priority::Normal),
                low: queue.len_of(Priority::Low) + queue.bound_of(Priority::Low),
            },
            queue_limit: state.queue_limit(),
            oldest_wait: queue.oldest().map(since),
            oldest_wait_for_any: queue.oldest_for_any().map(since),
            slots: states.iter().map(|state| state.shown_slots()).sum(),
            in_use: states.iter().map(|state| state.in_use).sum(),
            tunnels: states.iter().map(|state| state.tunnels.open).sum(),
            streams: states.iter().map(|state| state.streams.open).sum(),
            counters: state.counters,
            members: Vec::new(),
        };
        (figures, members)
    }

    /// Adds the members, with the result of `view` for each endpoint.
    pub(super) fn with_members<E>(self, members: Members<E>, view: impl Fn(&E) -> T) -> Self {
        let members = members
            .into_iter()
            .map(|(figures, member)| MemberSnapshot { figures, endpoint: view(&member.endpoint) });
        Self { members: members.collect(), ..self }
    }
}
