//! Which fields are allowed in a trailer section (RFC 9110 section 6.5.1). Knows no values.

use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::field::Fields;

/// Fields that frame or route a message, name its sender, or control how it is read, cached or answered. Many recipients
/// merge trailers into the head, and would take such a trailer for a field of the head.
const OF_HEADS: &[&str] = &[
    "age",
    "allow",
    "alt-svc",
    "authorization",
    "cache-control",
    "cache-status",
    "cdn-cache-control",
    "cf-connecting-ip",
    "clear-site-data",
    "client-ip",
    "connection",
    "cookie",
    "cookie2",
    "date",
    "expect",
    "expires",
    "fastly-client-ip",
    "forwarded",
    "from",
    "host",
    "http2-settings",
    "idempotency-key",
    "keep-alive",
    "last-modified",
    "location",
    "max-forwards",
    "origin",
    "pragma",
    "priority",
    "range",
    "referer",
    "refresh",
    "retry-after",
    "set-cookie",
    "set-cookie2",
    "strict-transport-security",
    "te",
    "trailer",
    "transfer-encoding",
    "true-client-ip",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "x-client-ip",
    "x-frame-options",
    "x-http-method-override",
    "x-method-override",
    "x-powered-by",
    "x-real-ip",
    "x-request-id",
];

/// The beginnings of such names.
const OF_HEADS_BEGIN: &[&str] = &[
    "accept",
    "access-control-",
    "client-cert",
    "content-",
    "cross-origin-",
    "hostler-",
    "if-",
    "proxy-",
    "sec-",
    "ssl-client-",
    "x-cf-",
    "x-client-cert",
    "x-forwarded-",
    "x-geo-",
    "x-original-",
    "x-rewrite-",
    "x-ssl-",
    "x-vcap-",
];

/// Whether a field is allowed after a body. An underscore counts as a hyphen, because many apps treat them alike.
/// `Content-Digest` is allowed (RFC 9530 section 6.2), and so is its forerunner `Content-MD5`, the trailer of the example in Node's documentation.
pub fn may_trail(name: &[u8]) -> bool {
    let plain: Vec<u8> =
        name.iter().map(|byte| if *byte == b'_' { b'-' } else { byte.to_ascii_lowercase() }).collect();
    let is_of_heads = OF_HEADS.iter().any(|other| other.as_bytes() == plain)
        || OF_HEADS_BEGIN.iter().any(|beginning| plain.starts_with(beginning.as_bytes()));
    let is_digest = matches!(&plain[..], b"content-digest" | b"content-md5");
    !plain.is_empty() && plain[0] != b':' && (!is_of_heads || is_digest)
}

impl Fields {
    /// The fields that are allowed after a body. `None` if none is left.
    pub fn trailing(&self, is_let_through: impl Fn(&[u8]) -> bool) -> Option<Self> {
        let mut left = self.clone();
        left.remove(|name| !may_trail(name) || !is_let_through(name));
        (!left.is_empty()).then_some(left)
    }

    /// These trailers for HTTP/2. Fields that are not allowed after a body are left out.
    pub fn to_http2_trailers(&self) -> HeaderMap {
        let mut trailers = HeaderMap::with_capacity(self.len());
        for (_, name, value) in self.iter().filter(|(_, name, _)| may_trail(name)) {
            // A field that was parsed before is valid here too.
            if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
                trailers.append(name, value);
            }
        }
        trailers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_allowed_only_in_a_head_is_no_trailer() {
        for name in [
            "X-Forwarded-For",
            "x_forwarded_for",
            "Authorization",
            "Cookie",
            "Set-Cookie",
            "Content-Type",
            "CONTENT_LENGTH",
            "Content-Security-Policy",
            "Host",
            "Transfer-Encoding",
            "If-Match",
            "Client-Cert",
            "X-Request-Id",
            "Hostler-Refusal",
            "Cache-Status",
            "Connection",
            "Accept-Encoding",
            ":path",
            "",
        ] {
            assert!(!may_trail(name.as_bytes()), "{name}");
        }
        for name in [
            "Server-Timing",
            "grpc-status",
            "X-Checksum",
            "Content-Digest",
            "Content-MD5",
            "Repr-Digest",
            "ETag",
            "my_own",
        ] {
            assert!(may_trail(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn trailers_of_http_2_are_those_that_are_allowed() {
        let mut fields = Fields::default();
        for name in ["X-Sum", "Host", "X-Sum"] {
            fields.add(name.as_bytes(), b"1");
        }
        let trailers = fields.to_http2_trailers();
        assert_eq!(trailers.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["x-sum", "x-sum"]);
    }
}
