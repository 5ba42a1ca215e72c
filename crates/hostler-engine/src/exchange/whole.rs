//! The body of an answer in memory, read in pieces where it is encoded. Knows no client.

use std::task::{Context, Poll};

use bytes::Bytes;

use super::BodySource;

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
