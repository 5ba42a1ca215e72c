//! The meaning of `sticky`: plain data that has been checked. Knows no workers.

use std::time::Duration;

use crate::file::{SameSite, StickyBy};
use crate::value::Secret;

/// How a client stays with one worker or member.
#[derive(Clone, Debug, PartialEq)]
pub struct Sticky {
    /// What Hostler recognises a client by.
    pub by: StickyBy,
    /// How long a request waits for its own worker.
    pub wait: Duration,
    /// How long a worker that is being replaced still gets requests of its own clients.
    pub drain: Duration,
    /// The name of the cookie.
    pub cookie: String,
    /// The `SameSite` attribute of the cookie.
    pub same_site: SameSite,
    /// The key that signs the cookie. `None`: a random one.
    pub secret: Option<Secret>,
}
