//! The picture of one moment for the live page: the queue, the lanes, and the requests that have just ended. Reads counters and changes nothing.

use std::collections::HashMap;
use std::sync::Arc;

use hostler_dispatch::{MemberId, Occupancy, OccupancyLimits, WorkKind};
use hostler_engine::exchange::EndedExchange;
use serde::Serialize;
use tokio::time::Instant;

use crate::admin::status::Sources;

/// The most waiting requests, members of a pool, and slots of a member in a picture.
const MOST: OccupancyLimits = OccupancyLimits { waiting: 60, members: 64, slots: 64 };
/// The most pools in a picture. Pools with work come first.
const MOST_POOLS: usize = 32;

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
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub aborted: bool,
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

impl LiveFrame {
    pub fn take(sources: &Sources, every: u32, ended: &[EndedExchange]) -> Self {
        let began = sources.started;
        let known = routes_by_kind(sources);
        let mut names = RouteNames { known, named: HashMap::new(), names: Vec::new() };
        let pools = sources.pools.load();
        let mut taken: Vec<_> = pools
            .iter()
            .map(|source| (&source.name, source.pool.occupancy(MOST, |endpoint| endpoint.label.clone())))
            .collect();
        if taken.len() > MOST_POOLS {
            taken.sort_by_key(|(_, pool)| {
                pool.queue_length == 0 && pool.members.iter().all(|member| member.in_use == 0)
            });
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
    routes.iter().map(|route| (kind_of(&route.pattern), route.pattern.clone())).collect()
}

/// All requests of a route share its pattern, and the gateway makes the kind of its address.
fn kind_of(pattern: &Arc<str>) -> WorkKind {
    WorkKind::of(pattern.as_ptr().addr() as u64)
}

pub(super) fn micros(later: Instant, earlier: Instant) -> u64 {
    later.saturating_duration_since(earlier).as_micros() as u64
}
