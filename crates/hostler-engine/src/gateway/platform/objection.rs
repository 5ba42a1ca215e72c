//! Reasons for which only registered routes refuse a request. Knows no answers.

/// Why a request is refused by a registered route, or because no route matches. Reasons that apply to all routes are not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Objection {
    /// The host is empty.
    EmptyHost,
    /// `X-CF-App-Instance` has no known form.
    AppInstance,
    /// `X-CF-Process-Instance` has no known form.
    ProcessInstance,
    /// No member of the route is this instance.
    UnknownInstance {
        /// The id from the request.
        guid: Box<str>,
        /// The index from the request, if it had one.
        index: Box<str>,
    },
    /// The route is bound to a route service.
    RouteService,
    /// The route is bound to a route service, and the request is for a WebSocket.
    RouteServiceTunnel,
    /// The instance with which the client negotiates its authentication has left.
    NoNegotiator,
}
