//! What an attempt to connect says about the member of a lease, also if it ends after its request. Knows no requests.

use hostler_dispatch::Lease;
use hostler_wire::Stream;

use super::ending::end_lease;
use super::{Endpoint, Failure, TlsFault};

/// A connection to the member was made. Over TLS that shows little: in TLS 1.3 a member rejects our certificate only after it.
pub(super) fn note_connected(lease: &Lease<Endpoint>) {
    if lease.connector.tls.is_none() {
        lease.connected();
    }
}

/// The request of this lease has no time left for its connection. The attempt goes on and keeps the slot: a member that is silent for
/// `connect_timeout` has failed, however little time its requests have.
pub(super) fn go_on(
    lease: Lease<Endpoint>,
    attempt: impl Future<Output = Result<Stream, Failure>> + Send + 'static,
) {
    tokio::spawn(async move {
        match attempt.await {
            // A member that does not offer HTTP/2 is there.
            Ok(_) | Err(Failure::Tls(TlsFault::NoHttp2, _)) => note_connected(&lease),
            Err(failure) => drop(end_lease((failure, Some(lease)))),
        }
    });
}
