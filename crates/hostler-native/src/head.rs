//! The beginning of each response's head. Knows no service.

use hostler_wire::ResponseHead;

/// A head with its status, its content type and its cache directives.
pub fn of(status: u16, content_type: &str, cache_control: &str) -> ResponseHead {
    let mut head = ResponseHead::with_status(status);
    head.fields.add(b"Content-Type", content_type.as_bytes());
    head.fields.add(b"Cache-Control", cache_control.as_bytes());
    head
}
