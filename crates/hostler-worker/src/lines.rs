//! Splits a stream of bytes into lines of bounded length. Knows neither messages nor logs.

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::task::coop::consume_budget;

const CHUNK: usize = 16 * 1024;
/// A line that begins with `{` may be this much longer than the limit, if it would be split. A piece of a JSON object is no JSON.
const OBJECT_FACTOR: usize = 16;

/// What to do with a line longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overlong {
    /// Split it into several lines.
    Split,
    /// Skip it.
    Skip,
}

/// Reads lines without their ends (`\n` or `\r\n`). Never holds more than the limit (for a line
/// that begins with `{`: sixteen times the limit) and one chunk.
pub(super) struct LineReader<R> {
    reader: R,
    limit: usize,
    overlong: Overlong,
    buffer: Vec<u8>,
    /// This much of the buffer was returned or skipped.
    taken: usize,
    /// This much of the rest is known to have no line end.
    searched: usize,
    /// Inside a line that is skipped.
    skipping: bool,
    /// The last line that was returned was a piece, and its line goes on.
    inside: bool,
    /// The last line that was returned was a whole one.
    whole: bool,
    ended: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub fn new(reader: R, limit: usize, overlong: Overlong) -> Self {
        Self {
            reader,
            limit,
            overlong,
            buffer: Vec::new(),
            taken: 0,
            searched: 0,
            skipping: false,
            inside: false,
            whole: true,
            ended: false,
        }
    }

    /// The next line. `None` at the end of the stream and after an error. A last line without an end counts. Dropping the
    /// future loses nothing: all that was read is in the buffer. Lets other tasks run between lines.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        self.next_or_begun(|_| ()).await
    }

    /// The same. `begun` gets what is there of a line whose end has not come, before each wait for more.
    pub async fn next_or_begun(&mut self, mut begun: impl FnMut(&[u8])) -> Option<Vec<u8>> {
        loop {
            // A chunk may have thousands of lines, and a worker that prints without end has always printed the next one.
            consume_budget().await;
            if let Some(line) = self.cut() {
                return Some(line);
            }
            if self.ended {
                return None;
            }
            begun(self.rest());
            self.make_room();
            let read = (&mut self.reader).take(CHUNK as u64).read_buf(&mut self.buffer).await;
            self.ended = read.unwrap_or(0) == 0;
        }
    }

    /// Whether the last line was whole, not a piece of an overlong line.
    pub fn was_whole(&self) -> bool {
        self.whole
    }

    /// Drops what was taken. Once for all lines of a chunk, because this moves the rest.
    fn make_room(&mut self) {
        if self.taken > 0 {
            self.buffer.drain(..self.taken);
            self.taken = 0;
            // An overlong line does not keep its memory.
            self.buffer.shrink_to(CHUNK);
        }
        self.buffer.reserve(CHUNK);
    }

    fn rest(&self) -> &[u8] {
        &self.buffer[self.taken..]
    }

    fn limit(&self) -> usize {
        let is_object = self.rest().first() == Some(&b'{') && !self.inside;
        if self.overlong == Overlong::Split && is_object { self.limit * OBJECT_FACTOR } else { self.limit }
    }

    fn cut(&mut self) -> Option<Vec<u8>> {
        while let Some(at) = memchr::memchr(b'\n', &self.rest()[self.searched..]) {
            let end = self.searched + at;
            // The end of an overlong line may lie beyond the limit, in a chunk that was read at once.
            if self.overlong == Overlong::Split && end > self.limit() {
                return Some(self.piece());
            }
            self.whole = !std::mem::take(&mut self.inside);
            let line = self.take(end, 1);
            if !std::mem::take(&mut self.skipping)
                && (self.overlong == Overlong::Split || line.len() <= self.limit)
            {
                return Some(line);
            }
        }
        let length = self.rest().len();
        self.searched = length;
        if length > self.limit() {
            match self.overlong {
                Overlong::Split => return Some(self.piece()),
                Overlong::Skip => {
                    self.skipping = true;
                    self.take(length, 0);
                }
            }
        }
        let is_last = self.ended && !self.rest().is_empty() && !self.skipping;
        self.whole = !self.inside;
        is_last.then(|| self.take(length, 0))
    }

    /// The beginning of an overlong line.
    fn piece(&mut self) -> Vec<u8> {
        (self.inside, self.whole) = (true, false);
        self.take(self.whole_characters(self.limit), 0)
    }

    /// Takes `length` bytes out of the buffer, and the line end of `end` bytes after them.
    fn take(&mut self, length: usize, end: usize) -> Vec<u8> {
        let text = &self.rest()[..length];
        let line = if end > 0 { text.strip_suffix(b"\r").unwrap_or(text) } else { text };
        let line = line.to_vec();
        self.taken += length + end;
        self.searched = 0;
        line
    }

    /// The largest length up to `limit` that does not split a UTF-8 character.
    fn whole_characters(&self, limit: usize) -> usize {
        match std::str::from_utf8(&self.rest()[..limit]) {
            Err(error) if error.error_len().is_none() => error.valid_up_to().max(1),
            _ => limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(input: &[u8], limit: usize, overlong: Overlong) -> Vec<String> {
        let mut lines = LineReader::new(input, limit, overlong);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await {
            all.push(String::from_utf8(line).unwrap());
        }
        all
    }

    #[tokio::test]
    async fn lines_come_without_their_ends_and_a_last_one_without_an_end_counts() {
        assert_eq!(read(b"one\r\n\ntwo\nthr", 9, Overlong::Skip).await, ["one", "", "two", "thr"]);
    }

    #[tokio::test]
    async fn a_chunk_of_very_many_lines_is_read_whole() {
        let mut input = b"\n".repeat(3 * CHUNK);
        input.extend_from_slice(b"last");
        for overlong in [Overlong::Skip, Overlong::Split] {
            let lines = read(&input, 9, overlong).await;
            assert_eq!(lines.len(), 3 * CHUNK + 1);
            assert!(lines[..3 * CHUNK].iter().all(String::is_empty));
            assert_eq!(lines[3 * CHUNK], "last");
        }
    }

    #[tokio::test]
    async fn an_overlong_line_does_not_keep_its_memory() {
        let input = format!("{{{}}}\nnext", "x".repeat(8 * CHUNK));
        let mut lines = LineReader::new(input.as_bytes(), CHUNK, Overlong::Split);
        assert_eq!(lines.next().await.unwrap().len(), 8 * CHUNK + 2);
        assert_eq!(lines.next().await.unwrap(), b"next");
        assert!(lines.buffer.capacity() <= 2 * CHUNK, "{}", lines.buffer.capacity());
    }

    #[tokio::test]
    async fn an_overlong_line_is_skipped_whole_and_the_next_one_is_read() {
        assert_eq!(read(b"123456789\nok\n", 4, Overlong::Skip).await, ["ok"]);
        let mut long = vec![b'x'; 3 * CHUNK];
        long.extend_from_slice(b"\nok\n");
        assert_eq!(read(&long, 100, Overlong::Skip).await, ["ok"]);
        assert_eq!(read(&vec![b'x'; 3 * CHUNK], 100, Overlong::Skip).await, [""; 0]);
    }

    #[tokio::test]
    async fn an_overlong_line_is_split_between_characters() {
        assert_eq!(read(b"123456789\nok", 4, Overlong::Split).await, ["1234", "5678", "9", "ok"]);
        assert_eq!(read("aé€é\n".as_bytes(), 4, Overlong::Split).await, ["aé", "€", "é"]);
        let long = vec![b'x'; 2 * CHUNK];
        let parts = read(&long, CHUNK, Overlong::Split).await;
        assert_eq!(parts.iter().map(String::len).collect::<Vec<_>>(), [CHUNK, CHUNK]);
    }

    #[tokio::test]
    async fn an_object_may_be_longer_and_no_piece_of_a_line_is_taken_for_a_whole_one() {
        let object = format!("{{{}}}", "x".repeat(60));
        let overlong = format!("{{{}\n{{ok}}", "y".repeat(64));
        let input = format!("{object}\n12345{{6}}\n{overlong}");
        let mut lines = LineReader::new(input.as_bytes(), 4, Overlong::Split);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await {
            all.push((String::from_utf8(line).unwrap(), lines.was_whole()));
        }
        assert_eq!(all[0], (object, true));
        assert_eq!(all[1..3], [("1234".to_owned(), false), ("5{6}".to_owned(), false)]);
        assert!(all[3..all.len() - 1].iter().all(|(line, whole)| line.len() <= 4 && !whole), "{all:?}");
        assert_eq!(all.last(), Some(&("{ok}".to_owned(), true)));
    }

    #[tokio::test]
    async fn a_partly_read_line_survives_a_dropped_future() {
        let (mut writer, reader) = tokio::io::duplex(64);
        let mut lines = LineReader::new(reader, 64, Overlong::Skip);
        tokio::io::AsyncWriteExt::write_all(&mut writer, b"half").await.unwrap();
        tokio::select! {
            biased;
            _ = lines.next() => panic!("no line is complete"),
            () = tokio::task::yield_now() => {}
        }
        tokio::io::AsyncWriteExt::write_all(&mut writer, b" and half\n").await.unwrap();
        assert_eq!(lines.next().await.unwrap(), b"half and half");
    }
}
