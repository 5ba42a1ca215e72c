//! Facts of an exchange by a registered route: its id, the member's instance, its attempts. Knows no routes.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hostler_engine::exchange::{Exchange, Instance};
use tokio::time::Instant;

/// The facts of one exchange.
#[derive(Debug)]
pub struct Registered {
    /// The value of `X-Vcap-Request-Id`.
    pub id: VcapId,
    /// gorouter's behaviour applies where Hostler's is safer.
    pub compat: bool,
    /// The instance that the client's session cookie names.
    pub sticky: Option<Box<str>>,
    /// The instance that answered, or the last one that was tried.
    pub instance: Option<Arc<Instance>>,
    /// The value of `X-Cf-RouterError`. None if a member has answered.
    pub error: Option<Box<str>>,
    /// The number of edits of the head for the member that are for every member.
    pub common_edits: usize,
    pub attempted: Option<Instant>,
    /// How many attempts have failed.
    pub failed_attempts: u32,
    /// The time that the failed attempts took.
    pub failed_time: Duration,
}

impl Registered {
    pub fn new(compat: bool) -> Box<Self> {
        Box::new(Self {
            id: VcapId::made(),
            compat,
            sticky: None,
            instance: None,
            error: None,
            common_edits: 0,
            attempted: None,
            failed_attempts: 0,
            failed_time: Duration::ZERO,
        })
    }

    /// Counts the current attempt as failed.
    pub fn note_failed(&mut self) {
        self.failed_attempts += 1;
        self.failed_time += self.attempted.take().map(|began| began.elapsed()).unwrap_or_default();
    }
}

/// The facts of an exchange by a registered route.
pub(crate) fn registered(exchange: &Exchange) -> Option<&Registered> {
    let registered: &dyn Any = exchange.registered.as_deref()?;
    registered.downcast_ref()
}

/// The same, to change them.
pub(super) fn registered_mut(exchange: &mut Exchange) -> Option<&mut Registered> {
    let registered: &mut dyn Any = exchange.registered.as_deref_mut()?;
    registered.downcast_mut()
}

/// A request id as Cloud Foundry makes them: a random UUID (RFC 9562, version 4). It is no secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct VcapId([u8; 36]);

impl VcapId {
    fn made() -> Self {
        let mut text = [0; 36];
        uuid::Uuid::new_v4().hyphenated().encode_lower(&mut text);
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for VcapId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_uuid_of_its_own() {
        let (one, other) = (VcapId::made(), VcapId::made());
        assert_ne!(one, other);
        assert_eq!(uuid::Uuid::parse_str(one.as_str()).unwrap().get_version_num(), 4);
    }
}
