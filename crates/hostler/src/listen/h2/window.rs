//! The receive window of an HTTP/2 connection, in which the bodies of its requests arrive, and the memory for it. Knows no routes.

use std::sync::atomic::Ordering;

use hostler_wire::BodyLength;

use super::{Http2Shared, Session};

/// The receive window with which each connection begins (RFC 9113 section 6.9.2). It cannot be smaller.
pub(super) const LEAST_WINDOW: u32 = 65_535;
/// The largest window (the same section).
const LARGEST_WINDOW: u32 = (1 << 31) - 1;

/// A request body that arrives while its request waits for a slot. It has room in the window besides that of all others: otherwise such bodies
/// could fill the window, and the body of a request that has a slot could not arrive.
pub(super) struct WaitingBody {
    /// How many bytes may arrive before they are read. 0 after the wait.
    most: u64,
    /// The room that it has.
    room: u64,
}

impl WaitingBody {
    pub fn new(announced: &BodyLength, stream_window: u32) -> Self {
        let window = u64::from(stream_window);
        let most = match announced {
            BodyLength::Known(bytes) => window.min(*bytes),
            BodyLength::Chunked | BodyLength::UntilClose => window,
        };
        Self { most, room: 0 }
    }

    /// The body is not read yet. The first call counts.
    pub fn wait(&mut self, common: &Http2Shared) {
        let bytes = std::mem::take(&mut self.most);
        if bytes > 0 {
            self.room = bytes;
            common.waiting.fetch_add(bytes, Ordering::Relaxed);
            common.wants_window.store(true, Ordering::Relaxed);
            common.waker.wake();
        }
    }

    /// The body is read from now on, or not needed.
    pub fn end(&mut self, common: &Http2Shared) {
        self.most = 0;
        let room = std::mem::take(&mut self.room);
        if room > 0 {
            common.waiting.fetch_sub(room, Ordering::Relaxed);
            common.waker.wake();
        }
    }
}

impl Session {
    /// Sets the receive window. It is the protocol's initial window at first. A longer body, or one that waits, gets a large window if there is
    /// memory for the bytes that may wait in it: windows use at most half of the memory for bodies. When no stream is in progress, the window
    /// shrinks again.
    pub(super) fn fit_window(&mut self) {
        let wide = u64::from(self.common.settings.http2.connection_window);
        let all = wide + self.common.waiting.load(Ordering::Relaxed);
        if self.common.wants_window.swap(false, Ordering::Relaxed) {
            if !self.widen(all) {
                self.widen(wide);
            }
        } else if self.window.bytes() > 0 {
            self.narrow(wide, all);
        }
    }

    /// False if there is no memory for it.
    fn widen(&mut self, wanted: u64) -> bool {
        let wanted = u32::try_from(wanted).unwrap_or(LARGEST_WINDOW).min(LARGEST_WINDOW);
        if wanted <= self.window_target {
            return true;
        }
        let budget = self.common.shard.gateway.request_memory.view();
        let bytes = self.window.bytes().max(wanted.into());
        if budget.used > budget.limit / 2 || !self.window.resize(bytes) {
            return false;
        }
        self.connection.set_target_window_size(wanted);
        self.window_target = wanted;
        true
    }

    fn narrow(&mut self, wide: u64, all: u64) {
        let is_idle = self.common.running.load(Ordering::Acquire) == 0;
        let wanted = if is_idle { u64::from(LEAST_WINDOW) } else { all };
        if wanted < u64::from(self.window_target) {
            let target = u32::try_from(wanted).unwrap_or(LARGEST_WINDOW);
            self.connection.set_target_window_size(target);
            self.window_target = target;
        }
        // A window that the client has got cannot be taken back. So the memory for it stays until the client has used it, except for a usual
        // window of a connection without streams.
        let unread = self.connection.most_unread_data() as u64;
        let bytes = if is_idle { unread.saturating_sub(wide) } else { unread.max(self.window_target.into()) };
        if bytes < self.window.bytes() {
            // Shrinking never fails.
            let _ = self.window.resize(bytes);
        }
    }
}
