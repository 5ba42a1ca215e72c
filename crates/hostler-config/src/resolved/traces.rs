//! The meaning of `[traces]`: plain data that has been checked.

use std::time::Duration;

use http::{HeaderMap, Uri};

use super::super::client_tls::ClientTls;

/// The `[traces]` section. [`crate::file::Traces`] describes each key.
#[derive(Clone, Debug, PartialEq)]
pub struct Traces {
    /// Where spans go. `None`: no traces.
    pub collector: Option<CollectorAddress>,
    /// One of so many requests. 0: none.
    pub sample: u32,
    /// Slower requests are always exported.
    pub slow: Duration,
    /// The flag of the client's context decides.
    pub parent_based: bool,
}

/// A collector, and how to send to it.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectorAddress {
    /// An `http` or `https` address with a host and a path.
    pub uri: Uri,
    /// Further fields of each request. Their values are marked as sensitive, so that no output shows them.
    pub headers: HeaderMap,
    /// For `https`, with the name of the host.
    pub tls: Option<ClientTls>,
}
