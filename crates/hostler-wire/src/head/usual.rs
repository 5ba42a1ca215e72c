//! Parses a head in the form in which nearly all heads come, in one pass over its bytes. Knows nothing of a head in another form, and
//! explains nothing: for such a head the general parser decides.
//!
//! The usual form: no white space except one space between the words of the start line and around values, each line ends in CR LF, each
//! byte is allowed where it is. All that this accepts, the general parser accepts with the same result (`tests::agreement`).

use crate::field::{Fields, Name, Span};
use crate::grammar::{TOKEN, is_token};

/// A 1 in each of eight bytes. Multiplied by a byte, it has that byte eight times.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The highest bit of each byte.
const HIGH: u64 = 0x80 * ONES;

/// The words of a request line.
pub(super) struct RequestLine {
    pub method: Span,
    pub target: Span,
    /// The digit after `HTTP/1.`.
    pub minor: u8,
    /// Where the next line begins.
    pub end: usize,
}

/// The words of a status line.
pub(super) struct StatusLine {
    /// The digit after `HTTP/1.`.
    pub minor: u8,
    pub status: u16,
    pub reason: Span,
    /// Where the next line begins.
    pub end: usize,
}

pub(super) fn request_line(bytes: &[u8]) -> Option<RequestLine> {
    let method = bytes.iter().position(|byte| !TOKEN[usize::from(*byte)])?;
    if method == 0 || bytes[method] != b' ' {
        return None;
    }
    let from = method + 1;
    let target = find(&bytes[from..], end_of_target)?;
    let (_, rest) = bytes.split_at(from + target);
    let minor = match rest.first_chunk::<11>()? {
        b" HTTP/1.1\r\n" => 1,
        b" HTTP/1.0\r\n" => 0,
        _ => return None,
    };
    let (method, end) = (Span::at(0, method), from + target + 11);
    (target > 0).then_some(RequestLine { method, target: Span::at(from, target), minor, end })
}

pub(super) fn status_line(bytes: &[u8]) -> Option<StatusLine> {
    let (version, rest) = bytes.split_first_chunk::<9>()?;
    let minor = match version {
        b"HTTP/1.1 " => 1,
        b"HTTP/1.0 " => 0,
        _ => return None,
    };
    let [hundreds @ b'1'..=b'9', tens @ b'0'..=b'9', ones @ b'0'..=b'9', b' '] = rest.first_chunk::<4>()?
    else {
        return None;
    };
    let digit = |byte: &u8| u16::from(byte - b'0');
    let status = 100 * digit(hundreds) + 10 * digit(tens) + digit(ones);
    let from = 13;
    let reason = find(&bytes[from..], end_of_reason)?;
    let end = from + reason;
    let reason = if reason == 0 { Span::default() } else { Span::at(from, reason) };
    bytes[end..].starts_with(b"\r\n").then_some(StatusLine { minor, status, reason, end: end + 2 })
}

/// Takes the field lines from `at` on, at most `max` of them. Returns the length of the head. `None`: the head is incomplete, or not in the
/// usual form.
pub(super) fn field_lines(fields: &mut Fields, bytes: &[u8], mut at: usize, max: usize) -> Option<usize> {
    for _ in 0..=max {
        let line = bytes.get(at..)?;
        if let [b'\r', b'\n', ..] = line {
            fields.hold(&bytes[..at + 2]);
            return Some(at + 2);
        }
        let name = find(line, colon)?;
        let known = Name::of(&line[..name]);
        // The names that are known consist of allowed bytes.
        if known == Name::Other && !is_token(&line[..name]) {
            return None;
        }
        let mut from = name + 1;
        while let Some(b' ' | b'\t') = line.get(from) {
            from += 1;
        }
        let mut end = from;
        loop {
            end += find(line.get(end..)?, end_of_value)?;
            match line[end..] {
                [b'\t', ..] => end += 1,
                [b'\r', b'\n', ..] => break,
                _ => return None,
            }
        }
        let value = line[from..end].trim_ascii_end().len();
        let value = if value == 0 { Span::default() } else { Span::at(at + from, value) };
        if fields.len() == max {
            return None;
        }
        fields.push_known(known, Span::at(at, name), value, at + end + 2);
        at += end + 2;
    }
    None
}

/// The position of the first byte that `marks` marks. `marks` gets eight bytes at a time, the first one in the lowest bits, and returns the highest
/// bit of each byte that it marks. Bits above the first marked byte have no meaning.
#[inline(always)]
fn find(bytes: &[u8], marks: impl Fn(u64) -> u64) -> Option<usize> {
    let mut at = 0;
    while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        match marks(u64::from_le_bytes(*eight)) {
            0 => at += 8,
            marked => return Some(at + (marked.trailing_zeros() / 8) as usize),
        }
    }
    // The last bytes, and then some that no function marks.
    let rest = &bytes[at..];
    let mut eight = [b'a'; 8];
    eight[..rest.len()].copy_from_slice(rest);
    match marks(u64::from_le_bytes(eight)) {
        0 => None,
        marked => Some(at + (marked.trailing_zeros() / 8) as usize),
    }
}

/// Marks bytes below `limit`.
#[inline(always)]
fn below(eight: u64, limit: u64) -> u64 {
    eight.wrapping_sub(limit * ONES) & !eight & HIGH
}

/// Marks bytes that are equal to `byte`.
#[inline(always)]
fn equal(eight: u64, byte: u64) -> u64 {
    below(eight ^ (byte * ONES), 1)
}

#[inline(always)]
fn colon(eight: u64) -> u64 {
    equal(eight, b':'.into())
}

/// Marks all bytes except visible ASCII.
#[inline(always)]
fn end_of_target(eight: u64) -> u64 {
    below(eight, 0x21) | equal(eight, 0x7f) | (eight & HIGH)
}

/// Marks all bytes except visible ASCII and spaces.
#[inline(always)]
fn end_of_reason(eight: u64) -> u64 {
    below(eight, 0x20) | equal(eight, 0x7f) | (eight & HIGH)
}

/// Marks the control bytes. One of them, the tab, is allowed in a value, so the caller checks further.
#[inline(always)]
fn end_of_value(eight: u64) -> u64 {
    below(eight, 0x20) | equal(eight, 0x7f)
}
