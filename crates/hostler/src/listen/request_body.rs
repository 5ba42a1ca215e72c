//! Counts how much of a request's body has arrived and how fast, for both protocols. Reads nothing itself.

use std::task::{Context, Poll};

use hostler_engine::exchange::{BodyError, Deadline, Exchange, TransferRate};

use super::Settings;

/// The progress of one request's body, and its limit.
pub(super) struct ReceivedBody {
    most: u64,
    bytes: u64,
    rate: TransferRate,
    may_pause: bool,
}

impl ReceivedBody {
    /// A body that has not begun, without a limit.
    pub fn new() -> Self {
        Self { most: u64::MAX, bytes: 0, rate: TransferRate::default(), may_pause: false }
    }

    /// From now on the client may pause, and send slowly.
    pub fn let_pause(&mut self, silence: &Deadline) {
        self.may_pause = true;
        silence.clear();
    }

    /// Sets the limit in bytes.
    pub fn allow(&mut self, most: u64) {
        self.most = most;
    }

    /// How many bytes have arrived.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Notes for the log how much of a body has come that went on to the member as it came. Other bodies were counted when they were whole.
    pub fn note(&self, exchange: &mut Exchange) {
        if exchange.streams {
            exchange.log_facts.bytes_in = self.bytes;
        }
    }

    /// Waits for more bytes. Ready when none has arrived for `body_timeout`.
    pub fn poll_stalled(
        &mut self,
        cx: &mut Context<'_>,
        silence: &Deadline,
        settings: &Settings,
    ) -> Poll<BodyError> {
        if self.may_pause {
            return Poll::Pending;
        }
        self.rate.wait(silence.sweep().millis());
        silence.poll_stalled(cx, settings.body_timeout).map(|()| BodyError::Stalled)
    }

    /// Counts bytes that have arrived. The error: there are more than the limit.
    pub fn count(&mut self, bytes: u64, silence: &Deadline) -> Result<(), BodyError> {
        silence.clear();
        self.bytes += bytes;
        if self.bytes > self.most {
            return Err(BodyError::TooLarge(self.most));
        }
        Ok(())
    }

    /// Checks whether the body arrives fast enough. `moved`: bytes that have arrived on its connection since the last check.
    pub fn check_rate(
        &mut self,
        moved: u64,
        ended: bool,
        silence: &Deadline,
        settings: &Settings,
    ) -> Result<(), BodyError> {
        let is_fast = self.rate.has_moved(moved, silence.sweep().millis(), settings.min_receive_rate);
        if is_fast || ended || self.may_pause { Ok(()) } else { Err(BodyError::TooSlow) }
    }
}
