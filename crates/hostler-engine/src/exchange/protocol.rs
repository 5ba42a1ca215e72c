//! What a client's connection speaks, and how it is protected. Knows no requests.

/// How a client's connection is protected. Its text is the value of `X-Forwarded-Proto`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scheme {
    #[default]
    Http,
    Https,
}

impl Scheme {
    /// As in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// The protocol of a client's connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0 or HTTP/1.1, as the head says.
    #[default]
    Http1,
    Http2,
}
