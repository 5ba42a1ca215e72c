//! An answer that lies in memory. Knows neither its maker nor its reader.

use std::sync::Arc;

use bytes::Bytes;

use crate::head::ResponseHead;

/// A head and all of its body. Both are shared: a clone copies neither.
#[derive(Debug, Clone)]
pub struct Whole {
    /// Its head, without fields that frame the message.
    pub head: Arc<ResponseHead>,
    /// The body.
    pub body: Bytes,
}

impl Whole {
    /// An answer of its own.
    pub fn new(head: ResponseHead, body: impl Into<Bytes>) -> Self {
        Self { head: Arc::new(head), body: body.into() }
    }
}
