//! One kept-alive connection with at most one request at a time. Knows HTTP/1.1 responses with `Content-Length`, not when
//! requests are sent.

use std::io::{ErrorKind, Read, Result, Write};
use std::net::SocketAddr;

use memchr::{memchr_iter, memmem};
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

pub struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
}

impl Connection {
    pub fn open(address: SocketAddr, registry: &Registry, token: Token) -> Result<Self> {
        // Connects before polling begins, so that the first requests do not wait for it.
        let stream = std::net::TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        registry.register(&mut stream, token, Interest::READABLE)?;
        Ok(Self { stream, input: Vec::with_capacity(4096) })
    }

    pub fn ask(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request)
    }

    /// The status of the response, if it is complete. Reads once per event; later bytes cause a new event.
    pub fn answer(&mut self) -> Result<Option<u16>> {
        let mut chunk = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.input.extend_from_slice(&chunk[..count]);
                    if count < chunk.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let status = whole(&self.input)?;
        if status.is_some() {
            self.input.clear();
        }
        Ok(status)
    }
}

/// The status of a response that is complete with its body.
fn whole(input: &[u8]) -> Result<Option<u16>> {
    let Some(end) = memmem::find(input, b"\r\n\r\n") else { return Ok(None) };
    let head = &input[..end + 2];
    if input.len() < end + 4 + length(head).ok_or(ErrorKind::InvalidData)? {
        return Ok(None);
    }
    Ok(Some(number(head.get(9..12).unwrap_or_default()).ok_or(ErrorKind::InvalidData)? as u16))
}

/// Makes no copy in lower case: at tens of thousands per second, this would be most of the work.
fn length(head: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"content-length:";
    let mut from = 0;
    for end in memchr_iter(b'\n', head) {
        let line = &head[from..end];
        from = end + 1;
        if line.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME)) {
            return number(line[NAME.len()..].trim_ascii());
        }
    }
    None
}

fn number(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_complete_with_the_last_byte_of_its_body() {
        let answer = b"HTTP/1.1 404 Not Found\r\nServer: x\r\ncOntent-Length:  5 \r\nDate: x\r\n\r\nhello";
        for end in 0..answer.len() {
            assert_eq!(whole(&answer[..end]).unwrap(), None, "{end} bytes of {}", answer.len());
        }
        assert_eq!(whole(answer).unwrap(), Some(404));
    }

    #[test]
    fn an_answer_without_a_length_is_an_error() {
        assert!(whole(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").is_err());
    }
}
