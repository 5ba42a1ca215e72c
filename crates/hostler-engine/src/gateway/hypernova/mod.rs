//! The fallback for a Hypernova batch: the client-side fallback markup of each job, from which the browser renders. Knows no pools and no
//! connections.

mod batch;
mod reply;

use std::borrow::Cow;
use std::io::{self, Read};

use flate2::read::{MultiGzDecoder, ZlibDecoder};
use hostler_wire::{Fields, Name};
use tokio::sync::Semaphore;

use super::refusal::Refusal;
use crate::exchange::{Body, Exchange};
use batch::Batch;
use reply::RenderFailure;

/// The largest batch in bytes after decompression; the limit of Hypernova itself. The answer may be eight times as large, and the client
/// may read it slowly.
const MAX_BATCH: u64 = 1_024_000;
/// A body up to this size is answered on the data-plane thread: that takes less time than to wake another thread.
const MAX_INLINE: usize = 32 * 1024;

/// How many large batches are answered at a time. Fallbacks are needed when the machine is already overloaded, so they must not take the
/// processor from the workers.
static LARGE_BATCHES: Semaphore = Semaphore::const_new(2);

/// How the body is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BatchCoding {
    Identity,
    Gzip,
    /// As in HTTP and Node: with the zlib header.
    Deflate,
}

/// The answer to a batch that no worker has rendered. None if the body is not a batch, or one that Hypernova would not take: then the
/// client gets the refusal.
pub(super) async fn stand_in(exchange: &mut Exchange, refusal: &Refusal, max_body: u64) -> Option<Vec<u8>> {
    let coding = coding_of_batch(exchange)?;
    let most = max_body.min(MAX_BATCH);
    let cause = RenderFailure::of(refusal, exchange.head.fields.first(Name::UserAgent));
    // Taken, not borrowed: nothing else needs the body, and the answer needs the memory.
    let body = std::mem::take(&mut exchange.body);
    let small =
        matches!(&body, Body::Memory(bytes) if bytes.len() <= MAX_INLINE) && coding == BatchCoding::Identity;
    // A file system that hangs must not keep the turn of other batches.
    let threads = if let Body::Spilled(file, _) = &body { Some(file.threads()) } else { None };
    let answer = move || answer(&body, coding, most, &cause);
    if small {
        return answer();
    }
    let _turn = LARGE_BATCHES.acquire().await.ok()?;
    match threads {
        Some(threads) => Box::pin(threads.run(move || Ok(answer()))).await.ok().flatten(),
        None => tokio::task::spawn_blocking(answer).await.ok().flatten(),
    }
}

fn answer(body: &Body, coding: BatchCoding, most: u64, cause: &RenderFailure) -> Option<Vec<u8>> {
    let bytes = whole(body, coding, most).ok()?;
    // As Node decodes: invalid UTF-8 becomes U+FFFD, and a byte order mark is dropped.
    let text = String::from_utf8_lossy(&bytes);
    let batch = Batch::parse(text.strip_prefix('\u{feff}').unwrap_or(&text)).ok()?;
    reply::write(&batch, cause).ok()
}

/// The encoding of the body, if Hypernova's body parser would take it for a batch.
fn coding_of_batch(exchange: &Exchange) -> Option<BatchCoding> {
    let fields = &exchange.head.fields;
    let is_json = fields.first(Name::ContentType).is_some_and(is_utf8_json);
    (exchange.head.method() == b"POST" && is_json).then(|| coding(fields)).flatten()
}

fn coding(fields: &Fields) -> Option<BatchCoding> {
    let mut codings = fields.all(Name::ContentEncoding);
    let Some(coding) = codings.next() else { return Some(BatchCoding::Identity) };
    // An empty field lists no coding (RFC 9110 section 5.6.1). Workers read such a batch.
    let known = [
        ("", BatchCoding::Identity),
        ("identity", BatchCoding::Identity),
        ("gzip", BatchCoding::Gzip),
        ("x-gzip", BatchCoding::Gzip),
        ("deflate", BatchCoding::Deflate),
    ];
    let (_, coding) = known.into_iter().find(|(name, _)| coding.eq_ignore_ascii_case(name.as_bytes()))?;
    codings.next().is_none().then_some(coding)
}

fn is_utf8_json(content_type: &[u8]) -> bool {
    let mut parts = content_type.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let is_json = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case(b"application/json"));
    let is_utf8 =
        |charset: &[u8]| [&b"utf-8"[..], b"utf8"].iter().any(|utf8| charset.eq_ignore_ascii_case(utf8));
    is_json && parts.find_map(charset).is_none_or(is_utf8)
}

/// The charset that a parameter names, as workers read it: with or without quotes and spaces.
fn charset(parameter: &[u8]) -> Option<&[u8]> {
    let at = parameter.iter().position(|&byte| byte == b'=')?;
    let (name, value) = (parameter[..at].trim_ascii(), parameter[at + 1..].trim_ascii());
    let value = value.strip_prefix(b"\"").unwrap_or(value);
    let value = value.strip_suffix(b"\"").unwrap_or(value);
    (name.eq_ignore_ascii_case(b"charset") && !value.is_empty()).then_some(value)
}

/// The decoded body. Fails if it is larger than `most`, however small the encoded one is.
fn whole(body: &Body, coding: BatchCoding, most: u64) -> io::Result<Cow<'_, [u8]>> {
    let packed = match body {
        Body::Memory(bytes) if bytes.len() as u64 <= most => Cow::Borrowed(&bytes[..]),
        Body::Spilled(file, size) if *size <= most => {
            let mut bytes = vec![0; usize::try_from(*size).map_err(io::Error::other)?];
            // Reads at an explicit offset: an abandoned call may still read the same file.
            file.read_at(&mut bytes, 0)?;
            Cow::Owned(bytes)
        }
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    match coding {
        BatchCoding::Identity => Ok(packed),
        BatchCoding::Gzip => inflate(MultiGzDecoder::new(&*packed), most),
        BatchCoding::Deflate => inflate(ZlibDecoder::new(&*packed), most),
    }
}

fn inflate(packed: impl Read, most: u64) -> io::Result<Cow<'static, [u8]>> {
    let mut bytes = Vec::new();
    packed.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 <= most {
        true => Ok(Cow::Owned(bytes)),
        false => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests;
