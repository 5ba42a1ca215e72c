//! The meaning of `[traces]`: plain data that has been checked.

use std::time::Duration;

/// The `[traces]` section. [`crate::file::Traces`] describes each key.
#[derive(Clone, Debug, PartialEq)]
pub struct Traces {
    /// An `http` address with a host and a path. `None`: no traces.
    pub endpoint: Option<http::Uri>,
    /// One of so many requests. 0: none.
    pub sample: u32,
    /// Slower requests are always exported.
    pub slow: Duration,
    /// The flag of the client's context decides.
    pub parent_based: bool,
}
