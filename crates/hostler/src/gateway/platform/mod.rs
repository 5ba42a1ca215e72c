//! What registered routes do with requests, in the way of Cloud Foundry's gorouter (contracts/cf-router.md, sections 2.4 to 2.10).
//! Knows no registry.

mod rules;

use std::sync::Arc;

use hostler_pool::dispatch::MemberId;

pub use rules::Rules;

/// Called off the beaten track: a member has failed in a way after which one that is never pruned by age (TLS) is to be taken out
/// of its route (contract 2.5). Must neither block nor ask the pool for anything in the same call.
pub type OnFailed = Arc<dyn Fn(MemberId) + Send + Sync>;

/// What makes a route a registered one. Made by the registrar for each; what they have in common is shared.
pub struct Platform {
    /// What holds for all.
    pub rules: Arc<Rules>,
    /// The path of the route's uri, `/` if it has none: that of its sticky cookie.
    pub context_path: Box<str>,
    /// It is bound to a route service, which we have not: every request is refused.
    pub has_route_service: bool,
    /// Who is told of a member that failed.
    pub on_failed: Option<OnFailed>,
}
