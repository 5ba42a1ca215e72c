//! The keys of `[platform]`: how requests by registered routes are treated. Knows not what they mean together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::Count;

/// A `[platform]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Platform {
    /// Where Hostler is safer than Cloud Foundry's gorouter it differs from it; `"gorouter"` takes that back, for clients
    /// that count on it. `docs/guide/gorouter-differences.md` says in what.
    pub compat: Compat,
    /// To how many members a request is sent at most. One that was never sent goes on by itself until its time is up;
    /// under `compat = "gorouter"` it counts as well.
    #[schemars(with = "Count<1, 100>", extend("x-default" = "3"))]
    pub max_attempts: Option<Count<1, 100>>,
    /// Cookies of an app that begin a session, for which all its requests go to the same member (with the cookie
    /// `__VCAP_ID__`), also with `__Host-` in front; none: no such sessions.
    pub sticky_session_cookie_names: Vec<String>,
    /// `__VCAP_ID__` is always `Secure`; else only where the app's own cookie is.
    pub secure_cookies: bool,
    /// A client that has been asked to negotiate its authentication comes back to the same member.
    pub sticky_sessions_for_auth_negotiate: bool,
    /// What a member reads in `X-Forwarded-Proto`.
    pub forwarded_proto: ForwardedProto,
    /// What becomes of `X-Forwarded-Client-Cert`.
    pub forwarded_client_cert: ForwardedClientCert,
    /// The value of a request's `X-Vcap-Trace` for which the answer says which router and which member it came by.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub trace_key: Option<String>,
    /// The availability zone of this machine.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub zone: Option<String>,
    /// Which members are first asked.
    pub zone_preference: ZonePreference,
    /// A request with this `User-Agent` is a health check, whatever its host and path: 200, and 503 from the beginning of a
    /// drain on (SIGUSR1). Empty: none is.
    pub healthcheck_user_agent: String,
}

impl Default for Platform {
    fn default() -> Self {
        Self {
            compat: Compat::None,
            max_attempts: None,
            sticky_session_cookie_names: vec!["JSESSIONID".into()],
            secure_cookies: false,
            sticky_sessions_for_auth_negotiate: false,
            forwarded_proto: ForwardedProto::Keep,
            forwarded_client_cert: ForwardedClientCert::AlwaysForward,
            trace_key: None,
            zone: None,
            zone_preference: ZonePreference::None,
            healthcheck_user_agent: "HTTP-Monitor/1.1".into(),
        }
    }
}

/// Whose habits count where they differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compat {
    /// Hostler's own.
    #[default]
    None,
    /// Those of Cloud Foundry's gorouter.
    Gorouter,
}

/// What a member reads in `X-Forwarded-Proto`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ForwardedProto {
    /// What came with the request, if its sender is trusted; else how it came.
    #[default]
    Keep,
    /// How the request came, always.
    Sanitize,
    /// `https`, always: for a balancer in front that takes nothing else.
    Https,
}

/// What becomes of `X-Forwarded-Client-Cert`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ForwardedClientCert {
    /// It is passed on, if its sender is trusted.
    #[default]
    AlwaysForward,
    /// It is passed on if the connection that it came by has a client certificate.
    Forward,
    /// It is the certificate of the client's connection; without one there is none.
    SanitizeSet,
}

/// Which members are first asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ZonePreference {
    /// All are alike.
    #[default]
    None,
    /// Those of the same `zone`, as long as one is free; a request that tries again goes to any.
    LocallyOptimistic,
}
