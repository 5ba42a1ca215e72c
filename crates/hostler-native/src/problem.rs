//! Answers to questions that make no sense, as RFC 9457 has them. Knows no service.

use std::fmt::Display;

use hostler_wire::{ResponseHead, reason_phrase};
use serde_json::json;

use hostler_wire::Whole;

/// The longest part of what was asked that is repeated in an answer.
const MOST_REPEATED: usize = 64;

/// A problem: its status, and what is wrong in one sentence.
pub fn problem(status: u16, detail: impl Display) -> Whole {
    let mut head = ResponseHead::with_status(status);
    head.fields.add(b"Content-Type", b"application/problem+json");
    head.fields.add(b"Cache-Control", b"no-store");
    let body = json!({ "type": "about:blank", "title": reason_phrase(status), "status": status, "detail": detail.to_string() });
    Whole::new(head, format!("{body}\n"))
}

/// The answer to a method that a path does not have, or to OPTIONS; none for those that it has.
pub fn method(asked: &[u8], allowed: &[&str]) -> Option<Whole> {
    if allowed.iter().any(|method| method.as_bytes() == asked) {
        return None;
    }
    let allow = [allowed, &["OPTIONS"]].concat().join(", ");
    let mut whole = match asked {
        b"OPTIONS" => Whole::new(ResponseHead::with_status(204), ""),
        _ => problem(405, format_args!("this is for {allow}")),
    };
    std::sync::Arc::make_mut(&mut whole.head).fields.add(b"Allow", allow.as_bytes());
    Some(whole)
}

/// What somebody has sent, so that it can be repeated to him: short, and readable whatever it was.
pub fn repeated(text: &[u8]) -> String {
    let short = &text[..text.len().min(MOST_REPEATED)];
    let dots = if short.len() < text.len() { "..." } else { "" };
    format!("{:?}{dots}", String::from_utf8_lossy(short))
}
