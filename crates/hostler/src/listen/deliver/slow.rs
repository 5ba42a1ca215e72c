//! A delivery while its client is behind: moves bytes to a file and back, and finds clients that are too slow. Knows no client protocol.

use std::task::{Context, Poll};

use hostler_engine::exchange::{Exchange, Slow};

use super::{AnswerSink, DeliveryError, Transfer};
use crate::listen::behind::{self, BufferKind, BufferPlace, Progress};
use crate::listen::response_body;

impl<S: AnswerSink> Transfer<S> {
    /// Checks a client that is behind, or whose answer is partly in a file. True if the loop has more to do at once.
    pub(super) fn look_behind(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut S,
        exchange: &Exchange,
        sent: bool,
    ) -> Result<bool, DeliveryError> {
        let progress = sink.progress();
        let kind = response_body::kind_of(self.body.as_ref(), exchange);
        let ended = self.body.is_none();
        let behind = self.behind.get_or_insert_with(|| sink.fall_behind());
        if sent {
            behind.rest(&progress, &sink.settings().send_limits, sink.refusal_to_read());
        }
        let was_empty = sink.outbox().is_empty();
        let wanted = sink.hold(behind, sent, kind);
        let was_spilling = behind.is_spilling();
        behind.poll_file(cx, sink.outbox(), wanted, ended).map_err(DeliveryError::File)?;
        let has_come = was_empty && !sink.outbox().is_empty();
        if has_come || (was_spilling && !behind.is_spilling()) {
            return Ok(true);
        }
        // The member was not asked for more, so it would not wake this task.
        if self.was_full && !ended && self.place(sink, kind) != BufferPlace::Full {
            return Ok(true);
        }
        let waits = self.was_full && kind == BufferKind::Stored;
        if waits {
            behind::look_again(sink.silence(), cx);
        }
        if !sent && let Some(slow) = self.find_slow(cx, sink, &progress, waits) {
            return Err(DeliveryError::Client(Some(slow)));
        }
        Ok(false)
    }

    /// Whether the client is too slow. `waits`: a member waits for it.
    fn find_slow(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut S,
        progress: &Progress,
        waits: bool,
    ) -> Option<Slow> {
        let behind = self.behind.as_mut()?;
        let waits_for_others = sink.waits_for_others();
        if waits_for_others {
            // The task of the connection checks whether the whole connection stalls.
            sink.refusal_to_read().clear();
        }
        let holds = waits && behind.is_full();
        match behind.poll_slow(cx, progress, holds, &sink.settings().send_limits, sink.refusal_to_read()) {
            Poll::Ready(Slow::Stalled) if waits_for_others => None,
            Poll::Ready(slow) => Some(slow),
            Poll::Pending => None,
        }
    }
}
