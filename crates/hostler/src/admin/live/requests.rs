//! The oldest requests now and the slowest of the last minute, for `hostler top`. Draws nothing.

use std::sync::Arc;

use hostler_engine::exchange::EndedExchange;
use serde::Serialize;

use super::frame::{EndedPicture, LiveFrame};
use crate::admin::status::Sources;

/// So many of the oldest requests are named.
const MOST: usize = 100;

/// Single requests. All times are microseconds.
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
    pub age: u64,
}

impl SingleRequests {
    pub fn take(sources: &Sources, slowest: &[EndedExchange]) -> Self {
        let frame = LiveFrame::take(sources, 1, &[]);
        let mut oldest: Vec<_> = frame
            .pools
            .iter()
            .flat_map(|pool| {
                let waiting = pool.waiting.iter().map(|at| (*at, None));
                let lanes = pool.lanes.iter();
                let held = lanes.flat_map(|lane| lane.held.iter().map(|at| (*at, Some(lane.name.clone()))));
                waiting.chain(held).map(|((since, route), lane)| RequestUnderWay {
                    pool: pool.name.clone(),
                    lane,
                    route: usize::try_from(route).ok().and_then(|route| frame.routes.get(route).cloned()),
                    age: frame.now.saturating_sub(since),
                })
            })
            .collect();
        oldest.sort_by_key(|request| std::cmp::Reverse(request.age));
        oldest.truncate(MOST);
        let slowest = slowest.iter().map(|ended| EndedPicture::of(ended, sources.started)).collect();
        Self { oldest, slowest }
    }
}
