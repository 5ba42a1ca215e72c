//! Refusals for calls of gRPC: an answer without a body whose head has the status of the call. Knows no connection.
//!
//! Without it a client of gRPC makes a status of that of HTTP, and says only that it was unexpected: of a timeout (504) it says that the server
//! is unavailable, and may send the call again, although the app has it.

use std::fmt::Write as _;

use hostler_engine::gateway::{Refusal, RefusalFacts};
use hostler_wire::{Fields, Name, ResponseHead};

const MEDIA_TYPE: &[u8] = b"application/grpc";

/// Whether a request with these fields is a call of gRPC, with any coding of its messages. Clients of gRPC-Web want another form.
pub(super) fn is_call(fields: &Fields) -> bool {
    let media_type = fields.first(Name::ContentType).unwrap_or_default();
    let Some((start, rest)) = media_type.split_at_checked(MEDIA_TYPE.len()) else { return false };
    start.eq_ignore_ascii_case(MEDIA_TYPE) && matches!(rest.first(), None | Some(b'+' | b';' | b' '))
}

/// The head for a refused call. It ends the answer ("Trailers-Only").
pub(super) fn refused(refusal: &Refusal, facts: &RefusalFacts) -> ResponseHead {
    // gRPC always says 200 in HTTP.
    let mut head = ResponseHead::with_status(200);
    head.fields.add(b"Content-Type", MEDIA_TYPE);
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

    fn is_call_with(media_type: &str) -> bool {
        let mut fields = Fields::default();
        fields.add(b"Content-Type", media_type.as_bytes());
        is_call(&fields)
    }

    #[test]
    fn a_call_of_grpc_is_recognised_by_its_media_type() {
        for media_type in
            ["application/grpc", "Application/gRPC+proto", "application/grpc;v=1", "application/grpc ;v=1"]
        {
            assert!(is_call_with(media_type), "{media_type}");
        }
        for media_type in
            ["", "application/grp", "application/grpc-web+proto", "application/grpcs", "text/html"]
        {
            assert!(!is_call_with(media_type), "{media_type}");
        }
        assert!(!is_call(&Fields::default()));
    }

    #[test]
    fn the_message_of_a_call_is_visible_ascii() {
        assert_eq!(encoded("100 % of it: é\n"), "100 %25 of it: %C3%A9%0A");
    }
}
