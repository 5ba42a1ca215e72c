//! An answer without end, once it holds no slot: when it must end, and where. Knows no client and no queue.
//!
//! A stream is ended between two events if possible: an event that is on its way gets some seconds to become whole. Then the client gets
//! the end of the answer, as if the app had ended it, and an `EventSource` connects again with `Last-Event-ID`.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hostler_wire::{BodyLength, CallError, Name, ResponseHead, media_type};

use super::link::Link;
use crate::exchange::{Deadline, OpenStream};

/// How long the current event may take to become whole, before the stream ends inside it.
const EVENT_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest mark of the end of an event: `\r\n\r\n`.
const LONGEST_MARK: usize = 4;

/// Which side ended a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEnd {
    /// The client has left.
    Client,
    /// The member has ended its answer, or broke it off.
    Member,
    /// Hostler, because the member leaves its pool or Hostler is stopping.
    Dismissed,
    /// Hostler, because the member has sent nothing for too long.
    Idle,
}

/// A stream.
pub(super) struct LiveStream {
    /// When the stream has been silent for too long. Once `is_ending`: when it ends even inside an event.
    deadline: Deadline,
    idle_timeout: Duration,
    /// Ready when the stream must end. None: only the client, the member or a long silence ends it.
    dismissal: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// The stream ends after the current event.
    is_ending: bool,
    ended: Option<StreamEnd>,
    /// The last bytes of the body, to find the end of an event. None: the body has no readable events, so it may end anywhere.
    tail: Option<Vec<u8>>,
    counted: Option<OpenStream>,
}

/// Whether an answer goes on until one side ends it: events for an `EventSource`, or parts each of which replaces the one before. An answer
/// with a length is not endless.
pub(super) fn is_endless(head: &ResponseHead, length: BodyLength) -> bool {
    let is_open = matches!(length, BodyLength::Chunked | BodyLength::UntilClose);
    is_open && [EVENTS, PARTS].iter().any(|kind| is_of_type(head, kind))
}

const EVENTS: &[u8] = b"text/event-stream";
const PARTS: &[u8] = b"multipart/x-mixed-replace";

fn is_of_type(head: &ResponseHead, wanted: &[u8]) -> bool {
    let kind = head.fields.first(Name::ContentType).unwrap_or_default();
    media_type(kind).eq_ignore_ascii_case(wanted)
}

impl LiveStream {
    /// `deadline` belongs to the thread that delivers the stream.
    pub fn new(head: &ResponseHead, deadline: Deadline, idle_timeout: Duration) -> Self {
        deadline.set_after(idle_timeout);
        let has_events = is_of_type(head, EVENTS) && head.fields.first(Name::ContentEncoding).is_none();
        let tail = has_events.then(|| Vec::with_capacity(LONGEST_MARK));
        Self { deadline, idle_timeout, dismissal: None, is_ending: false, ended: None, tail, counted: None }
    }

    pub fn count(&mut self, open: OpenStream) {
        self.counted = Some(open);
    }

    /// The stream must end when this is ready.
    pub fn end_after(&mut self, dismissal: impl Future<Output = ()> + Send + 'static) {
        self.dismissal = Some(Box::pin(dismissal));
    }

    /// Which side has ended the stream.
    pub fn ended(&self) -> Option<StreamEnd> {
        self.ended
    }

    /// Ready when the stream ends now, although its member goes on.
    pub fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.ended.is_some() {
            return Poll::Ready(());
        }
        if !self.is_ending
            && let Some(dismissal) = &mut self.dismissal
            && dismissal.as_mut().poll(cx).is_ready()
        {
            (self.is_ending, self.dismissal) = (true, None);
            self.deadline.set_after(EVENT_TIMEOUT);
        }
        let is_due = self.deadline.poll_due(cx).is_ready();
        self.ended = match self.is_ending {
            true if is_due || self.is_between_events() => Some(StreamEnd::Dismissed),
            false if is_due => Some(StreamEnd::Idle),
            _ => return Poll::Pending,
        };
        Poll::Ready(())
    }

    /// Appends some of the body. True when it is complete, or when the stream ends.
    pub fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        link: &mut Link,
        into: &mut Vec<u8>,
        max: usize,
    ) -> Poll<Result<bool, CallError>> {
        if self.poll_end(cx).is_ready() {
            return Poll::Ready(Ok(true));
        }
        let before = into.len();
        let polled = link.poll_body(cx, into, max);
        let came = into.len() - before;
        if came > 0 && !self.is_ending {
            self.deadline.set_after(self.idle_timeout);
        }
        self.note(&into[before..]);
        if let Poll::Ready(Ok(true) | Err(_)) = polled {
            self.ended = Some(StreamEnd::Member);
        } else if self.is_ending
            && let Some(end) = end_of_last_event(&into[before..])
        {
            into.truncate(before + end);
            self.ended = Some(StreamEnd::Dismissed);
            return Poll::Ready(Ok(true));
        }
        polled
    }

    fn note(&mut self, bytes: &[u8]) {
        if let Some(tail) = &mut self.tail {
            tail.extend_from_slice(&bytes[bytes.len().saturating_sub(LONGEST_MARK)..]);
            tail.drain(..tail.len().saturating_sub(LONGEST_MARK));
        }
    }

    fn is_between_events(&self) -> bool {
        let ends_event = |tail: &Vec<u8>| tail.is_empty() || end_of_last_event(tail) == Some(tail.len());
        self.tail.as_ref().is_none_or(ends_event)
    }
}

/// The length of the bytes up to the end of the last whole event: up to the last blank line.
fn end_of_last_event(bytes: &[u8]) -> Option<usize> {
    let is_end = |end: &usize| {
        let bytes = &bytes[..*end];
        [&b"\n\n"[..], b"\r\r", b"\r\n\r\n"].iter().any(|mark| bytes.ends_with(mark))
    };
    (2..=bytes.len()).rev().find(is_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(kind: &str) -> ResponseHead {
        let mut head = ResponseHead::new(200, "");
        head.fields.add(b"Content-Type", kind.as_bytes());
        head
    }

    #[test]
    fn event_streams_and_replaced_parts_without_a_length_are_endless() {
        for (kind, is) in [
            ("text/event-stream", true),
            ("Text/Event-Stream ; charset=utf-8", true),
            ("multipart/x-mixed-replace; boundary=x", true),
            ("text/event-streams", false),
            ("application/x-ndjson", false),
            ("multipart/mixed", false),
            ("", false),
        ] {
            assert_eq!(is_endless(&head(kind), BodyLength::Chunked), is, "{kind}");
            assert_eq!(is_endless(&head(kind), BodyLength::UntilClose), is, "{kind}");
            assert!(!is_endless(&head(kind), BodyLength::Known(10)), "{kind}");
        }
    }

    #[test]
    fn an_event_ends_with_a_blank_line_in_any_form() {
        for (bytes, end) in [
            ("", None),
            ("data: 1\n", None),
            ("data: 1\n\n", Some(9)),
            ("data: 1\n\ndata: 2\n", Some(9)),
            ("data: 1\r\n\r\ndata: 2\r\n", Some(11)),
            ("data: 1\r\rdata", Some(9)),
            ("a\n\nb\n\nc", Some(6)),
        ] {
            assert_eq!(end_of_last_event(bytes.as_bytes()), end, "{bytes:?}");
        }
    }
}
