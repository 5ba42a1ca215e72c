//! Reasons for which only registered routes refuse a request, with their rows in the table of refusals. Knows no answers.

use hostler_engine::gateway::refusal::{RefusalCause, RefusalFacts, plain};
use hostler_engine::gateway::{Objection, Refusal};

/// Why a request is refused by a registered route, or because no route matches. Reasons that apply to all routes are not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouterObjection {
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
        /// The id is that of a process, not of the application.
        process: bool,
    },
    /// The route is bound to a route service.
    RouteService,
    /// The route is bound to a route service, and the request is for a WebSocket.
    RouteServiceTunnel,
    /// The instance with which the client negotiates its authentication has left.
    NoNegotiator,
}

impl Objection for RouterObjection {
    fn facts(&self) -> RefusalFacts {
        match self {
            Self::EmptyHost => EMPTY_HOST,
            Self::AppInstance => BAD_APP_INSTANCE,
            Self::ProcessInstance => BAD_PROCESS_INSTANCE,
            Self::UnknownInstance { .. } => UNKNOWN_INSTANCE,
            Self::RouteService => ROUTE_SERVICE,
            Self::RouteServiceTunnel => ROUTE_SERVICE_TUNNEL,
            Self::NoNegotiator => NO_NEGOTIATOR,
        }
    }
}

impl From<RouterObjection> for Refusal {
    fn from(objection: RouterObjection) -> Self {
        Self::Objection(Box::new(objection))
    }
}

/// Makes one constant per row, and `OBJECTIONS` in the order of the rows.
macro_rules! rows {
    ($($name:ident: $facts:expr, $cause:ident, $when:literal, $remedy:literal;)*) => {
        $(const $name: RefusalFacts = $facts.told(RefusalCause::$cause, $when, $remedy);)*

        /// The rows of the table of refusals that only registered routes have.
        pub const OBJECTIONS: &[RefusalFacts] = &[$($name),*];
    };
}

// A row: name, status and reason, cause, when it happens, what the operator can do.
rows! {
    EMPTY_HOST: plain(400, "empty_host"), Client,
        "With `[registrar]`: no route matches, and `Host` is empty or is the client's own address.",
        "Nothing, if it is a scan. A balancer's health check belongs to `platform.healthcheck_user_agent` or `server.health_path`.";
    BAD_APP_INSTANCE: plain(400, "bad_app_instance"), Client,
        "With `[registrar]`: `X-CF-App-Instance` is not `GUID:INDEX`.",
        "Nothing.";
    BAD_PROCESS_INSTANCE: plain(400, "bad_process_instance"), Client,
        "With `[registrar]`: `X-CF-Process-Instance` is neither `GUID` nor `GUID:INDEX`.",
        "Nothing.";
    UNKNOWN_INSTANCE: plain(400, "unknown_instance"), Client,
        "With `[registrar]`: no member of the route is the instance that the request names.",
        "Look at `GET /routes` on the admin address: is the instance registered?";
    NO_NEGOTIATOR: plain(502, "no_negotiator"), App,
        "With `sticky_sessions_for_auth_negotiate`: the instance with which the client negotiates its authentication is gone.",
        "Nothing. The client begins the authentication again.";
    ROUTE_SERVICE: plain(502, "route_service"), Operator,
        "The route was registered with a `route_service_url`. Hostler has no route services.",
        "Register the route without the route service.";
    ROUTE_SERVICE_TUNNEL: plain(503, "route_service"), Operator,
        "The route was registered with a `route_service_url`, and the request asks for a WebSocket.",
        "Register the route without the route service.";
}

/// One objection of each kind, for the reference and its tests.
pub(super) fn examples() -> Vec<Refusal> {
    let guid = "3f2b8c1e-8a44-4f0e-9d56-0c1d2e3f4a5b".into();
    let all = [
        RouterObjection::EmptyHost,
        RouterObjection::AppInstance,
        RouterObjection::ProcessInstance,
        RouterObjection::UnknownInstance { guid, index: "7".into(), process: false },
        RouterObjection::RouteService,
        RouterObjection::RouteServiceTunnel,
        RouterObjection::NoNegotiator,
    ];
    all.into_iter().map(Refusal::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_objection_has_an_example_and_says_what_to_do() {
        let shown: Vec<_> = examples().iter().map(Refusal::facts).collect();
        for row in OBJECTIONS {
            assert!(shown.contains(row), "no example of {}", row.reason);
            assert!(row.when.ends_with('.') && row.remedy.ends_with(['.', '?']), "{}", row.reason);
        }
    }
}
