//! What a route has only if it is registered. Knows no requests.

use std::sync::Arc;

use hostler_dispatch::MemberId;

use super::presence::SharedPresence;
use super::rules::PlatformRules;

/// Called when a member fails in a way that removes it from its route, although it is never removed by age (a member with TLS). Called on
/// the data plane: must neither block nor use the pool.
pub type OnFailed = Arc<dyn Fn(MemberId) + Send + Sync>;

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
    pub on_failed: Option<OnFailed>,
}
