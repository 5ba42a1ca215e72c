//! Routes with their targets, ready to answer. Knows no requests.

use std::sync::Arc;
use std::time::Duration;

use hostler_config::{Fallback, Redirect};
use hostler_dispatch::{Pool, Priority};
use hostler_native::Native;
use hostler_wire::Limits;

use super::changes::Changes;
use super::platform::registered::Platform;
use super::poison::Poison;
use crate::cache::Caching;
use crate::exchange::{Counters, Whole};
use crate::files::Files;
use crate::proxy::{CallSettings, Endpoint, Meter};

/// A route: what leads where, with its limits.
pub struct Route {
    /// The pattern as written: its name in logs and status.
    pub pattern: Arc<str>,
    /// Where it leads.
    pub target: Target,
    /// Bytes of request body.
    pub max_body: u64,
    /// The body goes to the worker as it comes, and a slot is taken before (`buffer = "none"`).
    pub streams_body: bool,
    /// TRACE goes to the member.
    pub traces: bool,
    /// Its requests' class in the pool's queue.
    pub priority: Priority,
    /// What makes it a registered one.
    pub platform: Option<Arc<Platform>>,
    /// What stands in for the pool's answer where there is none.
    pub fallback: Option<Fallback>,
    /// Files that come before its target.
    pub files_first: Option<Arc<Files>>,
    /// How it answers from memory; only before a pool.
    pub caching: Option<Arc<Caching>>,
    /// What it changes on the way through.
    pub changes: Changes,
    /// What has been answered.
    pub counters: Arc<Counters>,
}

impl Route {
    /// Its answers are encoded where their clients take that.
    pub(super) fn has_encoded(&self) -> bool {
        self.changes.compress.is_some()
    }
}

/// What a route leads to.
pub enum Target {
    /// An answer that needs no worker.
    Fixed(Whole),
    /// A folder whose files are answers.
    Files(Arc<Files>),
    /// Another URL.
    Redirect(Redirect),
    /// Services that Hostler answers itself.
    Native(Native),
    /// A queue with members.
    Pool(PoolTarget),
}

/// A pool as one route uses it.
#[derive(Clone)]
pub struct PoolTarget {
    /// The pool's name.
    pub name: Arc<str>,
    /// The queue and its members.
    pub pool: Pool<Endpoint>,
    /// How long a request may wait for a slot.
    pub queue_timeout: Duration,
    /// How long the client waits for its answer to begin, the queue included.
    pub request_timeout: Duration,
    /// What calls need.
    pub call: CallSettings,
    /// Where the times go.
    pub meter: Arc<Meter>,
    /// Requests that its workers have died over; the pool's, whichever route they came by.
    pub poison: Arc<Poison>,
}

/// What is set for a pool as one route uses it.
pub struct PoolTargetSettings {
    /// As in [`PoolTarget`].
    pub queue_timeout: Duration,
    /// As in [`PoolTarget`].
    pub request_timeout: Duration,
    /// As in [`CallSettings`].
    pub connect_timeout: Duration,
    /// How long a worker may hold a slot before it counts as hung; none for members that somebody else runs.
    pub hang_timeout: Option<Duration>,
    /// As in [`CallSettings`].
    pub tunnel_idle_timeout: Duration,
    /// As in [`CallSettings`].
    pub limits: Limits,
    /// As in [`CallSettings`].
    pub max_interim_answers: usize,
}

impl PoolTarget {
    /// The use of this pool, which records its times and the deaths of its workers there.
    pub fn new(
        pool: Pool<Endpoint>,
        meter: Arc<Meter>,
        poison: Arc<Poison>,
        settings: PoolTargetSettings,
    ) -> Self {
        let PoolTargetSettings { queue_timeout, request_timeout, connect_timeout, .. } = settings;
        let hang_timeout = match settings.hang_timeout {
            Some(hang_timeout) => hang_timeout.max(request_timeout),
            // Nobody can be killed there; this is only how long an abandoned answer is waited for.
            None => request_timeout * 2,
        };
        let call = CallSettings {
            connect_timeout,
            hang_timeout,
            tunnel_idle_timeout: settings.tunnel_idle_timeout,
            limits: settings.limits,
            max_interim_answers: settings.max_interim_answers,
        };
        Self { name: pool.name().into(), pool, queue_timeout, request_timeout, call, meter, poison }
    }
}
