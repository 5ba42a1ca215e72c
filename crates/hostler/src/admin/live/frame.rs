//! The picture of one moment for the live page: the queue, the lanes, and the requests that have just ended. Reads counters and changes nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use hostler_dispatch::{MemberId, Occupancy, OccupancyLimits, WorkKind};
use hostler_engine::exchange::EndedExchange;
use serde::Serialize;
use tokio::time::Instant;

use crate::admin::status::Sources;

/// The most waiting requests, members of a pool, and slots of a member in a picture.
const MOST: OccupancyLimits = OccupancyLimits { waiting: 60, members: 64, slots: 64 };
/// The most pools in a picture. Pools with work come first.
const MOST_POOLS: usize = 32;
/// A pool has its place in the pictures for this long after its last work.
const LATELY: Duration = Duration::from_secs(10);

/// Moments are microseconds since the start of Hostler.
#[derive(Debug, Serialize)]
pub struct LiveFrame {
    pub now: u64,
    /// One of so many ended requests is in `ended`.
    pub every: u32,
    /// The names of the routes. Other fields have a route's index here, or -1.
    pub routes: Vec<Arc<str>>,
    pub pools: Vec<PoolPicture>,
    /// Pools that are left out.
    pub more_pools: usize,
    pub ended: Vec<EndedPicture>,
}

#[derive(Debug, Serialize)]
pub struct PoolPicture {
    pub name: Arc<str>,
    pub queue: usize,
    pub limit: usize,
    pub paused: bool,
    pub overloaded: bool,
    /// Arrival and route of the requests that have waited longest.
    pub waiting: Vec<(u64, i32)>,
    pub lanes: Vec<LanePicture>,
    /// Members that are left out.
    pub more_lanes: usize,
}

#[derive(Debug, Serialize)]
pub struct LanePicture {
    pub id: MemberId,
    pub name: Arc<str>,
    pub slots: usize,
    pub in_use: usize,
    pub tunnels: usize,
    pub streams: usize,
    pub left: bool,
    pub out: bool,
    /// Begin and route of the requests that it has.
    pub held: Vec<(u64, i32)>,
}

/// A request that has ended.
#[derive(Debug, Clone, Serialize)]
pub struct EndedPicture {
    pub pool: Arc<str>,
    pub lane: Option<Arc<str>>,
    pub route: Option<Arc<str>>,
    pub status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fallback: bool,
    /// What broke the transfer off, as in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aborted: Option<&'static str>,
    /// When it got its slot. None if it got none.
    pub since: Option<u64>,
    /// How long it held its slot. None: it got none, or the worker still works on it.
    pub hold_us: Option<u64>,
    pub wait_us: u64,
    pub total_us: u64,
    pub ended: u64,
}

/// The routes of a picture, by the kind of their requests.
struct RouteNames {
    known: HashMap<WorkKind, Arc<str>>,
    named: HashMap<WorkKind, i32>,
    names: Vec<Arc<str>>,
}

/// Which pools are in the pictures, if there are too many. Most requests are shorter than the time between two pictures: a pool must not come
/// and go with each.
#[derive(Debug, Default)]
pub struct ShownPools {
    /// When each pool that had work lately was last seen with it.
    busy: HashMap<Arc<str>, Instant>,
    /// The pools of the last picture.
    shown: HashSet<Arc<str>>,
}

impl LiveFrame {
    pub fn take(sources: &Sources, every: u32, ended: &[EndedExchange], shown: &mut ShownPools) -> Self {
        let began = sources.started;
        let known = routes_by_kind(sources);
        let mut names = RouteNames { known, named: HashMap::new(), names: Vec::new() };
        let pools = sources.pools.load();
        let mut taken: Vec<_> = pools
            .iter()
            .map(|source| (&source.name, source.pool.occupancy(MOST, |endpoint| endpoint.label.clone())))
            .collect();
        if taken.len() > MOST_POOLS {
            let ended: HashSet<&str> = ended.iter().map(|ended| &*ended.pool).collect();
            let has_work = |name: &Arc<str>, pool: &Occupancy<Arc<str>>| {
                let is_in_use = || pool.members.iter().any(|member| member.in_use > 0);
                pool.queue_length > 0 || ended.contains(&**name) || is_in_use()
            };
            shown.sort(&mut taken, has_work, Instant::now());
        }
        let more_pools = taken.len().saturating_sub(MOST_POOLS);
        let pools: Vec<_> = taken
            .into_iter()
            .take(MOST_POOLS)
            .map(|(name, pool)| PoolPicture::of(name.clone(), pool, began, &mut names))
            .collect();
        Self {
            now: micros(Instant::now(), began),
            every,
            routes: names.names,
            pools,
            more_pools,
            ended: ended.iter().map(|ended| EndedPicture::of(ended, began)).collect(),
        }
    }
}

impl ShownPools {
    /// Puts the pools that the picture shows first. `has_work` tells which have work now.
    fn sort<T>(
        &mut self,
        pools: &mut [(&Arc<str>, T)],
        has_work: impl Fn(&Arc<str>, &T) -> bool,
        now: Instant,
    ) {
        self.busy.retain(|_, at| now.saturating_duration_since(*at) < LATELY);
        let with_work = pools.iter().filter(|(name, pool)| has_work(name, pool));
        self.busy.extend(with_work.map(|&(name, _)| (name.clone(), now)));
        pools.sort_by_key(|&(name, _)| (!self.busy.contains_key(name), !self.shown.contains(name)));
        self.shown = pools.iter().take(MOST_POOLS).map(|&(name, _)| name.clone()).collect();
    }
}

impl PoolPicture {
    fn of(name: Arc<str>, pool: Occupancy<Arc<str>>, began: Instant, names: &mut RouteNames) -> Self {
        let lanes: Vec<_> = pool
            .members
            .into_iter()
            .map(|member| LanePicture {
                id: member.id,
                name: member.endpoint,
                slots: member.slots,
                in_use: member.in_use,
                tunnels: member.tunnels,
                streams: member.streams,
                left: member.left,
                out: member.out,
                held: member
                    .held
                    .iter()
                    .map(|held| (micros(held.since, began), names.index(held.kind)))
                    .collect(),
            })
            .collect();
        Self {
            name,
            queue: pool.queue_length,
            limit: pool.queue_limit,
            paused: pool.paused,
            overloaded: pool.overloaded,
            waiting: pool
                .waiting
                .iter()
                .map(|waiting| (micros(waiting.arrived, began), names.index(waiting.kind)))
                .collect(),
            more_lanes: pool.member_count - lanes.len(),
            lanes,
        }
    }
}

impl EndedPicture {
    pub fn of(ended: &EndedExchange, began: Instant) -> Self {
        Self {
            pool: ended.pool.clone(),
            lane: ended.member.clone(),
            route: ended.route.clone(),
            status: ended.status,
            refusal: ended.refusal,
            fallback: ended.fallback,
            aborted: ended.aborted,
            since: ended.slot_since.map(|since| micros(since, began)),
            hold_us: ended.slot_hold.map(|hold| hold.as_micros() as u64),
            wait_us: ended.queue_wait.as_micros() as u64,
            total_us: ended.total.as_micros() as u64,
            ended: micros(ended.ended, began),
        }
    }
}

impl RouteNames {
    /// -1: the route is not known, such as one that was removed by a reload.
    fn index(&mut self, kind: Option<WorkKind>) -> i32 {
        let Some((kind, name)) = kind.and_then(|kind| Some((kind, self.known.get(&kind)?))) else {
            return -1;
        };
        let names = &mut self.names;
        *self.named.entry(kind).or_insert_with(|| {
            names.push(name.clone());
            names.len() as i32 - 1
        })
    }
}

/// The names of the configured routes by the kind of their requests.
pub(super) fn routes_by_kind(sources: &Sources) -> HashMap<WorkKind, Arc<str>> {
    let routes = sources.routes.load();
    routes.iter().map(|route| (WorkKind::named(&route.pattern), route.pattern.clone())).collect()
}

pub(super) fn micros(later: Instant, earlier: Instant) -> u64 {
    later.saturating_duration_since(earlier).as_micros() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_pools_one_with_work_has_its_place_until_it_has_had_none_for_a_while() {
        let names: Vec<Arc<str>> = (0..MOST_POOLS + 2).map(|number| number.to_string().into()).collect();
        let (mut shown, begun) = (ShownPools::default(), Instant::now());
        // Those of the last five that are in the picture.
        let mut look = |second: u64, with_work: &[usize]| -> Vec<usize> {
            let mut pools: Vec<(&Arc<str>, usize)> = names.iter().zip(0..).collect();
            shown.sort(&mut pools, |_, at| with_work.contains(at), begun + Duration::from_secs(second));
            let mut shown: Vec<usize> = pools.into_iter().map(|(_, at)| at).take(MOST_POOLS).collect();
            shown.sort_unstable();
            shown.split_off(MOST_POOLS - 3)
        };
        assert_eq!(MOST_POOLS, 32);
        assert_eq!(look(0, &[]), [29, 30, 31]);
        assert_eq!(look(1, &[33]), [29, 30, 33]);
        assert_eq!(look(2, &[32]), [29, 32, 33], "33 had work a second ago");
        assert_eq!(look(3, &[]), [29, 32, 33]);
        assert_eq!(look(20, &[]), [29, 32, 33], "no other pool needs the place");
        assert_eq!(look(21, &[31]), [29, 31, 32]);
    }
}
