//! Error responses as problem documents (RFC 9457). Knows no service.

use std::fmt::Display;

use hostler_wire::{ResponseHead, Whole, reason_phrase};
use serde_json::json;

use crate::head;

/// The most bytes of a request that are repeated in a response.
const MOST_REPEATED: usize = 64;

/// A problem document with a status and one sentence.
pub fn problem(status: u16, detail: impl Display) -> Whole {
    let head = head::of(status, "application/problem+json", "no-store");
    let body = json!({ "type": "about:blank", "title": reason_phrase(status), "status": status, "detail": detail.to_string() });
    Whole::new(head, format!("{body}\n"))
}

/// The response to a method that a path does not have, or to OPTIONS. `None` for an allowed method.
pub fn method(asked: &[u8], allowed: &[&str]) -> Option<Whole> {
    if allowed.iter().any(|method| method.as_bytes() == asked) {
        return None;
    }
    let allow = [allowed, &["OPTIONS"]].concat().join(", ");
    let mut whole = match asked {
        b"OPTIONS" => Whole::new(ResponseHead::with_status(204), ""),
        _ => problem(405, format_args!("this path allows only {allow}")),
    };
    std::sync::Arc::make_mut(&mut whole.head).fields.add(b"Allow", allow.as_bytes());
    Some(whole)
}

/// A part of a request, to be repeated in a response: short and printable.
pub fn repeated(text: &[u8]) -> String {
    let short = &text[..text.len().min(MOST_REPEATED)];
    let dots = if short.len() < text.len() { "..." } else { "" };
    format!("{:?}{dots}", String::from_utf8_lossy(short))
}
