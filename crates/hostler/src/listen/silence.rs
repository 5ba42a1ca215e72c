//! How long a silent connection of a client keeps the memory that only requests need. Knows no protocol.

use std::time::Duration;

use hostler_engine::exchange::Deadline;

/// How long a connection is silent before the memory that only requests need is freed.
const KEPT: Duration = Duration::from_secs(1);
/// The most bytes that are read at once for a connection without that memory.
pub(super) const FIRST_READ: usize = 16 * 1024;

/// The silence of a connection that still has the memory that only requests need.
#[derive(Default)]
pub(super) struct ShortSilence {
    /// When the silence began, in milliseconds of the sweep.
    began: u64,
    /// Whether the memory is to be freed when the deadline is due.
    is_short: bool,
}

impl ShortSilence {
    /// The silence begins. `silence` is due when the memory is to be freed, or when the connection has been idle for too long.
    pub fn begin(silence: &Deadline, idle_timeout: Duration) -> Self {
        let (began, is_short) = (silence.sweep().millis(), idle_timeout > 2 * KEPT);
        match is_short {
            true => silence.set_roughly_after(KEPT),
            false => silence.set_after(idle_timeout),
        }
        Self { began, is_short }
    }

    /// After the memory was freed, bytes have come that are no request, and they need the memory again. `silence` is due when it is to be freed
    /// again. The idle time still counts from the same moment.
    pub fn begin_again(&mut self, silence: &Deadline) {
        silence.set_roughly_after(KEPT);
        self.is_short = true;
    }

    /// `silence` is due. Returns whether the connection may stay open. Then `silence` is due when it has been idle for too long.
    pub fn end(&mut self, silence: &Deadline, idle_timeout: Duration) -> bool {
        if std::mem::take(&mut self.is_short) {
            silence.set_after_millis(self.began, idle_timeout);
            return true;
        }
        false
    }
}
