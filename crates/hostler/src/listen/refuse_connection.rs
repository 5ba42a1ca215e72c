//! Refuses connections before their first request is read, and keeps a file descriptor for that. Knows no routes.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::AsRawFd;

use hostler_engine::gateway::Refusal;
use hostler_wire::{Stream, Version};
use tokio::net::TcpStream;

use super::client::Http1Client;
use super::head::{self, Framing, Keeping};
use super::idle::IdleConnection;
use super::refuse::{refusal_answer, refuse};
use super::settings::ListenerKind;
use super::shard::{ConnectionOrigin, Shard};

/// How many bytes are read of a request that is refused: a close with unread bytes would discard the answer.
const MOST_DISCARDED: usize = 16 * 1024;

/// A reserved file descriptor. It is closed when no other is left, so that a client can be accepted and refused.
pub(super) struct DescriptorReserve(Option<File>);

impl DescriptorReserve {
    pub fn new() -> Self {
        Self(Self::open())
    }

    fn open() -> Option<File> {
        File::open("/dev/null").ok()
    }

    /// Closes the reserved descriptor. False if there is none.
    pub fn spend(&mut self) -> bool {
        self.0.take().is_some()
    }

    /// Tries to open the reserved descriptor again.
    pub fn restore(&mut self) {
        if self.0.is_none() {
            self.0 = Self::open();
        }
    }
}

/// Whether the error means that no file descriptor is left.
pub(super) fn is_out_of_descriptors(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Whether a connection has one of the last descriptors, which are for workers, members and files. The system always gives the lowest free
/// number, so a high number means that all lower ones are in use.
pub(super) fn uses_last_descriptors(stream: &TcpStream, descriptor_limit: usize) -> bool {
    usize::try_from(stream.as_raw_fd()).is_ok_and(|number| number >= descriptor_limit)
}

impl Shard {
    /// Refuses a connection beyond `max_connections`. A TLS connection is closed without an answer, because an answer would need a
    /// handshake.
    pub(super) async fn refuse_beyond_limit(
        &self,
        stream: TcpStream,
        origin: &ConnectionOrigin,
        kind: ListenerKind,
    ) {
        self.connections.count_refused();
        if kind == ListenerKind::Plain {
            self.refuse(stream.into(), origin, &Refusal::TooManyConnections).await;
        }
    }

    /// Refuses a connection as [`Self::refuse_beyond_limit`], but at once, because file descriptors are scarce.
    pub(super) fn refuse_beyond_limit_at_once(
        &self,
        stream: TcpStream,
        origin: &ConnectionOrigin,
        kind: ListenerKind,
    ) {
        self.connections.count_refused();
        if kind == ListenerKind::Plain {
            self.refuse_at_once(stream, origin, &Refusal::TooManyConnections);
        }
    }

    /// Refuses a connection before its first request is read.
    pub(super) async fn refuse(&self, stream: Stream, origin: &ConnectionOrigin, refusal: &Refusal) {
        let idle = IdleConnection::new(stream, self.settings.load_full(), self);
        let mut client = Http1Client::new(idle, Vec::new(), self);
        // It waits for no request.
        client.silence.clear();
        let mut exchange = origin.exchange(&self.sweep);
        client.forbid_reuse();
        let delivered = refuse(&mut client, &mut exchange, refusal).await;
        self.settle(&mut exchange);
        // Twice as many connections as the limit are an attack: they are closed at once.
        if self.connections.open() <= self.settings.load().max_connections * 2 {
            client.end(delivered, false).await;
        }
    }

    /// Refuses a client and closes its connection at once: the descriptor is free when this returns.
    pub(super) fn refuse_at_once(&self, stream: TcpStream, origin: &ConnectionOrigin, refusal: &Refusal) {
        let mut exchange = origin.exchange(&self.sweep);
        let (answer, _) = refusal_answer(&mut exchange, refusal);
        if let (Some((answer, body)), Ok(mut stream)) = (answer, stream.into_std()) {
            let keeping = Keeping { keep: false, version: Version::Http11 };
            let mut out = Vec::new();
            head::write_answer(&mut out, &answer, &exchange, Framing::Length(body.len() as u64), keeping);
            out.extend_from_slice(&body);
            // The socket does not block. An error means that the client has left.
            let _ = stream.read(&mut [0; MOST_DISCARDED]);
            let _ = stream.write(&out);
            let _ = stream.shutdown(Shutdown::Write);
        }
        self.settle(&mut exchange);
    }
}
