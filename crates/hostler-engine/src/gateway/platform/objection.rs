//! Why a request by a registered route is refused where another route would not refuse it. Knows no answers.

/// Why a request by a registered route, or by none, is refused, besides what every route can refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Objection {
    /// No host to go by.
    EmptyHost,
    /// `X-CF-App-Instance` is in no known form.
    AppInstance,
    /// `X-CF-Process-Instance` is in no known form.
    ProcessInstance,
    /// There is no such instance.
    UnknownInstance {
        /// What was asked for.
        guid: Box<str>,
        /// Its number, if it was said.
        index: Box<str>,
    },
    /// The route is bound to a route service.
    RouteService,
    /// And the request is for a WebSocket.
    RouteServiceTunnel,
    /// The one with whom the client negotiates its authentication is gone.
    NoNegotiator,
}
