//! Why a call to a member got no response, or only a part of it. Knows no connection.

use std::io;

use crate::body::FramingError;
use crate::chunked::ChunkedError;
use crate::head::HeadError;
use crate::scan::ScanError;

/// Why a call got no response, or only a part of it.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The connection failed.
    #[error("connection failed: {0}")]
    Io(#[from] io::Error),
    /// The member closed the connection before the response's head was complete.
    #[error("connection closed before a response")]
    Closed,
    /// The member closed the connection in the middle of the body.
    #[error("connection closed in the middle of the response's body")]
    Cut,
    /// The head is malformed.
    #[error("malformed response: {0}")]
    Head(#[from] HeadError),
    /// The length of the body is ambiguous.
    #[error("malformed response: {0}")]
    Framing(#[from] FramingError),
    /// The body breaks the chunked coding.
    #[error("malformed response: {0}")]
    Chunked(#[from] ChunkedError),
    /// A body after a head that has none (RFC 9110 section 6.4.1): that of a 204, a 304, or to HEAD.
    #[error("malformed response: a body, although its status or the method allows none")]
    Unframed,
    /// The member switched protocols without an `Upgrade` in the request, or to a protocol that the request did not
    /// offer.
    #[error("malformed response: 101 to a protocol that the request did not offer")]
    Switched,
    /// The member sent more interim responses than allowed.
    #[error("more than {count} interim responses (1xx), or more than {size} bytes of them")]
    Interim {
        /// The most interim responses.
        count: usize,
        /// The most bytes of all interim responses.
        size: usize,
    },
}

impl From<ScanError> for CallError {
    fn from(error: ScanError) -> Self {
        Self::Head(error.into())
    }
}
