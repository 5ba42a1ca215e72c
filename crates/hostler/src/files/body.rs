//! The bytes of a file on their way, read on blocking threads. Knows no HTTP.

use std::fs::File;
use std::future::Future;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::task::{JoinHandle, spawn_blocking};

use crate::exchange::BodySource;

/// What is read at a time: large enough that the way to another thread and back does not count.
const PIECE: u64 = 128 * 1024;

/// A part of a file. Its length has been promised: a file that has become shorter breaks it off.
pub(super) struct FileBody {
    file: Arc<File>,
    /// Where the next piece begins.
    at: u64,
    /// What is still to be read.
    left: u64,
    /// Read, and taken up to here.
    piece: Vec<u8>,
    taken: usize,
    reading: Option<JoinHandle<io::Result<Vec<u8>>>>,
}

impl FileBody {
    /// So many bytes from there on; the first of them are read right here, which may block.
    pub fn begin(file: File, at: u64, length: u64) -> io::Result<Self> {
        let piece = read(&file, at, length)?;
        let (at, left) = (at + piece.len() as u64, length - piece.len() as u64);
        Ok(Self { file: Arc::new(file), at, left, piece, taken: 0, reading: None })
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { file, at, left, .. } = self;
        let reading = self.reading.get_or_insert_with(|| {
            let (file, at, left) = (file.clone(), *at, *left);
            spawn_blocking(move || read(&file, at, left))
        });
        let read = std::task::ready!(Pin::new(reading).poll(cx));
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
            std::task::ready!(self.poll_piece(cx))?;
        }
        let end = self.piece.len().min(self.taken + max);
        into.extend_from_slice(&self.piece[self.taken..end]);
        self.taken = end;
        Poll::Ready(Ok(self.left == 0 && self.taken == self.piece.len()))
    }
}

fn read(file: &File, at: u64, left: u64) -> io::Result<Vec<u8>> {
    let mut piece = vec![0; usize::try_from(left.min(PIECE)).map_err(io::Error::other)?];
    file.read_exact_at(&mut piece, at)?;
    Ok(piece)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    async fn all(mut body: FileBody, max: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while !poll_fn(|cx| body.poll_body(cx, &mut bytes, max)).await? {}
        Ok(bytes)
    }

    fn file(bytes: &[u8]) -> (tempfile::NamedTempFile, File) {
        let named = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(named.path(), bytes).unwrap();
        let file = File::open(named.path()).unwrap();
        (named, file)
    }

    #[tokio::test]
    async fn a_part_of_a_file_comes_whole_in_whatever_pieces() {
        let bytes: Vec<u8> = (0..400_000_u32).map(|n| n as u8).collect();
        for (range, max) in
            [(0..0, 10), (0..1, 10), (5..400_000, 65_536), (0..131_072, 7_000), (1..262_145, 1 << 30)]
        {
            let (_named, file) = file(&bytes);
            let body = FileBody::begin(file, range.start as u64, range.len() as u64).unwrap();
            assert!(all(body, max).await.unwrap() == bytes[range.clone()], "{range:?} by {max}");
        }
    }

    #[tokio::test]
    async fn a_file_that_has_become_shorter_is_an_error_and_never_a_short_body() {
        let (named, file) = file(&[1; 300_000]);
        let body = FileBody::begin(file, 0, 300_000).unwrap();
        std::fs::write(named.path(), [1; 200_000]).unwrap();
        assert_eq!(all(body, 65_536).await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
