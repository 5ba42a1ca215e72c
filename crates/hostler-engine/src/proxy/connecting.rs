//! What a connection that was made says about the member of a lease. Knows no requests.

use hostler_dispatch::Lease;

use super::Endpoint;

/// A connection to the member was made. Over TLS that shows little: in TLS 1.3 a member rejects our certificate only after it.
pub(super) fn note_connected(lease: &Lease<Endpoint>) {
    if lease.connector.tls.is_none() {
        lease.connected();
    }
}
