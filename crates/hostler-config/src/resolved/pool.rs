//! The meaning of `[pools.*]`: plain data that has been checked. Knows no routes.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use hostler_worker::{Slots, WorkerSettings};

use super::{Ejection, HealthCheck, RateLimit, Sticky};
use crate::client_tls::ClientTls;
use crate::file::{Choice, FairBy, Hedge, LowIf, MemberProtocol, Policy};

/// One queue, and the workers or members that serve it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// Unique; letters, digits, `-` and `_`.
    pub name: String,
    /// Where the members of the pool come from.
    pub source: PoolMembers,
    /// The hosts and paths under which others know the pool.
    pub announce: Vec<String>,
    /// Which free member gets the next request.
    pub choice: Choice,
    /// How a client stays with one worker or member.
    pub sticky: Sticky,
    /// Where requests wait for a slot.
    pub queue: Queue,
    /// How many requests it takes in a time, on all routes.
    pub rate_limit: Option<RateLimit>,
    /// The time until the response begins, unless the route has another one.
    pub request_timeout: Duration,
    /// How long a request may wait until a pool that is asleep has a worker. Zero: the pool never sleeps.
    pub wake_timeout: Duration,
    /// The time to connect to a member.
    pub connect_timeout: Duration,
    /// The number of tunnels of one worker or member.
    pub max_tunnels: usize,
    /// How long a tunnel may be without a byte in either direction.
    pub tunnel_idle_timeout: Duration,
    /// The number of streams of one worker or member.
    pub max_streams: usize,
    /// How long a response that has begun may pause.
    pub response_idle_timeout: Duration,
    /// How long a stream may be without a byte from its member.
    pub stream_idle_timeout: Duration,
    /// What Hostler does with a request that kills one worker after another.
    pub poison: Poison,
    /// When a member that does not answer gets no requests for a while.
    pub ejection: Ejection,
    /// When requests are sent to a second member. `None`: never. Only with [`PoolMembers::Members`].
    pub hedge: Option<Hedge>,
}

impl Pool {
    /// Slots of each worker or member.
    #[inline] // requests call it: Cargo.toml
    pub fn slots(&self) -> Slots {
        match &self.source {
            PoolMembers::Workers(workers) => workers.slots,
            PoolMembers::Members(members) => Slots::Fixed(members.slots),
        }
    }
}

/// When a request counts as one that kills workers, and for how long Hostler refuses it.
#[derive(Clone, Debug, PartialEq)]
pub struct Poison {
    /// Deaths of workers in the middle of one request. 0: no limit.
    pub kills: usize,
    /// The time for which Hostler refuses its method and URL.
    pub keep_off: Duration,
}

/// Where requests wait for a slot.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// The number of requests that may wait. 0: none.
    pub limit: usize,
    /// More requests may wait if the workers serve so many in this time.
    pub burst: Duration,
    /// The time for which a request may wait.
    pub timeout: Duration,
    /// Which requests are refused.
    pub policy: Policy,
    /// Short requests are served first, and no request gets its slot more than this later than in order of arrival. None: in order
    /// of arrival.
    pub short_first: Option<Duration>,
    /// What gives requests the keys under which they share the slots fairly. Empty: they do not.
    pub fair: Vec<FairBy>,
    /// Which requests get low priority.
    pub low: Vec<LowIf>,
}

/// Where the members of the pool come from.
#[derive(Clone, Debug, PartialEq)]
pub enum PoolMembers {
    /// Node processes that Hostler starts and watches. Their environment here has only the variables of the pool; the start of the pool
    /// adds the others.
    Workers(WorkerSettings),
    /// Servers that Hostler does not start.
    Members(Members),
}

/// Servers that Hostler does not start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Members {
    /// At least one. No endpoint is there twice.
    pub endpoints: Vec<Endpoint>,
    /// Slots of each member, at least 1.
    pub slots: usize,
    /// The protocol.
    pub protocol: MemberProtocol,
    /// TLS to the members, if there is an [`Endpoint::Tls`].
    pub tls: Option<ClientTls>,
    /// The health checks, if there are any.
    pub health_check: Option<HealthCheck>,
}

/// Where a member listens. Displays as in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Endpoint {
    /// An address or a name. Hostler looks a name up at each connect, because its address may change.
    Tcp {
        /// IPv6 addresses without brackets.
        host: String,
        /// Never 0.
        port: u16,
    },
    /// The same, over TLS.
    Tls {
        /// IPv6 addresses without brackets.
        host: String,
        /// Never 0.
        port: u16,
    },
    /// An absolute path.
    Unix(PathBuf),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Tls { host, port } if host.contains(':') => write!(f, "https://[{host}]:{port}"),
            Self::Tls { host, port } => write!(f, "https://{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
