//! Bugs that a test can plant into the proxy, to prove that the simulation finds them.

use std::future::pending;

use hostler_testkit::planted_bug;

use crate::proxy::Call;
use crate::proxy::link::Link;

/// A planted bug. See where [`planted!`] names it, and [`end_wrongly`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A connection is kept although bytes came behind the answer, or the member is about to close it.
    UnfitKept,
    /// A connection is kept although a part of the request was not sent.
    HalfSentKept,
    /// A connection is kept although its answer was not read to the end.
    HalfReadKept,
    /// A request that is not idempotent is sent again.
    PostRepeated,
    /// The slot does not come back when the client leaves.
    LostSlot,
    /// The slot comes back when the client leaves, although the member still works.
    EarlySlot,
    /// A body that breaks off counts as complete.
    CutIsWhole,
    /// An interim answer counts as the final one.
    InterimIsFinal,
    /// The wait for the head of an answer has no deadline.
    NoDeadline,
    /// An answer to HEAD is read as if it had a body.
    HeadHasBody,
    /// The slot comes back when the member is told to stop, although it still works.
    UnawaitedFin,
}

impl Bug {
    pub const ALL: [Self; 11] = [
        Self::UnfitKept,
        Self::HalfSentKept,
        Self::HalfReadKept,
        Self::PostRepeated,
        Self::LostSlot,
        Self::EarlySlot,
        Self::CutIsWhole,
        Self::InterimIsFinal,
        Self::NoDeadline,
        Self::HeadHasBody,
        Self::UnawaitedFin,
    ];
}

/// Whether a call that its client has left ends by [`end_wrongly`].
pub fn ends_wrongly() -> bool {
    matches!(planted_bug(), Some(Bug::LostSlot | Bug::EarlySlot | Bug::HalfReadKept))
}

/// Ends a call that its client has left by a planted bug.
pub fn end_wrongly(call: Call) {
    match planted_bug() {
        Some(Bug::LostSlot) => {
            tokio::spawn(async move {
                let _lost = call;
                pending::<()>().await;
            });
        }
        Some(Bug::HalfReadKept) => {
            let Call { lease, link, thread, .. } = call;
            if let Link::Http1(connection) = link {
                lease.checkin(thread, connection);
            }
        }
        // The slot comes back with the lease.
        _ => drop(call),
    }
}
