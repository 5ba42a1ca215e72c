//! How many bytes TLS holds until its socket has room for them. Knows no HTTP.

use tokio_rustls::TlsStream;

use crate::stream::Stream;

impl Stream {
    /// Whether TLS has taken bytes that its socket has not accepted yet.
    pub fn holds_back(&self) -> bool {
        matches!(self, Self::Tls(stream) if stream.get_ref().1.wants_write())
    }

    /// How many bytes TLS has taken that its socket has not accepted yet. Other kinds hold none.
    pub fn held_back(&mut self) -> usize {
        let Self::Tls(stream) = self else { return 0 };
        // Each read has processed what has come, so this only looks.
        let looked = match &mut **stream {
            TlsStream::Client(stream) => stream.get_mut().1.process_new_packets(),
            TlsStream::Server(stream) => stream.get_mut().1.process_new_packets(),
        };
        looked.map_or(0, |state| state.tls_bytes_to_write())
    }
}
