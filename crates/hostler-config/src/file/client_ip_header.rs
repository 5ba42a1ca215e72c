//! The key `client_ip_header`: which header names the client. Knows no other key.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The header in which a trusted proxy names the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ClientIpHeader {
    /// The field to which most proxies append an address.
    #[serde(rename = "X-Forwarded-For")]
    XForwardedFor,
    /// One address; common with nginx.
    #[serde(rename = "X-Real-IP")]
    XRealIp,
    /// The standard field (RFC 7239).
    #[serde(rename = "Forwarded")]
    Forwarded,
    /// One address; Cloudflare.
    #[serde(rename = "CF-Connecting-IP")]
    CfConnectingIp,
    /// One address; Akamai, and Cloudflare Enterprise.
    #[serde(rename = "True-Client-IP")]
    TrueClientIp,
}

impl ClientIpHeader {
    /// The field's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::XForwardedFor => "X-Forwarded-For",
            Self::XRealIp => "X-Real-IP",
            Self::Forwarded => "Forwarded",
            Self::CfConnectingIp => "CF-Connecting-IP",
            Self::TrueClientIp => "True-Client-IP",
        }
    }
}
