//! Whether a request may still go further: how far OPTIONS and TRACE may (RFC 9110 section 7.6.2), and that none goes in circles.
//! Knows no member.

use std::borrow::Cow;

use hostler_wire::{ResponseHead, parse_digits};

use super::refusal::Refusal;
use crate::exchange::{Edit, Exchange, Whole, via};

const MAX_FORWARDS: &str = "Max-Forwards";

/// Refuses what has been here before: it would come round again until its head is too large for somebody.
pub(super) fn check_loop(exchange: &Exchange) -> Result<(), Refusal> {
    if via::has_been_here(&exchange.head.fields) { Err(Refusal::Loop) } else { Ok(()) }
}

/// Counts this hop; the answer, if it was the last. A TRACE goes on only where the route says so.
pub(super) fn count(exchange: &mut Exchange, traces: bool) -> Result<Option<Whole>, Refusal> {
    let is_options = match exchange.head.method() {
        b"OPTIONS" => true,
        // What comes back may hold what a proxy in front has added, and what the client is not to see.
        b"TRACE" if !traces => return Err(Refusal::Trace),
        b"TRACE" => false,
        _ => return Ok(None),
    };
    match exchange.head.fields.get(MAX_FORWARDS).and_then(parse_digits) {
        // What is no number is nothing that we understand, and goes on as it is.
        None => Ok(None),
        Some(0) if is_options => Ok(Some(Whole::new(ResponseHead::with_status(204), Vec::new()))),
        // What we read is not for whoever may read the answer: it may hold what a proxy in front has added.
        Some(0) => Err(Refusal::Trace),
        Some(hops) => {
            let value = (hops - 1).to_string().into_bytes();
            exchange.to_member.own.push(Edit::Set(Cow::Borrowed(MAX_FORWARDS), value));
            Ok(None)
        }
    }
}
