//! Fills a body from its source until the end, or until it has been without a reader for too long. Knows no members and no clients.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use super::incoming_body::{BodyFeed, FillOutcome, IncomingBody};

/// How long, and for how many bytes, a body is filled on after its last reader has left.
#[derive(Debug, Clone, Copy)]
pub struct UnreadLimit {
    pub time: Duration,
    pub bytes: usize,
}

/// The right to fill. When it is dropped before the end, the body is cut.
pub struct Filling<'f> {
    incoming_body: &'f IncomingBody,
    limit: UnreadLimit,
    /// The end of the time without a reader. None while there are readers.
    due: Option<Pin<Box<Sleep>>>,
}

impl<'f> Filling<'f> {
    pub fn new(incoming_body: &'f IncomingBody, limit: UnreadLimit) -> Self {
        Self { incoming_body, limit, due: None }
    }

    /// Fills until the body is complete, cut, unwanted, or found too large.
    pub async fn fill(&mut self, source: &mut impl BodyFeed) -> FillOutcome {
        let mut piece = Vec::new();
        poll_fn(|cx| match self.incoming_body.poll_fill(cx, source, &mut piece) {
            Poll::Ready(outcome) => Poll::Ready(outcome),
            Poll::Pending => self.poll_unread(cx).map(|()| FillOutcome::Unwanted),
        })
        .await
    }

    /// Ready when the body was cut because no one reads it.
    fn poll_unread(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(bytes) = self.incoming_body.unread() else {
            self.due = None;
            return Poll::Pending;
        };
        let due = self.due.get_or_insert_with(|| Box::pin(sleep(self.limit.time)));
        let is_over = bytes > self.limit.bytes || due.as_mut().poll(cx).is_ready();
        if !is_over {
            return Poll::Pending;
        }
        self.due = None;
        if self.incoming_body.cut_unread() { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Readers get an error when filling stops, for any reason.
impl Drop for Filling<'_> {
    fn drop(&mut self) {
        self.incoming_body.give_up();
    }
}
