//! The receive window of an HTTP/2 connection, in which the bodies of its requests arrive, and the memory for it. Knows no requests.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use atomic_waker::AtomicWaker;
use h2::server::Connection;
use hostler_engine::exchange::{MemoryBudget, Reservation};
use hostler_wire::BodyLength;

use super::metered_io::MeteredIo;
use super::send_buffer::SendPiece;

/// The receive window with which each connection begins (RFC 9113 section 6.9.2). It cannot be smaller.
const LEAST_WINDOW: u32 = 65_535;
/// The largest window (the same section).
const LARGEST_WINDOW: u32 = (1 << 31) - 1;

/// What the streams of a connection want of its window.
#[derive(Debug, Default)]
pub(super) struct WindowDemand {
    /// Whether a body is longer than the initial window, or waits.
    is_wide: AtomicBool,
    /// How much room the bodies of waiting requests need.
    waiting: AtomicU64,
}

impl WindowDemand {
    /// Asks for a wide window. There may be no memory for it.
    pub fn ask(&self, connection: &AtomicWaker) {
        self.is_wide.store(true, Ordering::Relaxed);
        connection.wake();
    }
}

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
    pub fn wait(&mut self, demand: &WindowDemand, connection: &AtomicWaker) {
        let bytes = std::mem::take(&mut self.most);
        if bytes > 0 {
            self.room = bytes;
            demand.waiting.fetch_add(bytes, Ordering::Relaxed);
            demand.ask(connection);
        }
    }

    /// The body is read from now on, or not needed.
    pub fn end(&mut self, demand: &WindowDemand, connection: &AtomicWaker) {
        self.most = 0;
        let room = std::mem::take(&mut self.room);
        if room > 0 {
            demand.waiting.fetch_sub(room, Ordering::Relaxed);
            connection.wake();
        }
    }
}

/// The receive window of a connection. It is the protocol's initial window at first. A longer body, or one that waits, gets a wide window if there
/// is memory for the bytes that may wait in it: windows use at most half of the memory for bodies. When no stream is in progress, the window
/// shrinks again.
pub(super) struct ReceiveWindow {
    /// The memory for a window that is wider than the initial one.
    memory: Reservation,
    /// The size, with the bytes that wait in it.
    size: u32,
    /// The size of a wide window in which no body waits.
    wide: u32,
}

impl ReceiveWindow {
    pub fn new(memory: Reservation, wide: u32) -> Self {
        Self { memory, size: LEAST_WINDOW, wide }
    }

    /// Fits the window to what the streams want. `is_idle`: no stream is in progress.
    pub fn fit(
        &mut self,
        connection: &mut Connection<MeteredIo, SendPiece>,
        demand: &WindowDemand,
        budget: &MemoryBudget,
        is_idle: bool,
    ) {
        let wide = u64::from(self.wide);
        let all = wide + demand.waiting.load(Ordering::Relaxed);
        if demand.is_wide.swap(false, Ordering::Relaxed) {
            if !self.widen(connection, budget, all) {
                self.widen(connection, budget, wide);
            }
        } else if self.memory.bytes() > 0 {
            self.narrow(connection, if is_idle { LEAST_WINDOW.into() } else { all }, is_idle);
        }
    }

    /// False if there is no memory for it.
    fn widen(
        &mut self,
        connection: &mut Connection<MeteredIo, SendPiece>,
        budget: &MemoryBudget,
        wanted: u64,
    ) -> bool {
        let wanted = u32::try_from(wanted).unwrap_or(LARGEST_WINDOW).min(LARGEST_WINDOW);
        if wanted <= self.size {
            return true;
        }
        let bytes = self.memory.bytes().max(wanted.into());
        if budget.is_tight() || !self.memory.resize(bytes) {
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
