//! How a member is reached, and what is spoken to it. Knows no connections that are there already.

use std::sync::Arc;

use hostler_wire::Address;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

/// The way to a member.
#[derive(Debug, Clone)]
pub struct Dial {
    /// Where it listens.
    pub address: Address,
    /// How it proves who it is; none for plain text.
    pub tls: Option<Box<MemberTls>>,
    /// What is spoken to it.
    pub protocol: MemberProtocol,
}

/// TLS to a member.
#[derive(Debug, Clone)]
pub struct MemberTls {
    /// Whom to trust, and who we are: one for all members that go by the same. Its `alpn_protocols` are not looked at.
    pub config: Arc<ClientConfig>,
    /// Whom its certificate has to name; sent as SNI as well, unless it is an address.
    pub name: ServerName<'static>,
}

/// What is spoken to a member.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MemberProtocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2: agreed upon in the TLS handshake, or known beforehand. Tunnels still begin in HTTP/1.1.
    Http2,
}

impl From<Address> for Dial {
    /// HTTP/1.1 in plain text.
    fn from(address: Address) -> Self {
        Self { address, tls: None, protocol: MemberProtocol::Http1 }
    }
}
