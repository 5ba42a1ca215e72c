//! Refusals for calls of gRPC: an answer without a body whose head has the status of the call. Knows no connection.
//!
//! Without it, a gRPC client derives the status of the call from the HTTP status. Example: it would report a timeout (504) as UNAVAILABLE, and might
//! send the call again although the app has it.

use std::fmt::Write as _;

use hostler_engine::gateway::{Refusal, RefusalFacts};
use hostler_wire::ResponseHead;

/// The head for a refused call. It ends the answer ("Trailers-Only").
pub(super) fn refused(refusal: &Refusal, facts: &RefusalFacts) -> ResponseHead {
    // gRPC always says 200 in HTTP.
    let mut head = ResponseHead::with_status(200);
    head.fields.add(b"Content-Type", b"application/grpc");
    head.fields.add(b"grpc-status", code(facts.status).as_bytes());
    head.fields.add(b"grpc-message", encoded(&refusal.to_string()).as_bytes());
    head
}

/// The code that gRPC gives to a status of HTTP ("HTTP to gRPC Status Code Mapping"), except where another code says more.
fn code(status: u16) -> &'static str {
    const UNKNOWN: &str = "2";
    const DEADLINE_EXCEEDED: &str = "4";
    const PERMISSION_DENIED: &str = "7";
    const RESOURCE_EXHAUSTED: &str = "8";
    const UNIMPLEMENTED: &str = "12";
    const INTERNAL: &str = "13";
    const UNAVAILABLE: &str = "14";
    match status {
        400 => INTERNAL,
        403 => PERMISSION_DENIED,
        404 => UNIMPLEMENTED,
        408 | 504 => DEADLINE_EXCEEDED,
        413 | 414 | 431 | 507 => RESOURCE_EXHAUSTED,
        429 | 502 | 503 => UNAVAILABLE,
        _ => UNKNOWN,
    }
}

/// A text as `grpc-message` may have it: percent-encoded, except visible ASCII characters and the space.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => out.push(char::from(byte)),
            _ => {
                // Writing to a String does not fail.
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_a_call_is_visible_ascii() {
        assert_eq!(encoded("100 % of it: é\n"), "100 %25 of it: %C3%A9%0A");
    }
}
