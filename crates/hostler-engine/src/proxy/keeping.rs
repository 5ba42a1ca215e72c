//! Whether a member keeps its connections open between two requests, as they have shown. Knows no requests.
//!
//! Some servers close each connection right after its response and do not say so, such as uWSGI with `http-socket`. A request that comes
//! in that moment is written into a connection that closes, and is lost.

use std::sync::atomic::{AtomicBool, Ordering};

/// What the connections of one member have shown. Read by each request, and written only when it changes.
#[derive(Default)]
pub(super) struct ConnectionKeeping(AtomicBool);

impl ConnectionKeeping {
    /// Whether the member seems to close each connection after its first response.
    pub fn closes_each(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// A connection has ended soon after its first response, and no second one has come over it.
    pub fn note_closed(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// A second response has come over a connection, or one has stayed open for long after its response.
    pub fn note_kept(&self) {
        if self.closes_each() {
            self.0.store(false, Ordering::Relaxed);
        }
    }
}
