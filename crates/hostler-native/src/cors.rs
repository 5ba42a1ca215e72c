//! Lets pages of allowed origins read responses (CORS in the Fetch standard). Knows no paths.

use std::sync::Arc;

use hostler_config::Origin;
use hostler_wire::Whole;

use crate::LookupRequest;

/// Adds the CORS fields, if the page's origin is one of these.
pub fn allow(origins: &[Origin], request: &LookupRequest<'_>, mut whole: Whole) -> Whole {
    if origins.is_empty() {
        return whole;
    }
    let head = Arc::make_mut(&mut whole.head);
    let fields = &request.head.fields;
    if origins.iter().any(Origin::is_any) {
        head.fields.add(b"Access-Control-Allow-Origin", b"*");
    } else {
        // Also if the origin is not allowed: a cache must not give the response of one origin to another.
        head.fields.add(b"Vary", b"Origin");
        let origin = fields.get("origin").unwrap_or_default();
        if !origins.iter().any(|allowed| allowed.0.as_bytes() == origin) {
            return whole;
        }
        head.fields.add(b"Access-Control-Allow-Origin", origin);
    }
    // Pages may read other fields, such as Content-Type and Last-Modified, without this.
    if head.fields.get("etag").is_some() {
        head.fields.add(b"Access-Control-Expose-Headers", b"ETag, Link");
    } else if matches!(head.status, 429 | 503) {
        // Refusals get it later.
        head.fields.add(b"Access-Control-Expose-Headers", b"Retry-After");
    }
    if request.head.method() == b"OPTIONS" && fields.get("access-control-request-method").is_some() {
        head.fields.add(b"Access-Control-Allow-Methods", b"GET, HEAD, POST");
        head.fields.add(b"Access-Control-Allow-Headers", b"Content-Type, If-None-Match");
        head.fields.add(b"Access-Control-Max-Age", b"86400");
    }
    whole
}
