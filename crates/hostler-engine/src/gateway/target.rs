//! Routes with their targets, ready to answer. Knows no requests.

use std::sync::Arc;
use std::time::Duration;

use hostler_config::{Fallback, LowIf, Redirect};
use hostler_dispatch::{Pool, Priority};
use hostler_native::Native;
use hostler_wire::{Limits, Whole};

use super::expected::ExpectedCosts;
use super::fair::FairKeys;
use super::hedging::Hedge;
use super::hints::EarlyHints;
use super::kind::{RouteKind, RoutePresence};
use super::poison::Poison;
use super::prepare::Changes;
use super::rate_limit::RateLimiter;
use super::sticky::Stickiness;
use super::when::When;
use crate::cache::Caching;
use crate::exchange::{Counters, RouteAccount};
use crate::files::Files;
use crate::proxy::{CallSettings, Endpoint, Meter};

/// A route with its target and its limits.
pub struct Route {
    /// The pattern as configured, and what the conditions are about. It is the route's name in logs and status.
    pub pattern: Arc<str>,
    /// The conditions that its requests meet besides host and path.
    pub when: Option<When>,
    /// Its own rate limit, then that of its pool.
    pub limits: Box<[Arc<RateLimiter>]>,
    pub target: Target,
    /// The largest request body in bytes.
    pub max_body: u64,
    /// The body is streamed to the worker, and the slot is taken first (`buffer = "none"`).
    pub streams_body: bool,
    /// TRACE is passed on to the member.
    pub traces: bool,
    /// The priority of its requests in the pool's queue.
    pub priority: Priority,
    /// The rules of its kind, if the route is a registered one.
    pub kind: Option<Arc<dyn RouteKind>>,
    /// What stands in for the pool's answer if there is none.
    pub fallback: Option<Fallback>,
    /// A folder of files that is tried before the target.
    pub files_first: Option<Arc<Files>>,
    /// The cache settings. Only for routes to a pool.
    pub caching: Option<Arc<Caching>>,
    /// The links that a browser gets while its request waits. Only for routes to a pool.
    pub early_hints: Option<Arc<EarlyHints>>,
    /// What the route changes in requests and answers.
    pub changes: Changes,
    /// Counts its answers.
    pub counters: Arc<Counters>,
}

impl Route {
    /// A route with normal priority that takes bodies of up to `max_body` bytes. It has no conditions, stores nothing and changes nothing.
    pub fn new(pattern: Arc<str>, target: Target, max_body: u64) -> Self {
        Self {
            pattern,
            when: None,
            limits: Box::default(),
            target,
            max_body,
            streams_body: false,
            traces: false,
            priority: Priority::Normal,
            kind: None,
            fallback: None,
            files_first: None,
            caching: None,
            early_hints: None,
            changes: Changes::default(),
            counters: Arc::default(),
        }
    }

    /// Whether it has members, if it is a registered route. Others are always served.
    pub(super) fn presence(&self) -> RoutePresence {
        self.kind.as_ref().map_or(RoutePresence::Served, |kind| kind.presence())
    }

    /// Whether its requests are Hypernova batches. All of them have one URL, and few clients send them.
    pub(super) fn takes_batches(&self) -> bool {
        matches!(self.fallback, Some(Fallback::Hypernova))
    }

    /// Whether answers are encoded for clients that accept it.
    pub(super) fn has_encoded(&self) -> bool {
        self.changes.compress.is_some()
    }
}

pub enum Target {
    /// A fixed answer.
    Fixed(Whole),
    /// A folder of files.
    Files(Arc<Files>),
    /// A redirect to another URL.
    Redirect(Redirect),
    /// A built-in service (`geo`, `postal`).
    Native(Native),
    /// A pool: a queue with members.
    Pool(PoolTarget),
}

/// A pool with the settings of one route.
#[derive(Clone)]
pub struct PoolTarget {
    pub name: Arc<str>,
    /// The queue and its members.
    pub pool: Pool<Endpoint>,
    /// How long a request may wait for a slot.
    pub queue_timeout: Duration,
    /// How long the client waits for its answer to begin. The time in the queue counts.
    pub request_timeout: Duration,
    /// How long a response that has begun may pause.
    pub response_idle_timeout: Duration,
    /// How long a request may wait until a sleeping pool has a member. Zero: the pool never sleeps.
    pub wake_timeout: Duration,
    /// The settings of its calls.
    pub call: CallSettings,
    /// Where the times are recorded.
    pub meter: Arc<Meter>,
    /// Who pays for the requests: the route. A registered route has the name of its pool.
    pub account: Arc<RouteAccount>,
    /// The suspects of the pool, shared by all its routes.
    pub poison: Arc<Poison>,
    /// How its clients stay with its members. None: they do not.
    pub sticky: Option<Arc<Stickiness>>,
    /// Under which keys requests share its slots. None: they get them in order of arrival.
    pub fair: Option<Arc<FairKeys>>,
    /// What its requests are expected to cost. None: it does not serve short ones first.
    pub costs: Option<Arc<ExpectedCosts>>,
    /// Which of its requests get low priority.
    pub low: Arc<[LowIf]>,
    /// Second tries at another member. None: there are none.
    pub hedge: Option<Hedge>,
}

/// The settings of a pool for one route.
pub struct PoolTargetSettings {
    /// As in [`PoolTarget`].
    pub queue_timeout: Duration,
    /// As in [`PoolTarget`].
    pub request_timeout: Duration,
    /// As in [`PoolTarget`].
    pub response_idle_timeout: Duration,
    /// As in [`CallSettings`].
    pub connect_timeout: Duration,
    /// How long a worker may hold a slot before it counts as hung. None for members that are not workers of ours.
    pub hang_timeout: Option<Duration>,
    /// As in [`CallSettings`].
    pub hangs_up_at_once: bool,
    /// As in [`CallSettings`].
    pub tunnel_idle_timeout: Duration,
    /// As in [`CallSettings`].
    pub stream_idle_timeout: Duration,
    /// As in [`CallSettings`].
    pub limits: Limits,
    /// As in [`CallSettings`].
    pub max_interim_answers: usize,
}

impl PoolTarget {
    /// Records the times and the suspects in `meter` and `poison`. The pool never sleeps.
    pub fn new(
        pool: Pool<Endpoint>,
        meter: Arc<Meter>,
        poison: Arc<Poison>,
        settings: PoolTargetSettings,
    ) -> Self {
        let PoolTargetSettings { queue_timeout, request_timeout, connect_timeout, .. } = settings;
        let hang_timeout = match settings.hang_timeout {
            Some(hang_timeout) => hang_timeout.max(request_timeout),
            // Such a member cannot be killed. This only limits how long an abandoned answer is waited for.
            None => request_timeout * 2,
        };
        let call = CallSettings {
            connect_timeout,
            hang_timeout,
            hangs_up_at_once: settings.hangs_up_at_once,
            tunnel_idle_timeout: settings.tunnel_idle_timeout,
            stream_idle_timeout: settings.stream_idle_timeout,
            limits: settings.limits,
            max_interim_answers: settings.max_interim_answers,
        };
        let (name, wake_timeout, sticky, fair): (Arc<str>, _, _, _) =
            (pool.name().into(), Duration::ZERO, None, None);
        let account = RouteAccount::new(&meter.ledger, &name, &Arc::default());
        Self {
            name,
            pool,
            queue_timeout,
            request_timeout,
            response_idle_timeout: settings.response_idle_timeout,
            wake_timeout,
            call,
            meter,
            account,
            poison,
            sticky,
            fair,
            costs: None,
            low: [].into(),
            hedge: None,
        }
    }
}
