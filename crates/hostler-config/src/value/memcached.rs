//! The address of a memcached server. Parsed here, looked up elsewhere.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::one_string;
use super::{MemberAddress, address::Address};

/// `host:port`, by name, IPv4 or `[IPv6]`, or `unix:/path`.
#[derive(Clone, Debug, PartialEq)]
pub enum MemcachedAddress {
    /// A host and a port, both given.
    Tcp(String, u16),
    /// As written. It may be relative.
    Unix(PathBuf),
}

impl FromStr for MemcachedAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse()? {
            MemberAddress::Tcp(host, port) => Ok(Self::Tcp(host, port)),
            MemberAddress::Tls(..) => Err(format!(
                "{text:?}: Hostler uses memcached without TLS; write \"host:port\", in a private network"
            )),
            MemberAddress::Unix(path) => Ok(Self::Unix(path)),
        }
    }
}

impl fmt::Display for MemcachedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) => Address { host: Some(host.clone()), port: *port }.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

one_string!(
    MemcachedAddress,
    kind: "address or \"unix:PATH\"",
    expects: "\"host:port\" or \"unix:/path\""
);
