//! What becomes of clients for whom there is no descriptor left. Knows no requests.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::AsRawFd;

use hostler_engine::gateway::Refusal;
use hostler_wire::Version;
use tokio::net::TcpStream;

use super::head::{self, Framing, Keeping};
use super::{ConnectionOrigin, Shard, own};

/// What is read of a request that is not answered: closing over unread bytes destroys what was sent.
const GLANCE: usize = 16 * 1024;

/// A descriptor that is let go when the system has no other, so that a client can be accepted and told so.
pub(super) struct DescriptorReserve(Option<File>);

impl DescriptorReserve {
    pub fn new() -> Self {
        Self(Self::open())
    }

    fn open() -> Option<File> {
        File::open("/dev/null").ok()
    }

    /// Lets it go. False if there is none.
    pub fn spend(&mut self) -> bool {
        self.0.take().is_some()
    }

    /// Takes it back, or tries to.
    pub fn restore(&mut self) {
        if self.0.is_none() {
            self.0 = Self::open();
        }
    }
}

/// Whether the system has no descriptor for us.
pub(super) fn is_shortage(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Whether a connection has one of the last descriptors, which are for workers, members and files. The system gives the lowest number
/// that is free: that all below are taken needs no counting.
pub(super) fn is_beyond(stream: &TcpStream, ceiling: usize) -> bool {
    usize::try_from(stream.as_raw_fd()).is_ok_and(|number| number >= ceiling)
}

impl Shard {
    /// A clear word to a client, here and now, and the connection is closed: its descriptor is free when this returns.
    pub(super) fn refuse_at_once(&self, stream: TcpStream, origin: &ConnectionOrigin, refusal: &Refusal) {
        let mut exchange = origin.exchange(&self.sweep);
        let (answer, _) = own::refusal(&mut exchange, refusal);
        if let (Some((answer, body)), Ok(mut stream)) = (answer, stream.into_std()) {
            let keeping = Keeping { keep: false, version: Version::Http11 };
            let mut out = Vec::new();
            head::write_answer(&mut out, &answer, &exchange, Framing::Length(body.len() as u64), keeping);
            out.extend_from_slice(&body);
            // It does not block, and who is not there to read it has no need for it.
            let _ = stream.read(&mut [0; GLANCE]);
            let _ = stream.write(&out);
            let _ = stream.shutdown(Shutdown::Write);
        }
        self.settle(&mut exchange);
    }
}
