//! The heads that clients get: a member's less what was meant for us, and our own. Knows no bodies.

use std::cell::RefCell;
use std::time::{SystemTime, UNIX_EPOCH};

use hostler_wire::{Field, Name, ResponseHead, Version};

use crate::exchange::Edits;

/// How an answer's body is framed for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// There is none, and the head speaks for a body that is not sent (HEAD, 304) or for none (204).
    NoBody,
    /// So many bytes.
    Length(u64),
    /// The chunked coding.
    Chunked,
    /// The end of the connection is the end of the body (HTTP/1.0).
    UntilClose,
}

/// What becomes of the connection after an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keeping {
    pub keep: bool,
    pub version: Version,
}

/// Writes a final head, a member's or our own.
pub(super) fn write_answer(
    out: &mut Vec<u8>,
    head: &ResponseHead,
    edits: &Edits,
    framing: Framing,
    keeping: Keeping,
) {
    write_status(out, head.status, head.reason());
    let status = head.status;
    if edits.is_empty() {
        head.fields.copy_lines(out, |field, _| is_kept(field, framing, status));
    } else {
        head.fields.copy_lines(out, |field, name| is_kept(field, framing, status) && edits.keeps(name));
        for (name, value) in edits.lines(&head.fields) {
            write_field(out, name.as_bytes(), value);
        }
    }
    if head.fields.first(Name::Date).is_none() {
        // RFC 9110 section 6.6.1: whoever forwards an answer without a date, and has a clock, adds it.
        write_date(out);
    }
    write_framing(out, framing);
    write_keeping(out, keeping);
    if status == 426 && head.fields.first(Name::Upgrade).is_some() {
        // What it takes to be answered (RFC 9110 section 15.5.22).
        write_upgrade(out, head);
    }
    out.extend_from_slice(b"\r\n");
}

/// Whether a field of a final head goes on to the client.
pub(super) fn is_kept(field: &Field, framing: Framing, status: u16) -> bool {
    match field.known {
        // Says what a GET would have brought (RFC 9110 section 8.6); 204 must not have one.
        Name::ContentLength => framing == Framing::NoBody && status != 204 && !field.listed,
        known => !field.listed && !known.is_hop_by_hop(),
    }
}

/// Writes an interim head.
pub(super) fn write_interim(out: &mut Vec<u8>, head: &ResponseHead) {
    write_status(out, head.status, head.reason());
    head.fields.copy_lines(out, |field, _| {
        !field.listed && !field.known.is_hop_by_hop() && field.known != Name::ContentLength
    });
    out.extend_from_slice(b"\r\n");
}

/// Writes the head with which a member switches protocols.
pub(super) fn write_switch(out: &mut Vec<u8>, head: &ResponseHead, edits: &Edits) {
    write_status(out, head.status, head.reason());
    head.fields.copy_lines(out, |field, name| {
        let is_known = field.listed || field.known.is_hop_by_hop() || field.known == Name::ContentLength;
        !is_known && edits.keeps(name)
    });
    for (name, value) in edits.lines(&head.fields) {
        write_field(out, name.as_bytes(), value);
    }
    write_upgrade(out, head);
    out.extend_from_slice(b"\r\n");
}

/// `Upgrade` is for the next hop alone, and so always goes with the option that says so.
fn write_upgrade(out: &mut Vec<u8>, head: &ResponseHead) {
    for protocols in head.fields.all(Name::Upgrade) {
        write_field(out, b"Upgrade", protocols);
    }
    write_field(out, b"Connection", b"Upgrade");
}

/// The registered reason phrase.
pub(super) fn reason(status: u16) -> &'static str {
    http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or_default()
}

/// Writes one field line.
fn write_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

fn write_status(out: &mut Vec<u8>, status: u16, reason: &[u8]) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(itoa::Buffer::new().format(status).as_bytes());
    out.push(b' ');
    out.extend_from_slice(reason);
    out.extend_from_slice(b"\r\n");
}

fn write_framing(out: &mut Vec<u8>, framing: Framing) {
    match framing {
        Framing::Length(length) => {
            write_field(out, b"Content-Length", itoa::Buffer::new().format(length).as_bytes());
        }
        Framing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Framing::NoBody | Framing::UntilClose => {}
    }
}

fn write_keeping(out: &mut Vec<u8>, keeping: Keeping) {
    match (keeping.keep, keeping.version) {
        (false, _) => out.extend_from_slice(b"Connection: close\r\n"),
        (true, Version::Http10) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
        (true, Version::Http11) => {}
    }
}

thread_local! {
    /// The date changes once a second; answers from memory are many more.
    static DATE: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
}

fn write_date(out: &mut Vec<u8>) {
    with_date(|date| write_field(out, b"Date", date.as_bytes()));
}

/// Hands over the text of this second's date.
pub(super) fn with_date(take: impl FnOnce(&str)) {
    let now = SystemTime::now();
    let second = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    DATE.with_borrow_mut(|(written, text)| {
        if *written != second || text.is_empty() {
            *text = httpdate::fmt_http_date(now);
            *written = second;
        }
        take(text);
    });
}
