//! What makes a route a registered one. Knows no requests.

use std::sync::Arc;

use hostler_dispatch::MemberId;

use super::rules::PlatformRules;

/// A member has failed in such a way that one which is never pruned by age (one with TLS) is to be taken out of its route. Called on the data plane: must neither block nor use the pool.
pub type OnFailed = Arc<dyn Fn(MemberId) + Send + Sync>;

/// What makes a route a registered one. Made by the registrar for each; what they have in common is shared.
pub struct Platform {
    /// What holds for all.
    pub rules: Arc<PlatformRules>,
    /// The path of the route's uri, `/` if it has none: that of its sticky cookie.
    pub context_path: Box<str>,
    /// It is bound to a route service, which we have not: every request is refused.
    pub has_route_service: bool,
    /// Who is told of a member that failed.
    pub on_failed: Option<OnFailed>,
}
