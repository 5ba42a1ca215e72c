//! A client that speaks HTTP/2 frame by frame and can break every rule. Knows nothing of Hostler, and of responses only
//! their frames.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::eventually::within;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// One frame (RFC 9113 section 4.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The type.
    pub kind: u8,
    /// The flags.
    pub flags: u8,
    /// The stream. 0 is the connection.
    pub stream: u32,
    /// The payload.
    pub payload: Vec<u8>,
}

#[expect(missing_docs, reason = "each is the frame's name in RFC 9113")]
impl Frame {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

impl Frame {
    /// Ends the stream (DATA, HEADERS).
    pub const END_STREAM: u8 = 1;
    /// Ends the head (HEADERS, CONTINUATION).
    pub const END_HEADERS: u8 = 4;

    /// A frame with any content.
    pub fn new(kind: u8, flags: u8, stream: u32, payload: impl AsRef<[u8]>) -> Self {
        Self { kind, flags, stream, payload: payload.as_ref().to_vec() }
    }

    /// The head of a request without a body.
    pub fn request(stream: u32, fields: &[(&str, &str)]) -> Self {
        Self::request_of(stream, block(fields))
    }

    /// The same with encoded fields.
    pub fn request_of(stream: u32, block: impl AsRef<[u8]>) -> Self {
        Self::new(Self::HEADERS, Self::END_HEADERS | Self::END_STREAM, stream, block)
    }

    /// The head of a request with a body.
    pub fn head(stream: u32, fields: &[(&str, &str)]) -> Self {
        Self::new(Self::HEADERS, Self::END_HEADERS, stream, block(fields))
    }

    /// The last four bytes as a number: the error code of RST_STREAM and GOAWAY.
    pub fn code(&self) -> u32 {
        let start = if self.kind == Self::GOAWAY { 4 } else { 0 };
        u32::from_be_bytes(self.payload[start..start + 4].try_into().unwrap())
    }

    /// The frame as it is sent.
    pub fn bytes(&self) -> Vec<u8> {
        let length = (self.payload.len() as u32).to_be_bytes();
        let stream = self.stream.to_be_bytes();
        [&length[1..], &[self.kind, self.flags], &stream, &self.payload].concat()
    }
}

/// Fields as literals without indexing and without Huffman coding (RFC 7541 section 6.2.2).
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    literals(0, fields)
}

/// Fields as literals that enter the dynamic table, without Huffman coding (RFC 7541 section 6.2.1). The last one has index 62 then.
pub fn indexed_block(fields: &[(&str, &str)]) -> Vec<u8> {
    literals(0x40, fields)
}

fn literals(kind: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(kind);
        for text in [name, value] {
            write_length(&mut block, text.len());
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

fn write_length(block: &mut Vec<u8>, length: usize) {
    if length < 127 {
        block.push(length as u8);
        return;
    }
    block.push(127);
    let mut rest = length - 127;
    while rest >= 128 {
        block.push((rest % 128) as u8 | 128);
        rest /= 128;
    }
    block.push(rest as u8);
}

/// A connection.
pub struct FrameClient(TcpStream);

/// Connects, and sends the preface of HTTP/2.
pub async fn frame_client(address: SocketAddr) -> FrameClient {
    begun(within("a connection", TcpStream::connect(address)).await.unwrap(), "").await
}

/// The same with a small receive window in TCP and the widest windows in HTTP/2: only what is read can be sent.
pub async fn frame_client_that_reads_late(address: SocketAddr) -> FrameClient {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let stream = within("a connection", socket.connect(address)).await.unwrap();
    let mut client = begun(stream, [0, 4, 0x7f, 0xff, 0xff, 0xff]).await;
    client.send(&[Frame::new(Frame::WINDOW_UPDATE, 0, 0, [0x7f, 0, 0, 0])]).await;
    client
}

async fn begun(stream: TcpStream, settings: impl AsRef<[u8]>) -> FrameClient {
    stream.set_nodelay(true).unwrap();
    let mut client = FrameClient(stream);
    client.send_bytes(PREFACE).await;
    client.send(&[Frame::new(Frame::SETTINGS, 0, 0, settings)]).await;
    client
}

impl FrameClient {
    /// Sends frames with one write. If the server has closed the connection, the next read reports it.
    pub async fn send(&mut self, frames: &[Frame]) {
        self.send_bytes(&frames.iter().flat_map(Frame::bytes).collect::<Vec<_>>()).await;
    }

    /// Sends exact bytes.
    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        let _ = within("the server to take what is sent", self.0.write_all(bytes)).await;
    }

    /// Sends frames without waiting for a server that has stopped reading. Returns false if the system did not take all
    /// bytes.
    pub fn send_some(&mut self, frames: &[Frame]) -> bool {
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::bytes).collect();
        self.0.try_write(&bytes).is_ok_and(|taken| taken == bytes.len())
    }

    /// The next frame. `None` at the end of the connection, however it ends.
    pub async fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        within("a frame", self.0.read_exact(&mut head)).await.ok()?;
        let [high, middle, low, kind, flags, stream @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, high, middle, low]) as usize];
        within("a frame's payload", self.0.read_exact(&mut payload)).await.ok()?;
        Some(Frame { kind, flags, stream: u32::from_be_bytes(stream), payload })
    }

    /// The next frame of this type. Frames before it are skipped.
    ///
    /// # Panics
    /// If the connection ends first.
    pub async fn next_of(&mut self, kind: u8) -> Frame {
        loop {
            let frame = self.next().await.unwrap_or_else(|| panic!("no frame of type {kind}"));
            if frame.kind == kind {
                return frame;
            }
        }
    }
}
