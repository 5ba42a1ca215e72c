//! Answers every GET with the same small JSON, with as little work as possible. It stands for workers that cost nothing.
//!
//! `bench-upstream unix:/run/a.sock 127.0.0.1:9000 ...`: one thread serves all addresses. It supports no other method and
//! no request body, and answers those with 405, so that a bench that sends one fails.

use std::future::pending;

use bytes::{Buf, BytesMut};
use memchr::memmem::Finder;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};

/// As many header fields as Node with Express sends, and a body of about 200 bytes.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\n\
Content-Type: application/json; charset=utf-8\r\n\
Content-Length: 201\r\n\
Cache-Control: private, max-age=0\r\n\
ETag: W/\"c5-8mVnAXmWnKb0hVxqkC0nIPs3Jrk\"\r\n\
Date: Sat, 21 Nov 2026 12:00:00 GMT\r\n\
Connection: keep-alive\r\n\
\r\n\
{\"id\":48213,\"title\":\"Bright room near the old harbour\",\"price\":{\"amount\":84,\"currency\":\"EUR\"},\
\"rating\":4.87,\"reviews\":213,\"superhost\":true,\"amenities\":[\"wifi\",\"kitchen\",\"washer\",\"desk\"],\"city\":\"Ghent\"}";

const REFUSAL: &[u8] = b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    for address in std::env::args().skip(1) {
        match address.strip_prefix("unix:") {
            Some(path) => {
                let listener = UnixListener::bind(path)?;
                tokio::spawn(async move {
                    while let Ok((stream, _)) = listener.accept().await {
                        tokio::spawn(serve(stream));
                    }
                });
            }
            None => {
                let listener = TcpListener::bind(&address).await?;
                tokio::spawn(async move {
                    while let Ok((stream, _)) = listener.accept().await {
                        let _ = stream.set_nodelay(true);
                        tokio::spawn(serve(stream));
                    }
                });
            }
        }
    }
    pending().await
}

/// Serves one connection until the client closes it. All complete heads that have arrived are answered with one write.
async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> std::io::Result<()> {
    let end_of_head = Finder::new(b"\r\n\r\n");
    let mut input = BytesMut::with_capacity(16 * 1024);
    let mut output = Vec::with_capacity(ANSWER.len());
    loop {
        input.reserve(4 * 1024);
        if stream.read_buf(&mut input).await? == 0 {
            return Ok(());
        }
        while let Some(end) = end_of_head.find(&input) {
            if !input.starts_with(b"GET ") {
                output.extend_from_slice(REFUSAL);
                stream.write_all(&output).await?;
                return stream.shutdown().await;
            }
            input.advance(end + 4);
            output.extend_from_slice(ANSWER);
        }
        stream.write_all(&output).await?;
        output.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pipelined_heads_are_answered_in_one_go_and_the_length_is_true() {
        let (mut client, server) = tokio::io::duplex(64 * 1024);
        tokio::spawn(serve(server));
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\n").await.unwrap();
        client.write_all(b"Host: a\r\n\r\nPOST / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        let mut answers = Vec::new();
        client.read_to_end(&mut answers).await.unwrap();
        let expected = [ANSWER, ANSWER, REFUSAL].concat();
        assert_eq!(answers, expected);

        let head = memchr::memmem::find(ANSWER, b"\r\n\r\n").unwrap() + 4;
        assert_eq!(ANSWER.len() - head, 201);
    }
}
