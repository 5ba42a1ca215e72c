//! The hold on a member after its slot has been returned: a tunnel. Knows nothing of the bytes in the tunnel.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::claim::LongLived;
use super::member::Member;
use super::shared::PoolInner;

/// Holds a member without a slot. The member counts as busy until this is dropped. Derefs to the member's endpoint.
#[must_use = "dropping a tunnel guard says that the tunnel has ended"]
pub struct TunnelGuard<E> {
    shared: Arc<PoolInner<E>>,
    member: Arc<Member<E>>,
}

impl<E> TunnelGuard<E> {
    pub(super) fn new(shared: Arc<PoolInner<E>>, member: Arc<Member<E>>) -> Self {
        Self { shared, member }
    }

    /// Waits until the tunnel is to end: the member leaves, or all tunnels of the pool are dismissed. Ready at once if
    /// that has already happened.
    pub fn dismissed(&self) -> impl Future<Output = ()> + Send + use<E> {
        self.member.dismissal()
    }
}

impl<E> Deref for TunnelGuard<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.member.endpoint
    }
}

impl<E> Drop for TunnelGuard<E> {
    fn drop(&mut self) {
        self.shared.end_long_lived(self.member.id, LongLived::Tunnel);
    }
}

impl<E> fmt::Debug for TunnelGuard<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TunnelGuard").field("member", &self.member.id).finish_non_exhaustive()
    }
}
