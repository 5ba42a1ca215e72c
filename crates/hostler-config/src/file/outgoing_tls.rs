//! The keys of TLS to a service that Hostler uses, such as NATS or a collector of traces, as written. Knows no protocol of a service.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::MemberTls;

/// A section with TLS to a service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct OutgoingTls {
    /// A PEM file with the authorities that must have signed the certificate of the other side. A relative path starts at the folder of
    /// the configuration file.
    #[schemars(with = "String", extend("x-default" = "the authorities of the system"))]
    pub ca: Option<String>,
    /// A PEM file with the certificate that Hostler shows if the other side asks for one, followed by its intermediate certificates.
    /// Needs `key`.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub cert: Option<String>,
    /// A PEM file with the private key of `cert`.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub key: Option<String>,
}

impl OutgoingTls {
    /// The same as TLS to a member, whose certificate is checked.
    pub fn as_for_members(&self) -> MemberTls {
        let Self { ca, cert, key } = self.clone();
        MemberTls { ca, cert, key, ..MemberTls::default() }
    }
}
