//! A body that is encoded while it arrives. Knows neither its source nor its receiver.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hostler_wire::turn;
use tokio::time::{Instant, Sleep, sleep};

use super::allowance::MemoryGrant;
use super::{Allowance, ClientEncoders, Coding, Encoder, EncoderEffort};

/// After this many bytes, the task yields to the other tasks of the thread.
const PIECE: usize = 16 * 1024;
/// A pause of the source longer than this sends what came before it. It is longer than the gap between the writes of one
/// page, and too short for a person to notice.
const PAUSE: Duration = Duration::from_millis(3);
/// A source without pauses may be slow. An encoder that has given nothing for so long gives what it holds back: zstd would collect 128 KiB.
const LONGEST: Duration = Duration::from_millis(50);

/// Why a body breaks off.
#[derive(Debug)]
pub enum StreamError<E> {
    /// Its source failed.
    Source(E),
    /// The encoder failed.
    Encoder(std::io::Error),
}

/// How a body arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// As bytes. The encoder may hold them back for a short time.
    Bytes,
    /// As events. Each event is sent at once.
    Events,
}

/// A body that is encoded as it comes.
pub struct EncodedStream {
    encoder: Encoder,
    grant: MemoryGrant,
    flow: Flow,
    plain: Vec<u8>,
    /// Bytes encoded since the task last yielded.
    run: usize,
    /// Runs while the source pauses. When it ends, held bytes are sent.
    pause: Option<Pin<Box<Sleep>>>,
    /// Since when the encoder takes bytes and gives none. None: it has just given some.
    silent_since: Option<Instant>,
}

impl EncodedStream {
    /// The beginning of a body, if there is memory and time for its encoder. With `client`, the body waits for this client.
    pub fn begin(
        coding: Coding,
        effort: EncoderEffort,
        flow: Flow,
        allowance: &Arc<Allowance>,
        client: Option<&ClientEncoders>,
    ) -> Option<Self> {
        let grant = allowance.grant(Encoder::memory(coding, effort), client)?;
        let encoder = Encoder::new(coding, effort);
        Some(Self { encoder, grant, flow, plain: Vec::new(), run: 0, pause: None, silent_since: None })
    }

    /// Polls the source and appends encoded bytes to `into`. Ready with `true` at the end of the body. Pending when the
    /// source is pending, and between pieces.
    pub fn poll<E>(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<u8>,
        mut source: impl FnMut(&mut Context<'_>, &mut Vec<u8>, usize) -> Poll<Result<bool, E>>,
    ) -> Poll<Result<bool, StreamError<E>>> {
        let before = into.len();
        while into.len() == before {
            if self.run >= PIECE {
                self.run = 0;
                turn::end(cx);
                return Poll::Pending;
            }
            self.plain.clear();
            let ended = match source(cx, &mut self.plain, PIECE) {
                Poll::Ready(Ok(ended)) => ended,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(StreamError::Source(error))),
                Poll::Pending => {
                    ready!(self.poll_pause(cx));
                    self.flush(into).map_err(StreamError::Encoder)?;
                    continue;
                }
            };
            self.pause = None;
            self.run += self.plain.len();
            self.encode(ended, into).map_err(StreamError::Encoder)?;
            if ended {
                return Poll::Ready(Ok(true));
            }
        }
        Poll::Ready(Ok(false))
    }

    /// Ready when the bytes that the encoder holds back should be sent.
    fn poll_pause(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.encoder.is_holding() {
            return Poll::Pending;
        }
        if self.flow == Flow::Bytes {
            let pause = self.pause.get_or_insert_with(|| Box::pin(sleep(PAUSE)));
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        Poll::Ready(())
    }

    fn encode(&mut self, ended: bool, into: &mut Vec<u8>) -> std::io::Result<()> {
        let (began, before) = (Instant::now(), into.len());
        self.encoder.encode(&self.plain, into)?;
        if ended {
            self.encoder.finish(into)?;
        } else if into.len() > before {
            self.silent_since = None;
        } else if began - *self.silent_since.get_or_insert(began) >= LONGEST {
            self.encoder.flush(into)?;
            self.silent_since = None;
        }
        self.grant.spent(began.elapsed(), self.plain.len(), into.len() - before);
        Ok(())
    }

    fn flush(&mut self, into: &mut Vec<u8>) -> std::io::Result<()> {
        let (began, before) = (Instant::now(), into.len());
        self.encoder.flush(into)?;
        self.silent_since = None;
        self.grant.spent(began.elapsed(), 0, into.len() - before);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
