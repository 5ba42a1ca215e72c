//! The keys of TLS to members, as written. Does not know which of them fit together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A `[pools.NAME.tls]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct MemberTls {
    /// A PEM file with the authorities that must have signed the member's certificate. A relative path starts at
    /// the folder of the configuration file.
    #[schemars(with = "String", extend("x-default" = "the authorities of the system"))]
    pub ca: Option<String>,
    /// The name that a member's certificate must have: a DNS name or an IP address in its subjectAltName. Hostler
    /// also sends it as SNI.
    ///
    /// Set it if the certificate does not have the host in `members`.
    #[schemars(with = "String", extend("x-default" = "the member's own host"))]
    pub server_name: Option<String>,
    /// A PEM file with the certificate that Hostler shows if a member asks for one, followed by its intermediate
    /// certificates. Needs `key`.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub cert: Option<String>,
    /// A PEM file with the private key of `cert`.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub key: Option<String>,
    /// Whether Hostler checks the certificate of a member.
    ///
    /// With `false` it accepts any certificate. The connection is then encrypted, but another server can answer in
    /// the member's place. Use it for tests only.
    pub verify: bool,
}

impl Default for MemberTls {
    fn default() -> Self {
        Self { ca: None, server_name: None, cert: None, key: None, verify: true }
    }
}
