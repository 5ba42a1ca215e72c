//! A pool's figures of one moment, as plain data.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use super::choice::MemberChoice;
use super::claim::{MemberId, Policy, Priority};
use super::counters::PoolCounters;
use super::json::{microseconds, milliseconds};
use super::roster::{Member, MemberState};
use super::state::PoolState;

/// A pool's figures of one moment.
#[derive(Clone, Debug, Serialize)]
pub struct PoolSnapshot<T = ()> {
    /// How members are chosen.
    pub choice: MemberChoice,
    /// In which order those who wait are served, and whom the pool refuses.
    pub policy: Policy,
    /// It gives no slots until it is resumed.
    pub paused: bool,
    /// It gets more than it can do: newest first, and who cannot make it is refused.
    pub overloaded: bool,
    /// How long a slot is held, the mean of late; none before enough have been. In JSON microseconds.
    #[serde(rename = "service_time_us", serialize_with = "microseconds")]
    pub service_time: Option<Duration>,
    /// How many wait.
    pub queue_length: usize,
    /// The same by class.
    pub waiting: WaitingCounts,
    /// How many may wait.
    pub queue_limit: usize,
    /// How long the one that came first has been waiting; in JSON milliseconds.
    #[serde(rename = "oldest_wait_ms", serialize_with = "milliseconds")]
    pub oldest_wait: Option<Duration>,
    /// Slots of all members that have not left.
    pub slots: usize,
    /// Slots in use, also at members that have left and still finish.
    pub in_use: usize,
    /// Open tunnels, also at members that have left.
    pub tunnels: usize,
    /// What has been counted since the pool was made.
    pub counters: PoolCounters,
    /// The members, in order of joining.
    pub members: Vec<MemberSnapshot<T>>,
}

/// How many wait, by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WaitingCounts {
    /// With high priority.
    pub high: usize,
    /// With normal priority.
    pub normal: usize,
    /// With low priority.
    pub low: usize,
}

/// One member of one moment.
#[derive(Clone, Debug, Serialize)]
pub struct MemberSnapshot<T = ()> {
    /// Its figures; in JSON beside the endpoint.
    #[serde(flatten)]
    pub figures: MemberFigures,
    /// What the caller of `snapshot_with` sees in the endpoint.
    pub endpoint: T,
}

/// One member's figures of one moment.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct MemberFigures {
    /// Its number.
    pub id: MemberId,
    /// How many requests it may have at once.
    pub slots: usize,
    /// How many it has.
    pub in_use: usize,
    /// How many it has had.
    pub granted: u64,
    /// Tunnels that it has.
    pub tunnels: usize,
    /// It could not be reached and gets nothing for a while.
    pub unreachable: bool,
    /// It has let requests wait in vain, and has not answered since it was ejected for that.
    pub ejected: bool,
    /// Whoever checks it says that it is not fit, and it gets nothing.
    pub unhealthy: bool,
    /// It has left and only finishes what it has.
    pub left: bool,
}

impl MemberFigures {
    fn take<E>(state: &MemberState<E>, now: Instant) -> Self {
        Self {
            id: state.member.id,
            slots: state.slots,
            in_use: state.in_use,
            granted: state.granted,
            tunnels: state.tunnels,
            unreachable: state.is_ejected(now) && state.ejections == 0,
            ejected: state.ejections > 0,
            unhealthy: state.unhealthy,
            left: state.left,
        }
    }
}

/// The members, before anything has looked at their endpoints.
type Members<E> = Vec<(MemberFigures, Arc<Member<E>>)>;

impl<T> PoolSnapshot<T> {
    /// All but the members: their endpoints are looked at when the pool is unlocked, by [`Self::with_members`].
    pub(super) fn take<E>(state: &PoolState<E>, now: Instant) -> (Self, Members<E>) {
        let PoolState { queue, roster, settings, .. } = state;
        let states = roster.states();
        let members =
            states.iter().map(|state| (MemberFigures::take(state, now), Arc::clone(&state.member))).collect();
        let figures = Self {
            choice: settings.choice,
            policy: settings.policy,
            paused: state.pause.is_on(),
            overloaded: state.has_overload(now),
            service_time: state.service.mean(),
            queue_length: queue.len(),
            waiting: WaitingCounts {
                high: queue.len_of(Priority::High),
                normal: queue.len_of(Priority::Normal),
                low: queue.len_of(Priority::Low),
            },
            queue_limit: settings.queue_limit,
            oldest_wait: queue.oldest().map(|arrived| now.saturating_duration_since(arrived)),
            slots: states.iter().filter(|state| !state.left).map(|state| state.slots).sum(),
            in_use: states.iter().map(|state| state.in_use).sum(),
            tunnels: states.iter().map(|state| state.tunnels).sum(),
            counters: state.counters,
            members: Vec::new(),
        };
        (figures, members)
    }

    /// With what `view` sees in each endpoint.
    pub(super) fn with_members<E>(self, members: Members<E>, view: impl Fn(&E) -> T) -> Self {
        let members = members
            .into_iter()
            .map(|(figures, member)| MemberSnapshot { figures, endpoint: view(&member.endpoint) });
        Self { members: members.collect(), ..self }
    }
}
