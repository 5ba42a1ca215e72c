//! The connection of a call: an HTTP/1.1 connection of its own, or an HTTP/2 stream. Also what is checked in the heads that a member sends
//! over it: how many interim ones there are, and which fields only Hostler may set. Knows no leases and no clients.

use std::task::{Context, Poll};

use hostler_wire::{
    BodyLength, CallError, Fields, Limits, MemberConnection, ResponseHead, Stream, name_ends_with,
};

use super::http2::MemberStream;
use crate::exchange::Edits;

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
    pub fn http1(&self) -> Option<&MemberConnection> {
        if let Self::Http1(connection) = self { Some(connection) } else { None }
    }

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

    /// Lets the kernel detect that the member is gone. An HTTP/2 connection does that from its beginning on.
    pub fn keep_alive(&self) {
        if let Self::Http1(connection) = self {
            connection.keep_alive();
        }
    }

    /// True while a part of the request waits for the member to take it.
    pub fn has_unsent(&self) -> bool {
        either!(self, link => link.has_unsent())
    }

    /// How many bytes of the request the member has taken: more after each progress.
    pub fn written(&self) -> usize {
        either!(self, link => link.written())
    }

    /// Whether the member may switch protocols: see [`MemberConnection::has_offer`].
    pub fn has_offer(&self) -> bool {
        matches!(self, Self::Http1(connection) if connection.has_offer())
    }

    /// The raw connection, after the member has switched protocols. That exists only in HTTP/1.1.
    pub fn into_stream(self) -> Option<(Stream, Vec<u8>)> {
        match self {
            Self::Http1(connection) => Some(connection.into_stream()),
            Self::Http2(_) => None,
        }
    }
}

/// The interim heads of one answer so far.
#[derive(Default)]
pub(super) struct Interims {
    count: usize,
    bytes: usize,
}

impl Interims {
    /// Counts an interim head. All of them together may have `size` bytes, and there may be `count` of them.
    pub fn note(&mut self, head: &ResponseHead, count: usize, size: usize) -> Result<(), CallError> {
        self.count += 1;
        self.bytes += head.fields.bytes().len();
        match self.count > count || self.bytes > size {
            true => Err(CallError::Interim { count, size }),
            false => Ok(()),
        }
    }
}

/// Removes the fields in which Hostler describes itself. A final head keeps what our cache has yet to read (`Hostler-Cache-Control`, RFC
/// 9213). The client does not get that either.
pub(super) fn remove_own_fields(head: &mut ResponseHead) {
    let is_final = !head.is_interim();
    head.fields.remove(|name| is_of_hostlers(name) && !(is_final && is_for_our_cache(name)));
}

/// Removes what the route removes from answers, or sets there, from an interim head.
pub(super) fn edit_interim(head: &mut ResponseHead, edits: &Edits) {
    if !edits.is_empty() {
        head.fields.remove(|name| !edits.keeps(name));
    }
}

/// `Hostler-*` and `Cache-Status` (RFC 9211). An underscore counts as a hyphen, because many programs read it as one.
fn is_of_hostlers(name: &[u8]) -> bool {
    let is = |name: &[u8], of: &[u8]| {
        let same = |(a, b): (&u8, &u8)| a.eq_ignore_ascii_case(b) || (*a == b'_' && *b == b'-');
        name.iter().zip(of).all(same)
    };
    match name.first() {
        Some(b'h' | b'H') => name.len() >= 8 && is(name, b"hostler-"),
        Some(b'c' | b'C') => name.len() == 12 && is(name, b"cache-status"),
        _ => false,
    }
}

/// A targeted field for Hostler's cache, under any name that the route sets (`routes.cache.targeted`). Clients do not get it: caches in
/// front of Hostler have fields of their own, such as `CDN-Cache-Control`.
pub fn is_for_our_cache(name: &[u8]) -> bool {
    matches!(name.first(), Some(b'h' | b'H'))
        && is_of_hostlers(name)
        && name_ends_with(name, b"cache-control")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostler_fields_of_a_workers_head_are_removed() {
        let names = ["Hostler-Refusal", "hostler-x", "Hostler_Fallback", "Cache-Status", "CACHE_STATUS"];
        let others =
            ["Hostler", "Hostler-Cache-Control", "Hostess-X", "Cache-Control", "Cache-Status-X", "Host", ""];
        for status in [200, 103] {
            let mut head = ResponseHead::new(status, "");
            names.iter().chain(&others).for_each(|name| head.fields.add(name.as_bytes(), b"x"));
            remove_own_fields(&mut head);
            let left: Vec<_> = head.fields.iter().map(|(_, name, _)| String::from_utf8_lossy(name)).collect();
            let expected: Vec<_> =
                others.iter().filter(|name| status == 200 || **name != "Hostler-Cache-Control").collect();
            assert_eq!(
                left.iter().map(|name| &**name).collect::<Vec<_>>(),
                expected.into_iter().copied().collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn fields_for_our_cache_are_recognised_by_prefix_and_suffix() {
        for (name, is) in [
            ("Hostler-Cache-Control", true),
            ("hostler-edge-cache-control", true),
            ("CDN-Cache-Control", false),
            ("Cache-Control", false),
            ("Hostler-Refusal", false),
            ("h", false),
            ("", false),
        ] {
            assert_eq!(is_for_our_cache(name.as_bytes()), is, "{name}");
        }
    }
}
