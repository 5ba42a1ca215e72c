//! What a kind of registered routes decides about its requests. Knows no kind.
//!
//! Configured routes need none of it: the gateway treats their requests without a call through a trait object.

use std::sync::Arc;

use hostler_wire::Whole;

use super::refusal::Refusal;
use super::retry::RetryPolicy;
use crate::exchange::Exchange;

/// The rules of one registered route.
pub trait RouteKind: RetryPolicy + Send + Sync {
    /// Runs after the route is found, and before the body of the request is read. An error refuses the request. Sets
    /// [`Exchange::registered`].
    fn enter(&self, exchange: &mut Exchange) -> Result<(), Refusal>;

    /// Whether the route has members at this moment. The route table learns of a change only a moment later.
    fn presence(&self) -> RoutePresence;
}

/// Whether a registered route has members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoutePresence {
    Served,
    /// The last member has left. The route counts only if no other route of its host matches.
    Empty,
    /// The route was removed.
    Gone,
}

/// The rules for requests that no route matches, while other programs may register routes.
pub trait UnroutedRules: Send + Sync {
    /// Why a request that matches no route is refused.
    fn refusal(&self, exchange: &mut Exchange) -> Refusal;

    /// Runs for input that is not a valid request, before its refusal.
    fn unread(&self, exchange: &mut Exchange);

    /// The answer to the health check of a balancer.
    fn health(&self, exchange: &mut Exchange) -> Whole;

    /// Whether a balancer's health check may have an empty `Host`. Then any other request with an empty `Host` is refused as one whose
    /// `Host` is missing.
    fn allows_empty_host(&self) -> bool;
}

/// What changes for all requests while other programs may register routes.
pub struct RegistrarRules {
    /// The `User-Agent` of the health checks of balancers. Their host, path and scheme do not matter. Empty: there are none.
    pub health_agent: Box<[u8]>,
    pub unrouted: Arc<dyn UnroutedRules>,
}
