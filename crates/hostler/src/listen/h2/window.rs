//! The receive window of an HTTP/2 connection, in which the bodies of its requests arrive, and the memory for it. Knows no requests.

use std::sync::atomic::{AtomicBool, Ordering};

use atomic_waker::AtomicWaker;
use h2::server::Connection;
use hostler_engine::exchange::{MemoryBudget, Reservation};

use super::metered_io::MeteredIo;
use super::send_buffer::SendPiece;

/// The receive window with which each connection begins (RFC 9113 section 6.9.2). It cannot be smaller.
const LEAST_WINDOW: u32 = 65_535;
/// The largest window (the same section).
const LARGEST_WINDOW: u32 = (1 << 31) - 1;

/// With more bytes unread than this, hardly one frame has room in the initial window.
const MOST_UNREAD: u32 = LEAST_WINDOW / 4 * 3;
/// A window with less room than this is full.
const LEAST_ROOM: u32 = LEAST_WINDOW - MOST_UNREAD;

/// What the streams of a connection want of its window, and what they get.
#[derive(Debug, Default)]
pub(super) struct WindowDemand {
    /// Whether a stream has a body that is longer than the initial window, or waits.
    is_asked: AtomicBool,
    /// Whether bodies that are not read fill the window, so that the client cannot send any other.
    is_full: AtomicBool,
}

impl WindowDemand {
    /// Asks for a wide window. There may be no memory for it.
    pub fn ask(&self, connection: &AtomicWaker) {
        self.is_asked.store(true, Ordering::Relaxed);
        connection.wake();
    }

    /// Whether the client waits for room in the window, and not Hostler for the client.
    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }
}

/// The receive window of a connection. It is the protocol's initial window at first. A longer body, or one that waits, gets a wide window.
///
/// Bytes that wait in the window have room besides: a body that is not read, because its request waits for a slot or its member is slow, leaves
/// room for all others. So the window grows with them, and shrinks again when they are read.
///
/// All that needs memory for the bytes that may wait in the window. If more than half of the memory for bodies is used, only a full window
/// grows, and as little as possible: otherwise a body that is read would wait for those that are not. When no stream is in progress, the window
/// is the initial one again.
pub(super) struct ReceiveWindow {
    /// The memory for a window that is wider than the initial one.
    memory: Reservation,
    /// The size, with the bytes that wait in it.
    size: u32,
    /// The size of a wide window in which few bytes wait.
    wide: u32,
    /// There was no memory for this size. It is tried again for the next body that asks for a wide window.
    refused: u64,
}

impl ReceiveWindow {
    pub fn new(memory: Reservation, wide: u32) -> Self {
        Self { memory, size: LEAST_WINDOW, wide, refused: u64::MAX }
    }

    /// Fits the window to what the streams want. `is_idle`: no stream is in progress.
    pub fn fit(
        &mut self,
        connection: &mut Connection<MeteredIo, SendPiece>,
        demand: &WindowDemand,
        budget: &MemoryBudget,
        is_idle: bool,
    ) {
        let (wide, unread) = (u64::from(self.wide), connection.unread_data() as u64);
        // At least half of a wide window is free. The size changes in steps, because a change may need a frame.
        let step = wide / 2;
        let wanted = wide + unread / step * step;
        let is_asked = demand.is_asked.swap(false, Ordering::Relaxed);
        if is_asked {
            self.refused = u64::MAX;
        }
        let is_wide = is_asked || unread > u64::from(MOST_UNREAD) || self.memory.bytes() > 0;
        if is_wide && !is_idle && wanted > u64::from(self.size) {
            if !self.widen(connection, budget, wanted) {
                self.widen(connection, budget, wide);
            }
            if u64::from(self.size) < unread + u64::from(LEAST_ROOM) {
                self.grow(connection, unread + u64::from(LEAST_WINDOW));
            }
        } else if self.memory.bytes() > 0 {
            self.narrow(connection, if is_idle { LEAST_WINDOW.into() } else { wanted }, is_idle);
        }
        let is_full = u64::from(self.size) < unread + u64::from(LEAST_ROOM);
        demand.is_full.store(is_full, Ordering::Relaxed);
    }

    /// False if there is no memory for it.
    fn widen(
        &mut self,
        connection: &mut Connection<MeteredIo, SendPiece>,
        budget: &MemoryBudget,
        wanted: u64,
    ) -> bool {
        if wanted <= u64::from(self.size) {
            return true;
        }
        if wanted >= self.refused || budget.is_tight() {
            return false;
        }
        let has_grown = self.grow(connection, wanted);
        if !has_grown {
            self.refused = wanted;
        }
        has_grown
    }

    /// False if the connection would then use more memory than its share.
    fn grow(&mut self, connection: &mut Connection<MeteredIo, SendPiece>, wanted: u64) -> bool {
        let wanted = u32::try_from(wanted).unwrap_or(LARGEST_WINDOW).min(LARGEST_WINDOW);
        if !self.memory.resize(self.memory.bytes().max(wanted.into())) {
            return false;
        }
        connection.set_target_window_size(wanted);
        self.size = wanted;
        true
    }

    fn narrow(&mut self, connection: &mut Connection<MeteredIo, SendPiece>, wanted: u64, is_idle: bool) {
        if wanted < u64::from(self.size) {
            self.size = u32::try_from(wanted).unwrap_or(LARGEST_WINDOW);
            connection.set_target_window_size(self.size);
        }
        // A window that the client has got cannot be taken back. So the memory for it stays until the client has used it, except for a usual
        // window of a connection without streams.
        let unread = connection.most_unread_data() as u64;
        let bytes = match is_idle {
            true => unread.saturating_sub(self.wide.into()),
            false => unread.max(self.size.into()),
        };
        if bytes < self.memory.bytes() {
            // Shrinking never fails.
            let _ = self.memory.resize(bytes);
        }
    }
}
