//! The head that a member gets: the client's own, less what was meant for us, plus what we know. Knows no connection.

use std::io::Write as _;

use hostler_wire::{BodyLength, Field, Name};

use crate::exchange::trust::joined;
use crate::exchange::{Exchange, Protocol};

/// Writes the request's head for a member.
pub(super) fn write_head(out: &mut Vec<u8>, exchange: &Exchange, framing: Option<BodyLength>) {
    let head = &exchange.head;
    out.extend_from_slice(head.method());
    out.push(b' ');
    out.extend_from_slice(exchange.target());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    let mut seen = Seen::default();
    head.fields.copy_lines(out, |field, name| {
        let passage = passage(exchange, field, name);
        if let Passage::Hearsay = passage {
            seen.note(field.known);
        }
        passage != Passage::None
    });
    for (name, value) in exchange.to_member.lines(&head.fields) {
        write_field(out, name.as_bytes(), value);
    }
    write_forwarding(out, exchange, &seen);
    if let Some(offer) = &exchange.offer {
        write_field(out, b"Connection", b"Upgrade");
        write_field(out, b"Upgrade", offer);
    }
    match framing {
        Some(BodyLength::Known(length)) => write_number(out, b"Content-Length", length),
        Some(BodyLength::Chunked) => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        // `Content-Length: 0` says what a POST without a body would leave open.
        _ if head.fields.first(Name::ContentLength).is_some() => write_number(out, b"Content-Length", 0),
        _ => {}
    }
    out.extend_from_slice(b"\r\n");
}

/// Whether a line of the client's goes on to the member as it is.
pub fn goes_on(exchange: &Exchange, field: &Field, name: &[u8]) -> bool {
    passage(exchange, field, name) != Passage::None
}

/// What becomes of a line of the client's.
#[derive(PartialEq, Eq)]
enum Passage {
    None,
    Plain,
    /// It goes on because a trusted proxy has said so.
    Hearsay,
}

fn passage(exchange: &Exchange, field: &Field, name: &[u8]) -> Passage {
    if field.listed || field.known.is_hop_by_hop() || is_ours(field.known) {
        return Passage::None;
    }
    let hearsay = !field.own && is_hearsay(field.known, name);
    if hearsay && (!exchange.client.peer_trusted || is_settled(exchange, field.known)) {
        return Passage::None;
    }
    let kept = exchange.to_member.is_empty() || exchange.to_member.keeps(name);
    match (kept, hearsay) {
        (false, _) => Passage::None,
        (true, false) => Passage::Plain,
        (true, true) => Passage::Hearsay,
    }
}

/// Which fields of a trusted proxy are passed on as they came.
#[derive(Default)]
struct Seen {
    proto: bool,
    host: bool,
}

impl Seen {
    fn note(&mut self, name: Name) {
        self.proto |= name == Name::XForwardedProto;
        self.host |= name == Name::XForwardedHost;
    }
}

/// Fields that we write ourselves, or that ended with us: we have answered the expectation and framed the body anew.
fn is_ours(name: Name) -> bool {
    matches!(name, Name::ContentLength | Name::Expect | Name::XForwardedFor | Name::XRequestId)
}

/// Fields that say who the client is and how it came: worth something only from a peer that is trusted.
fn is_hearsay(known: Name, name: &[u8]) -> bool {
    match known {
        Name::Forwarded
        | Name::XForwardedProto
        | Name::XForwardedHost
        | Name::XForwardedPort
        | Name::XForwardedServer
        | Name::XForwardedPrefix
        | Name::XRealIp
        | Name::CfConnectingIp
        | Name::TrueClientIp => true,
        Name::Other => {
            starts_with(name, b"x-forwarded-") || starts_with(name, b"x-geo-") || is_in_disguise(name)
        }
        _ => false,
    }
}

/// `X_Real_IP` is another name than `X-Real-IP` to us and to Node, but the same to whatever is made after CGI (WSGI, Rack, PHP),
/// where it would take the place of ours.
fn is_in_disguise(name: &[u8]) -> bool {
    if memchr::memchr(b'_', name).is_none() {
        return false;
    }
    let dashed: Vec<u8> = name.iter().map(|&byte| if byte == b'_' { b'-' } else { byte }).collect();
    let known = Name::of(&dashed);
    is_ours(known) || is_hearsay(known, &dashed)
}

/// What it says is known already, whatever it says.
fn is_settled(exchange: &Exchange, known: Name) -> bool {
    known == Name::XForwardedProto && exchange.forwarded_proto.is_some()
}

fn starts_with(name: &[u8], prefix: &[u8]) -> bool {
    name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

fn write_forwarding(out: &mut Vec<u8>, exchange: &Exchange, seen: &Seen) {
    let fields = &exchange.head.fields;
    let trusted = exchange.client.peer_trusted;
    out.extend_from_slice(b"X-Forwarded-For: ");
    if trusted {
        for hop in joined(fields, Name::XForwardedFor) {
            out.extend_from_slice(hop);
            out.extend_from_slice(b", ");
        }
    }
    out.extend_from_slice(exchange.peer_ip.as_bytes());
    out.extend_from_slice(b"\r\n");
    if !(seen.proto && trusted) {
        let scheme = exchange.forwarded_proto.unwrap_or(exchange.scheme);
        write_field(out, b"X-Forwarded-Proto", scheme.as_str().as_bytes());
    }
    let host = exchange.host();
    if host.is_empty() && !exchange.to_member.keeps(b"host") {
        // The route has set one.
    } else if host.is_empty() {
        // An HTTP/1.0 request may come without; HTTP/1.1 to the member must not go without.
        out.extend_from_slice(b"Host: ");
        // Writing to memory does not fail.
        let _ = write!(out, "{}", exchange.local);
        out.extend_from_slice(b"\r\n");
    } else if !(seen.host && trusted) {
        write_field(out, b"X-Forwarded-Host", host);
    }
    write_field(out, b"X-Request-Id", exchange.id.as_bytes());
    // RFC 9110 section 7.6.3: a gateway must say that it was there.
    out.extend_from_slice(match exchange.protocol {
        Protocol::Http1 => b"Via: 1.1 hostler\r\n",
        Protocol::Http2 => b"Via: 2.0 hostler\r\n",
    });
}

fn write_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

fn write_number(out: &mut Vec<u8>, name: &[u8], number: u64) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    out.extend_from_slice(b"\r\n");
}
