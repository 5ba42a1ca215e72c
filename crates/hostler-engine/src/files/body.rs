//! The bytes of a file on their way to a client: cached bytes are read at once, others on blocking threads. Knows no heads.

use std::fs::File;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hostler_wire::FilePart;
use hostler_wire::turn::MOST_AT_ONCE;
use tokio::task::{JoinHandle, spawn};

use super::disk::on_blocking_thread;
use super::open::Blocking;
use super::shared::FileHandle;
use super::system::read_cached;
use crate::exchange::BodySource;

/// How much is read at a time: enough that the change of threads costs little in comparison.
const PIECE: u64 = 128 * 1024;
/// How much is read before the answer begins. No budget counts it, because nothing is known of the client yet.
const FIRST: u64 = 16 * 1024;
/// A part up to this length is read at once if it is in the page cache. No budget counts it: it takes no more memory than its request does.
const SHORT: u64 = 4 * 1024;
/// At least this many bytes are sent from the file. For fewer, a copy behind the head costs less than one more call of the kernel.
const LEAST_SENT: u64 = 32 * 1024;

/// A part of a file. Its length has been sent, so a file that has become shorter breaks the answer off.
pub(super) struct FileBody {
    file: FileHandle,
    /// The caller must not block: bytes in the page cache are read on this thread, others on a blocking thread.
    hurried: bool,
    /// Bytes in the page cache may be sent from the file (`sendfile`), without a copy into memory.
    is_sendable: bool,
    at: u64,
    /// Bytes that are still to be read.
    left: u64,
    /// Bytes that were read and not taken yet.
    piece: Vec<u8>,
    taken: usize,
    reading: Option<JoinHandle<io::Result<Vec<u8>>>>,
}

impl FileBody {
    /// A part of `length` bytes. A caller that may block reads the first bytes at once.
    pub fn begin(file: FileHandle, at: u64, length: u64, blocking: Blocking) -> io::Result<Self> {
        let hurried = blocking == Blocking::None;
        let piece = if hurried { Vec::new() } else { read(&file, at, length.min(FIRST))? };
        let read = piece.len() as u64;
        Ok(Self {
            file,
            hurried,
            is_sendable: hurried && length >= LEAST_SENT,
            at: at + read,
            left: length - read,
            piece,
            taken: 0,
            reading: None,
        })
    }

    /// Appends what is in the page cache. May append nothing.
    fn read_at_hand(&mut self, into: &mut Vec<u8>, max: usize) {
        let Some(file) = self.file.file() else { return };
        let before = into.len();
        let wanted = usize::try_from(self.left).map_or(max, |left| left.min(max));
        into.resize(before + wanted, 0);
        // Errors and a shortened file are found again by the read on a blocking thread.
        let read = read_cached(file, &mut into[before..], self.at).unwrap_or(0);
        into.truncate(before + read);
        self.at += read as u64;
        self.left -= read as u64;
    }

    /// Whether the byte at this position is in the page cache.
    fn is_at_hand(&self, at: u64) -> bool {
        self.file.file().is_some_and(|file| read_cached(file, &mut [0], at) == Ok(1))
    }

    /// Reads up to `max` bytes on a blocking thread.
    fn poll_piece(&mut self, cx: &mut Context<'_>, max: usize) -> Poll<io::Result<()>> {
        let Self { file, at, left, .. } = self;
        let reading = self.reading.get_or_insert_with(|| {
            let (file, at, left) = (file.clone(), *at, (*left).min(max as u64));
            spawn(on_blocking_thread(move || read(&file, at, left)))
        });
        let read = ready!(Pin::new(reading).poll(cx));
        self.reading = None;
        let piece = read.map_err(io::Error::other)??;
        self.at += piece.len() as u64;
        self.left -= piece.len() as u64;
        (self.piece, self.taken) = (piece, 0);
        Poll::Ready(Ok(()))
    }
}

impl BodySource for FileBody {
    fn poll_body(&mut self, cx: &mut Context<'_>, into: &mut Vec<u8>, max: usize) -> Poll<io::Result<bool>> {
        if self.taken == self.piece.len() && self.left > 0 {
            if self.hurried && self.reading.is_none() {
                let before = into.len();
                self.read_at_hand(into, max);
                if into.len() > before {
                    return Poll::Ready(Ok(self.left == 0));
                }
            }
            ready!(self.poll_piece(cx, max))?;
        }
        let end = self.piece.len().min(self.taken + max);
        into.extend_from_slice(&self.piece[self.taken..end]);
        self.taken = end;
        Poll::Ready(Ok(self.left == 0 && self.taken == self.piece.len()))
    }

    /// The kernel reads ahead in windows without holes, so the first and the last byte stand for those between. If memory is so short that the
    /// kernel has removed only these, this thread waits for the disk once.
    fn file_at_hand(&mut self) -> Option<FilePart<'_>> {
        let is_read = self.taken < self.piece.len() || self.reading.is_some();
        if !self.is_sendable || is_read || self.left == 0 {
            return None;
        }
        let length = self.left.min(MOST_AT_ONCE as u64);
        let is_at_hand = self.is_at_hand(self.at) && self.is_at_hand(self.at + length - 1);
        let file = self.file.file().filter(|_| is_at_hand)?;
        Some(FilePart { file, at: self.at, length })
    }

    fn sent_from_file(&mut self, bytes: Option<usize>) -> bool {
        match bytes {
            Some(bytes) => {
                self.at += bytes as u64;
                self.left -= bytes as u64;
            }
            None => self.is_sendable = false,
        }
        self.left == 0
    }
}

/// A part of `length` bytes, if it is short and in the page cache. Does not block.
pub(super) fn at_hand(file: &File, at: u64, length: u64) -> Option<Bytes> {
    if length == 0 {
        return Some(Bytes::new());
    }
    let mut bytes = vec![0; usize::try_from(length).ok().filter(|_| length <= SHORT)?];
    // Errors and a shortened file are found again by the read on a blocking thread.
    (read_cached(file, &mut bytes, at) == Ok(bytes.len())).then(|| bytes.into())
}

fn read(file: &FileHandle, at: u64, left: u64) -> io::Result<Vec<u8>> {
    let mut piece = vec![0; usize::try_from(left.min(PIECE)).map_err(io::Error::other)?];
    file.read_exact_at(&mut piece, at)?;
    Ok(piece)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::path::Path;
    use std::sync::Arc;

    use super::*;

    async fn all(mut body: FileBody, max: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while !poll_fn(|cx| body.poll_body(cx, &mut bytes, max)).await? {}
        Ok(bytes)
    }

    fn file(bytes: &[u8]) -> (tempfile::NamedTempFile, FileHandle) {
        let named = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(named.path(), bytes).unwrap();
        let file = File::open(named.path()).unwrap();
        let about = file.metadata().unwrap();
        let file =
            FileHandle::new(Arc::new(file), &about, Path::new("/"), named.path().into(), Blocking::None);
        (named, file)
    }

    #[tokio::test]
    async fn a_range_of_a_file_is_read_whole_in_pieces_of_any_size() {
        let bytes: Vec<u8> = (0..400_000_u32).map(|n| n as u8).collect();
        for (range, max) in
            [(0..0, 10), (0..1, 10), (5..400_000, 65_536), (0..131_072, 7_000), (1..262_145, 1 << 30)]
        {
            for blocking in [Blocking::None, Blocking::Any] {
                let (_named, file) = file(&bytes);
                let body = FileBody::begin(file, range.start as u64, range.len() as u64, blocking).unwrap();
                assert!(
                    all(body, max).await.unwrap() == bytes[range.clone()],
                    "{range:?} by {max}, {blocking:?}"
                );
            }
        }
    }

    #[test]
    fn only_a_short_part_in_the_page_cache_is_at_hand() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let bytes: Vec<u8> = (0..10_000_u32).map(|n| n as u8).collect();
        std::fs::write(named.path(), &bytes).unwrap();
        let file = File::open(named.path()).unwrap();
        // It has just been written, so it is in the page cache; or else the kernel says that it is not.
        if let Some(part) = at_hand(&file, 5, SHORT) {
            assert!(part == bytes[5..][..SHORT as usize]);
        }
        assert_eq!(at_hand(&file, 0, SHORT + 1), None);
        assert_eq!(at_hand(&file, 10_000 - SHORT + 1, SHORT), None, "the file ends before");
        assert_eq!(at_hand(&file, 0, 0), Some(Bytes::new()));
    }

    #[tokio::test]
    async fn a_file_that_has_become_shorter_is_an_error_and_never_a_short_body() {
        for blocking in [Blocking::None, Blocking::Any] {
            let (named, file) = file(&[1; 300_000]);
            let body = FileBody::begin(file, 0, 300_000, blocking).unwrap();
            std::fs::write(named.path(), [1; 200_000]).unwrap();
            assert_eq!(all(body, 65_536).await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        }
    }
}
