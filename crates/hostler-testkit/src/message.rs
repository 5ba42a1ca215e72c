//! An independent, small and strict reader of HTTP/1.1 messages. It shares no code with the tested programs. Knows no
//! sockets.

/// A head as it came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageHead {
    /// The start line and the fields, with the final empty line.
    pub raw: Vec<u8>,
}

impl MessageHead {
    /// Takes a head from the front of `input`, if it is complete.
    pub(crate) fn take(input: &mut Vec<u8>) -> Option<Self> {
        let end = find(input, b"\r\n\r\n")? + 4;
        Some(Self { raw: input.drain(..end).collect() })
    }

    /// The head as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.raw).into_owned()
    }

    /// The first line.
    pub fn start_line(&self) -> String {
        self.text().split("\r\n").next().unwrap_or_default().to_owned()
    }

    /// The field lines as written.
    pub fn lines(&self) -> Vec<String> {
        self.text().split("\r\n").skip(1).filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// The values of all lines with this name.
    pub fn all(&self, name: &str) -> Vec<String> {
        let lines = self.lines();
        let fields = lines.iter().filter_map(|line| line.split_once(':'));
        fields
            .filter(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().to_owned())
            .collect()
    }

    /// The value of the only line with this name.
    ///
    /// # Panics
    /// If there are several lines.
    pub fn field(&self, name: &str) -> Option<String> {
        let mut all = self.all(name);
        assert!(all.len() < 2, "several {name} in\n{}", self.text());
        all.pop()
    }

    /// Splits the start line at its first two spaces.
    pub(crate) fn parts(&self) -> [String; 3] {
        let line = self.start_line();
        let mut parts = line.splitn(3, ' ').map(str::to_owned);
        std::array::from_fn(|_| parts.next().unwrap_or_default())
    }
}

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageFraming {
    Length(u64),
    Chunked,
    UntilClose,
}

impl MessageFraming {
    /// The framing that the fields give.
    ///
    /// # Panics
    /// If the fields contradict each other.
    pub fn of(head: &MessageHead) -> Option<Self> {
        let (length, coding) = (head.field("content-length"), head.field("transfer-encoding"));
        match (length, coding) {
            (Some(_), Some(_)) => panic!("both Content-Length and Transfer-Encoding in\n{}", head.text()),
            (Some(length), None) => Some(Self::Length(length.parse().expect("Content-Length is a number"))),
            (None, Some(coding)) => {
                assert_eq!(coding.to_ascii_lowercase(), "chunked");
                Some(Self::Chunked)
            }
            (None, None) => None,
        }
    }
}

/// Reads one body.
#[derive(Debug)]
pub(crate) struct MessageReader {
    framing: MessageFraming,
    /// How many bytes of the current chunk are still to come. `None` before its size line.
    chunk: Option<usize>,
    /// The sizes of the chunks so far.
    pub chunks: Vec<usize>,
    pub data: Vec<u8>,
    pub trailers: Vec<String>,
    pub ended: bool,
}

impl MessageReader {
    pub fn new(framing: MessageFraming) -> Self {
        let ended = framing == MessageFraming::Length(0);
        Self { framing, chunk: None, chunks: Vec::new(), data: Vec::new(), trailers: Vec::new(), ended }
    }

    /// Takes the bytes of the body from the front of `input`.
    pub fn feed(&mut self, input: &mut Vec<u8>) {
        match &mut self.framing {
            MessageFraming::UntilClose => self.data.append(input),
            MessageFraming::Length(left) => {
                let n = input.len().min(usize::try_from(*left).unwrap());
                self.data.extend(input.drain(..n));
                *left -= n as u64;
                self.ended = *left == 0;
            }
            MessageFraming::Chunked => while !self.ended && self.chunk_step(input) {},
        }
    }

    /// Decodes one piece. Returns false if more input is needed.
    fn chunk_step(&mut self, input: &mut Vec<u8>) -> bool {
        match self.chunk {
            None => {
                let Some(end) = find(input, b"\r\n") else { return false };
                let line: Vec<u8> = input.drain(..end + 2).collect();
                let digits = std::str::from_utf8(&line[..end]).unwrap();
                let size = usize::from_str_radix(digits, 16);
                self.chunk = Some(size.unwrap_or_else(|_| panic!("a chunk size of {digits:?}")));
                self.chunks.push(self.chunk.unwrap());
            }
            Some(0) => {
                let Some(end) = find(input, b"\r\n") else { return false };
                let line: Vec<u8> = input.drain(..end + 2).collect();
                match end {
                    0 => self.ended = true,
                    _ => self.trailers.push(String::from_utf8_lossy(&line[..end]).into_owned()),
                }
            }
            Some(size) => {
                if input.len() < size + 2 {
                    return false;
                }
                self.data.extend(input.drain(..size));
                assert_eq!(input.drain(..2).as_slice(), b"\r\n", "a chunk ends in CR LF");
                self.chunk = None;
            }
        }
        true
    }
}

/// A body in the chunked coding, with one chunk for each piece.
pub fn chunked<T: AsRef<[u8]>>(pieces: impl IntoIterator<Item = T>) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in pieces {
        let piece = piece.as_ref();
        out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        out.extend_from_slice(piece);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

/// A request with a body of known length.
pub fn request(line: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("{line} HTTP/1.1\r\nHost: site.test\r\n{fields}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

pub(crate) fn find(input: &[u8], what: &[u8]) -> Option<usize> {
    input.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_taken_to_its_last_byte_and_no_further() {
        let mut input = b"3;x\r\n".to_vec();
        let mut reader = MessageReader::new(MessageFraming::Chunked);
        assert!(std::panic::catch_unwind(move || reader.feed(&mut input)).is_err(), "no extensions are sent");

        let mut input = [&chunked(["abc", "de"])[..], b"next"].concat();
        let mut reader = MessageReader::new(MessageFraming::Chunked);
        reader.feed(&mut input);
        assert_eq!(
            (reader.data.as_slice(), input.as_slice(), reader.ended),
            (&b"abcde"[..], &b"next"[..], true)
        );
    }
}
