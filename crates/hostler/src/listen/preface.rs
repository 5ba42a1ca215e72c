//! Connections that begin with another protocol than HTTP/1.1: HTTP/2, or one that Hostler does not speak. Knows no requests.

use std::sync::Arc;

use hostler_wire::Stream;

use super::Settings;
use super::client::Http1Client;

impl Http1Client {
    /// Whether the connection begins with the preface of HTTP/2 (RFC 9113 section 3.4).
    pub fn has_prior_knowledge(&self) -> bool {
        let is_first = self.taken == 0 && self.written == 0;
        is_first && self.settings.http2.enabled && self.inbox.starts_with(b"PRI * HTTP/2.0\r\n\r\n")
    }

    /// Whether the connection begins with the preface of another protocol, whose client would not understand an answer (RFC 9113 section
    /// 3.4): three words as in a request line, but no slash, so neither a path nor a version of HTTP/1.
    pub fn speaks_another_protocol(&self) -> bool {
        let line = memchr::memchr(b'\r', &self.inbox).map_or(&[][..], |end| &self.inbox[..end]);
        let is_first = self.taken == 0 && self.written == 0 && self.settings.http2.enabled;
        is_first && line.split(|&byte| byte == b' ').count() == 3 && memchr::memchr(b'/', line).is_none()
    }

    /// The connection, its settings, and the bytes that were read from it.
    pub fn into_read(self) -> (Stream, Arc<Settings>, Vec<u8>) {
        (self.stream, self.settings, self.inbox)
    }
}
