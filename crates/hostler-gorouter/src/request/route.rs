//! What a route has only if it is registered. Knows no requests.

use std::sync::Arc;

use hostler_dispatch::MemberId;

use super::presence::SharedPresence;
use super::rules::PlatformRules;

/// Why a member may leave its route, if it uses TLS and so never becomes stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberFault {
    /// It is not the one that was registered, or it is not there.
    Unfit,
    /// Whether it is there is open, for example because no name server has answered.
    Unfound,
}

/// Called when no connection to a member could be made. Called on the data plane: must neither block nor use the pool.
pub type OnFailed = Arc<dyn Fn(MemberId, MemberFault) + Send + Sync>;

/// What a route has only if it is registered. The registrar makes one for each route; `rules` is shared.
pub struct RegisteredRoute {
    /// The rules of all registered routes.
    pub rules: Arc<PlatformRules>,
    /// The path of the route's URI, `/` if it has none. It is the path of the sticky cookie.
    pub context_path: Box<str>,
    /// The route is bound to a route service. Hostler has no route services, so every request is refused.
    pub has_route_service: bool,
    /// Whether it has members.
    pub presence: Arc<SharedPresence>,
    /// Called for a member that failed.
    pub on_failed: OnFailed,
}
