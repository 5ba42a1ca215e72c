//! Limits how far a request goes: `Max-Forwards` of OPTIONS and TRACE (RFC 9110 section 7.6.2), and loops. Knows no member.

use std::borrow::Cow;

use hostler_wire::{ResponseHead, Whole, parse_digits};

use super::refusal::Refusal;
use crate::exchange::{Edit, Exchange, via};

const MAX_FORWARDS: &str = "Max-Forwards";

/// Refuses a request that has already passed through this Hostler. Without this it would circle until its head is too large for one of the
/// proxies.
pub(super) fn check_loop(exchange: &Exchange) -> Result<(), Refusal> {
    if via::has_been_here(&exchange.head.fields) { Err(Refusal::Loop) } else { Ok(()) }
}

/// Decrements `Max-Forwards`. Returns the answer if this was the last hop. A TRACE is passed on only if the route allows it.
pub(super) fn count(exchange: &mut Exchange, traces: bool) -> Result<Option<Whole>, Refusal> {
    let is_options = match exchange.head.method() {
        b"OPTIONS" => true,
        // The answer to TRACE may show fields that a proxy in front has added and the client must not see.
        b"TRACE" if !traces => return Err(Refusal::Trace),
        b"TRACE" => false,
        _ => return Ok(None),
    };
    match exchange.head.fields.get(MAX_FORWARDS).and_then(parse_digits) {
        // A value that is not a number is ignored and passed on.
        None => Ok(None),
        Some(0) if is_options => Ok(Some(Whole::new(ResponseHead::with_status(204), Vec::new()))),
        // Not echoed: the head may hold fields that a proxy in front has added.
        Some(0) => Err(Refusal::Trace),
        Some(hops) => {
            let value = (hops - 1).to_string().into_bytes();
            exchange.to_member.own.push(Edit::Set(Cow::Borrowed(MAX_FORWARDS), value));
            Ok(None)
        }
    }
}
