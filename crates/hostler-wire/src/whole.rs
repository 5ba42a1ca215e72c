//! A response in memory. Knows neither its source nor its reader.

use std::sync::Arc;

use bytes::Bytes;

use crate::head::ResponseHead;

/// A head and its whole body. A clone shares both and copies neither.
#[derive(Debug, Clone)]
pub struct Whole {
    /// The head, without the fields that frame the message.
    pub head: Arc<ResponseHead>,
    /// The body.
    pub body: Bytes,
}

impl Whole {
    /// A new response.
    pub fn new(head: ResponseHead, body: impl Into<Bytes>) -> Self {
        Self { head: Arc::new(head), body: body.into() }
    }
}
