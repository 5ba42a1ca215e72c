//! Reads a long body straight into its place while its bytes come fast. Knows no heads and sets no deadlines.
//!
//! [`read_some`] reads into the thread's buffer, and the bytes are copied from there. That is right for short and slow
//! bodies: no connection holds room for bytes that have not come. A fast body is spared the copy.

use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::BufMut;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::body::BodyReader;
use crate::chunked::ChunkedError;
use crate::stream::read_some;

/// A read of this many bytes shows that the body comes fast. The next one gets room for [`MOST`].
const FAST: usize = 16 * 1024;
/// The most bytes of one read.
const MOST: usize = 64 * 1024;

/// Whether the body of a connection comes fast.
#[derive(Debug, Default)]
pub struct Bulk {
    is_fast: bool,
}

impl Bulk {
    /// Reads once, at most `max` bytes, and appends the bytes of the body to `into`. Bytes behind the body go to `rest`. Ready with the number
    /// of bytes that were read, 0 at the end of the stream. The inner error: the body breaks the chunked coding.
    pub fn poll_read<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        cx: &mut Context<'_>,
        body: &mut BodyReader,
        (into, rest): (&mut Vec<u8>, &mut Vec<u8>),
        max: usize,
    ) -> Poll<io::Result<Result<usize, ChunkedError>>> {
        let read = match body {
            BodyReader::Length(left) if self.is_fast && *left >= FAST as u64 => {
                let room = max.min(MOST).min(usize::try_from(*left).unwrap_or(MOST));
                into.reserve(room);
                let bytes = ready!(pin!(stream.read_buf(&mut into.limit(room))).poll(cx))?;
                *left -= bytes as u64;
                Ok(bytes)
            }
            _ => ready!(read_some(stream, cx, max, |bytes| {
                let used = body.take(bytes, into)?;
                rest.extend_from_slice(&bytes[used..]);
                Ok(bytes.len())
            }))?,
        };
        self.is_fast = read.as_ref().is_ok_and(|bytes| *bytes >= FAST);
        Poll::Ready(Ok(read))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn a_body_is_read_whole_and_not_a_byte_more_however_fast_it_comes() {
        for pieces in [vec![100_000; 30], vec![1000; 300], vec![200_000, 10, 20_000, 5, 90_000, 1]] {
            let all: usize = pieces.iter().sum();
            let bytes: Vec<u8> = (0..all + 100).map(|n| n as u8).collect();
            let (mut from, mut to) = duplex(1 << 20);
            let sent = bytes.clone();
            let writing = tokio::spawn(async move {
                let mut at = 0;
                for piece in pieces {
                    to.write_all(&sent[at..at + piece]).await.unwrap();
                    at += piece;
                    tokio::task::yield_now().await;
                }
                to.write_all(&sent[at..]).await.unwrap();
            });
            let mut body = BodyReader::Length(all as u64);
            let (mut bulk, mut into, mut rest) = (Bulk::default(), Vec::new(), Vec::new());
            while !body.has_ended() {
                let places = (&mut into, &mut rest);
                poll_fn(|cx| bulk.poll_read(&mut from, cx, &mut body, (places.0, places.1), usize::MAX))
                    .await
                    .unwrap()
                    .unwrap();
            }
            writing.await.unwrap();
            from.read_to_end(&mut rest).await.unwrap();
            assert!(into == bytes[..all] && rest == bytes[all..]);
        }
    }

    #[tokio::test]
    async fn room_is_held_only_for_a_body_that_comes_fast() {
        for (first, room) in [(FAST, MOST), (FAST - 1, 0)] {
            let (mut from, mut to) = duplex(1 << 20);
            to.write_all(&vec![7; first]).await.unwrap();
            let (mut bulk, mut body) = (Bulk::default(), BodyReader::Length(1 << 20));
            let (mut into, mut rest) = (Vec::new(), Vec::new());
            for is_ready in [true, false] {
                into = Vec::new();
                let mut cx = Context::from_waker(std::task::Waker::noop());
                let read = bulk.poll_read(&mut from, &mut cx, &mut body, (&mut into, &mut rest), usize::MAX);
                assert_eq!(read.is_ready(), is_ready);
            }
            assert_eq!((into.len(), into.capacity()), (0, room));
        }
    }
}
