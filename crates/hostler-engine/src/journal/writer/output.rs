//! The file of the log, which gets whole lines, in pieces that a pipe takes at once. Knows no thread and no waiting lines.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;

use rustix::event::{PollFd, PollFlags, poll};

/// PIPE_BUF: a pipe takes this much at once. A predecessor and a successor write to the same pipe, and their lines must not mix.
const PIECE: usize = 4096;

/// The device and the inode of a file.
pub(super) type FileIdentity = Option<(u64, u64)>;

pub(super) fn identity_of(file: &File) -> FileIdentity {
    file.metadata().ok().map(|found| (found.dev(), found.ino()))
}

/// The file, and what has become of its last line.
pub(super) struct LogOutput {
    file: File,
    /// The last line has no line break, because its write failed in the middle.
    is_broken: bool,
    /// An error of this file was reported already.
    pub has_complained: bool,
}

/// A write that failed.
pub(super) struct Lost {
    pub lines: usize,
    pub error: io::Error,
}

impl LogOutput {
    /// Continues in this file. If it is the same file as before, a broken last line is still to be ended.
    pub fn after(before: Option<Self>, file: File) -> Self {
        let is_same = |before: &Self| identity_of(&before.file) == identity_of(&file);
        let is_broken = before.is_some_and(|before| before.is_broken && is_same(&before));
        Self { file, is_broken, has_complained: false }
    }

    /// Writes whole lines. Ends a broken line first. The error tells how many lines were lost.
    pub fn write(&mut self, piece: &[u8]) -> Result<(), Lost> {
        if self.is_broken && !piece.is_empty() {
            let ended = self.write_bytes(b"\n").map_err(|(error, _)| error);
            ended.map_err(|error| Lost { lines: count(piece), error })?;
            self.is_broken = false;
        }
        self.write_bytes(piece).map_err(|(error, rest)| {
            let written = &piece[..piece.len() - rest];
            self.is_broken = written.last().is_some_and(|last| *last != b'\n');
            Lost { lines: count(&piece[written.len()..]), error }
        })
    }

    /// The error comes with the number of bytes that were not written. A pipe may be non-blocking because another process has set that:
    /// then this thread waits for room.
    fn write_bytes(&self, mut bytes: &[u8]) -> Result<(), (io::Error, usize)> {
        let mut out = &self.file;
        while !bytes.is_empty() {
            match out.write(bytes) {
                Ok(0) => return Err((io::ErrorKind::WriteZero.into(), bytes.len())),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // If the wait fails, the next write reports the error.
                    let _ = poll(&mut [PollFd::new(out, PollFlags::OUT)], None);
                }
                Err(error) => return Err((error, bytes.len())),
            }
        }
        Ok(())
    }
}

/// Groups whole lines into writes of [`PIECE`] bytes at most. A longer line is written alone.
pub(super) fn pieces(mut lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let fits = &lines[..lines.len().min(PIECE)];
        let end = memchr::memrchr(b'\n', fits).or_else(|| memchr::memchr(b'\n', lines));
        let (piece, rest) = lines.split_at(end.map_or(lines.len(), |end| end + 1));
        lines = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// How many lines end here.
pub(super) fn count(lines: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', lines).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_written_whole_and_in_pieces_that_a_pipe_takes_at_once() {
        let line = |length: usize| [vec![b'x'; length - 1], vec![b'\n']].concat();
        let all = [line(4000), line(96), line(1), line(9000), line(4096), line(10)].concat();
        let lengths: Vec<_> = pieces(&all).map(<[u8]>::len).collect();
        assert_eq!(lengths, [4096, 1, 9000, 4096, 10]);
        assert_eq!(pieces(&all).collect::<Vec<_>>().concat(), all);
        assert_eq!(pieces(b"no end").collect::<Vec<_>>(), [b"no end"]);
    }
}
