//! The name of this Hostler in `Via`, which detects loops (RFC 9110 section 7.6.3). Knows no members.

use std::sync::LazyLock;

use hostler_wire::{Fields, Name, Version};
use memchr::memmem;
use uuid::Uuid;

use super::Protocol;

/// Unique for each process: a Hostler behind another one is no loop.
static PSEUDONYM: LazyLock<String> =
    LazyLock::new(|| format!("hostler-{:016x}", Uuid::new_v4().as_u64_pair().0));
static HTTP1_0: LazyLock<String> = LazyLock::new(|| format!("1.0 {}", *PSEUDONYM));
static HTTP1_1: LazyLock<String> = LazyLock::new(|| format!("1.1 {}", *PSEUDONYM));
static HTTP2: LazyLock<String> = LazyLock::new(|| format!("2.0 {}", *PSEUDONYM));

/// The value of `Via` for a request that came in this protocol. `version`: that of its head.
pub fn value(protocol: Protocol, version: Version) -> &'static [u8] {
    match (protocol, version) {
        (Protocol::Http1, Version::Http10) => HTTP1_0.as_bytes(),
        (Protocol::Http1, Version::Http11) => HTTP1_1.as_bytes(),
        (Protocol::Http2, _) => HTTP2.as_bytes(),
    }
}

/// Whether the request has passed this process before.
pub fn has_been_here(fields: &Fields) -> bool {
    fields.all(Name::Via).any(|value| memmem::find(value, PSEUDONYM.as_bytes()).is_some())
}
