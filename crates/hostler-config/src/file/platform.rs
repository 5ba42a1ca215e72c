//! The keys of `[platform]`: how Hostler treats requests of registered routes. Does not know what they mean together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::Count;

/// A `[platform]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Platform {
    /// Whether Hostler behaves as Cloud Foundry's gorouter also where that is less safe.
    ///
    /// `docs/guide/gorouter-differences.md` lists what changes. Set `"gorouter"` for clients that depend on
    /// gorouter's behaviour.
    pub compat: Compat,
    /// The number of members to which Hostler sends one request at most.
    ///
    /// An attempt in which Hostler could not send the request does not count: Hostler tries other members until the
    /// time of the request is up. With `compat = "gorouter"` such an attempt counts, too.
    #[schemars(with = "Count<1, 100>", extend("x-default" = "3"))]
    pub max_attempts: Option<Count<1, 100>>,
    /// Cookies of an app that begin a session. All requests of the session then go to the same member. `[]`: no
    /// such sessions.
    ///
    /// Hostler remembers the member in the cookie `__VCAP_ID__`. The names also count with `__Host-` in front.
    pub sticky_session_cookie_names: Vec<String>,
    /// Whether `__VCAP_ID__` is always `Secure`. Otherwise it is `Secure` if the app's own cookie is.
    pub secure_cookies: bool,
    /// Whether a client goes to the same member again after that member has asked it to negotiate its
    /// authentication.
    pub sticky_sessions_for_auth_negotiate: bool,
    /// What members get in `X-Forwarded-Proto`.
    pub forwarded_proto: ForwardedProto,
    /// What Hostler does with `X-Forwarded-Client-Cert`.
    pub forwarded_client_cert: ForwardedClientCert,
    /// The value of `X-Vcap-Trace` for which a response names the router and the member that served the request.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub trace_key: Option<String>,
    /// The availability zone of this machine.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub zone: Option<String>,
    /// Which members Hostler tries first.
    pub zone_preference: ZonePreference,
    /// The `User-Agent` of health checks. Such a request gets 200 for every host and path. `""`: none.
    ///
    /// From the beginning of a drain (SIGUSR1) on, it gets 503.
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

/// Whose behaviour applies where Hostler and gorouter differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compat {
    /// Hostler's.
    #[default]
    None,
    /// Gorouter's.
    Gorouter,
}

/// What members get in `X-Forwarded-Proto`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ForwardedProto {
    /// The value of the request if its sender is trusted; otherwise the scheme of the connection.
    #[default]
    Keep,
    /// Always the scheme of the connection.
    Sanitize,
    /// Always `https`. For a load balancer in front that accepts only HTTPS.
    Https,
}

/// What Hostler does with `X-Forwarded-Client-Cert`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ForwardedClientCert {
    /// It passes the field on if the sender is trusted.
    #[default]
    AlwaysForward,
    /// It passes the field on if the sender is trusted and the connection has a client certificate.
    Forward,
    /// It sets the field to the client certificate of the connection. Without one, members get no field.
    SanitizeSet,
}

/// Which members Hostler tries first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ZonePreference {
    /// No preference.
    #[default]
    None,
    /// Members of the same `zone` while one of them is free. A second attempt goes to any member.
    LocallyOptimistic,
}
