//! The oldest requests now, and for `hostler top` the slowest of the last minute, too. Draws nothing.

use std::sync::Arc;

use hostler_dispatch::OccupancyLimits;
use hostler_engine::exchange::EndedExchange;
use serde::Serialize;
use tokio::time::Instant;

use super::frame::{EndedPicture, micros, routes_by_kind};
use crate::admin::status::Sources;

/// So many of the oldest requests are named.
const MOST: usize = 100;

/// Single requests.
#[derive(Debug, Serialize)]
pub struct SingleRequests {
    /// Requests that wait or are at a member, the oldest first.
    pub oldest: Vec<RequestUnderWay>,
    /// Requests that ended in the last minute, the slowest first. Hostler looks at them only while a client asks.
    pub slowest: Vec<EndedPicture>,
}

#[derive(Debug, Serialize)]
pub struct RequestUnderWay {
    pub pool: Arc<str>,
    /// The worker or member that has it. None: it waits in the queue.
    pub lane: Option<Arc<str>>,
    /// None: the route was removed by a reload.
    pub route: Option<Arc<str>>,
    /// How long it has waited in the queue, or has been at the member.
    pub age_us: u64,
}

impl SingleRequests {
    pub fn take(sources: &Sources, slowest: &[EndedExchange]) -> Self {
        let slowest = slowest.iter().map(|ended| EndedPicture::of(ended, sources.started)).collect();
        Self { oldest: oldest(sources, MOST), slowest }
    }
}

/// So many of the requests that wait or are at a member, the oldest first. Unlike a picture it looks at all pools and all their members: the
/// request that hangs may be at the last one.
pub fn oldest(sources: &Sources, most: usize) -> Vec<RequestUnderWay> {
    let (routes, now) = (routes_by_kind(sources), Instant::now());
    let mut oldest: Vec<RequestUnderWay> = Vec::new();
    let limits = OccupancyLimits { waiting: most, members: usize::MAX, slots: most };
    for source in sources.pools.load().iter() {
        let pool = source.pool.occupancy(limits, |endpoint| endpoint.label.clone());
        let waiting = pool.waiting.iter().map(|waiting| (waiting.arrived, waiting.kind, None));
        let held = pool.members.iter().flat_map(|member| {
            member.held.iter().map(move |held| (held.since, held.kind, Some(member.endpoint.clone())))
        });
        oldest.extend(waiting.chain(held).map(|(since, kind, lane)| RequestUnderWay {
            pool: source.name.clone(),
            lane,
            route: kind.and_then(|kind| routes.get(&kind).cloned()),
            age_us: micros(now, since),
        }));
        oldest.sort_by_key(|request| std::cmp::Reverse(request.age_us));
        oldest.truncate(most);
    }
    oldest
}
