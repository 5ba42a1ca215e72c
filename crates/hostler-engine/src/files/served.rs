//! The answer to a request for a file, or why there is none. Knows no file system.

use std::io;

use hostler_wire::ResponseHead;

use crate::exchange::BodySource;

/// An answer: a file or a part of it, 304, or a redirect.
pub struct ServedFile {
    /// The head, without fields that frame the message.
    pub head: ResponseHead,
    /// The length of the body. For HEAD: the length that the body would have.
    pub length: u64,
    pub body: Box<dyn BodySource>,
}

impl ServedFile {
    /// An answer without a body.
    pub(super) fn bare(head: ResponseHead) -> Self {
        Self { head, length: 0, body: Box::new(io::empty()) }
    }
}

/// Why there is no file to serve.
#[derive(Debug)]
pub enum NotServed {
    /// It does not exist or is not public. The text is for the operator.
    Missing(Option<String>),
    /// `If-Match` or `If-Unmodified-Since` is false.
    Precondition,
    /// The range begins after the end of the file, which has this length.
    Range(u64),
    /// It exists and cannot be read.
    Unreadable(io::Error),
}
