//! The connection of a call: an HTTP/1.1 connection of its own, or an HTTP/2 stream. Knows no leases.

use std::task::{Context, Poll};

use hostler_wire::{BodyLength, CallError, Fields, Limits, MemberConnection, ResponseHead, Stream};

use super::http2::MemberStream;

pub(super) enum Link {
    /// Boxed once for all its calls, because each call moves it about a dozen times.
    Http1(Box<MemberConnection>),
    Http2(Box<MemberStream>),
}

macro_rules! either {
    ($self:expr, $link:ident => $act:expr) => {
        match $self {
            Link::Http1($link) => $act,
            Link::Http2($link) => $act,
        }
    };
}

impl Link {
    /// The next part of the request. Append only after [`poll_send`](Self::poll_send) was ready, so that it stays bounded.
    pub fn outbox(&mut self) -> &mut Vec<u8> {
        either!(self, link => link.outbox())
    }

    /// The whole request is in the outbox. HTTP/1.1 needs nothing more, because the framing says where it ends.
    pub fn end(&mut self, trailers: Option<Fields>) {
        if let Self::Http2(stream) = self {
            stream.end(trailers);
        }
    }

    pub fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        either!(self, link => link.poll_send(cx))
    }

    pub fn has_send_failed(&self) -> bool {
        either!(self, link => link.has_send_failed())
    }

    /// Reads a head, interim or final.
    pub fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        limits: &Limits,
        to_head: bool,
    ) -> Poll<Result<(), CallError>> {
        either!(self, link => link.poll_head(cx, limits, to_head))
    }

    pub fn head(&self) -> &ResponseHead {
        either!(self, link => link.head())
    }

    pub fn head_mut(&mut self) -> &mut ResponseHead {
        either!(self, link => link.head_mut())
    }

    pub fn is_answered(&self) -> bool {
        either!(self, link => link.is_answered())
    }

    pub fn body_length(&self) -> BodyLength {
        either!(self, link => link.body_length())
    }

    pub fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        either!(self, link => link.poll_ahead(cx))
    }

    pub fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<u8>,
        max: usize,
    ) -> Poll<Result<bool, CallError>> {
        either!(self, link => link.poll_body(cx, into, max))
    }

    pub fn trailers(&self) -> Option<&Fields> {
        either!(self, link => link.trailers())
    }

    /// Closes our side: nothing more will be sent, and the answer is not read.
    pub fn poll_hang_up(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Http1(connection) => connection.poll_hang_up(cx),
            Self::Http2(stream) => {
                stream.hang_up();
                Poll::Ready(())
            }
        }
    }

    /// True while a part of the request waits to be sent.
    pub fn has_unsent(&self) -> bool {
        matches!(self, Self::Http1(connection) if connection.has_unsent())
    }

    /// The raw connection, after the member has switched protocols. That exists only in HTTP/1.1.
    pub fn into_stream(self) -> Option<(Stream, Vec<u8>)> {
        match self {
            Self::Http1(connection) => Some(connection.into_stream()),
            Self::Http2(_) => None,
        }
    }
}
