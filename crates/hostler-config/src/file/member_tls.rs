//! The keys for TLS to members, as written. Knows not which of them fit together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A `[pools.NAME.tls]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct MemberTls {
    /// A PEM file with the certificates of those who may vouch for a member; relative to the file's folder.
    #[schemars(with = "String", extend("x-default" = "the system's"))]
    pub ca: Option<String>,
    /// The name that a member's certificate has to have (a DNS name or an IP address among its subjectAltNames), also sent as SNI.
    /// For members whose certificates do not name the host in `members`.
    #[schemars(with = "String", extend("x-default" = "the member's own host"))]
    pub server_name: Option<String>,
    /// A PEM file with the certificate that we show when a member asks for one, followed by its intermediates. Together with `key`.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub cert: Option<String>,
    /// A PEM file with the private key of `cert`.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub key: Option<String>,
    /// Whether a member has to prove who it is. `false` takes any certificate: the connection is then safe from those who listen,
    /// not from those who answer in the member's place.
    pub verify: bool,
}

impl Default for MemberTls {
    fn default() -> Self {
        Self { ca: None, server_name: None, cert: None, key: None, verify: true }
    }
}
