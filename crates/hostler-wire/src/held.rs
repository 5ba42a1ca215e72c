//! How many bytes TLS holds until its socket has room for them. Knows no HTTP.

use tokio_rustls::TlsStream;

use crate::stream::Stream;

impl Stream {
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
