//! An answer that lies in memory. Knows neither who made it nor who gets it.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hostler_wire::ResponseHead;

use super::BodySource;

/// A head and all of its body, both shared with whoever keeps them: to answer with it copies neither.
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

/// The rest of it, bit by bit, where something becomes of it on its way.
impl BodySource for Bytes {
    fn poll_body(
        &mut self,
        _: &mut Context<'_>,
        into: &mut Vec<u8>,
        max: usize,
    ) -> Poll<std::io::Result<bool>> {
        let part = self.split_to(self.len().min(max));
        into.extend_from_slice(&part);
        Poll::Ready(Ok(self.is_empty()))
    }
}
