//! Entity tags of responses from memory, and conditional requests (RFC 9110 section 13). Knows no service.

use bytes::Bytes;
use hostler_cache::any_tag;
use hostler_wire::{Name, ResponseHead, Whole, hex};
use sha1::{Digest as _, Sha1};

use crate::LookupRequest;

/// A response with its tag.
pub struct Tagged {
    /// The head without the tag.
    pub head: ResponseHead,
    /// A strong tag, with its quotes.
    pub tag: String,
    /// The whole body.
    pub body: Bytes,
}

/// The tag of a body. Equal bytes have equal tags at every Hostler.
pub fn of(body: &[u8]) -> String {
    format!("\"{}\"", hex(&Sha1::digest(body)[..10]))
}

/// The response, or a 304 if the client has it already.
pub fn tagged(request: &LookupRequest<'_>, answer: Tagged) -> Whole {
    let Tagged { mut head, tag, body } = answer;
    head.fields.add(b"ETag", tag.as_bytes());
    if !is_known(request, &tag) {
        return Whole::new(head, body);
    }
    let mut unchanged = ResponseHead::with_status(304);
    // Fields that describe the body are left out (RFC 9110 section 15.4.5).
    for (field, name, value) in head.fields.iter() {
        if field.known != Name::ContentType {
            unchanged.fields.add(name, value);
        }
    }
    Whole::new(unchanged, Bytes::new())
}

/// Compares with `If-None-Match`. The comparison is the weak one, because a response that was compressed on its way has a
/// weak tag.
pub fn is_known(request: &LookupRequest<'_>, tag: &str) -> bool {
    let mut lines = request.head.fields.all(Name::IfNoneMatch);
    lines.any(|list| any_tag(list, |known, _| known == tag.as_bytes()))
}
