//! The HTTP requests of the supervisor to a worker: health checks and warm-up. Knows no workers.

use std::path::Path;
use std::time::Duration;

use hostler_worker::{Probe, Probing, WorkerAddress};
use tokio::time::Instant;

use hostler_engine::proxy::ask_status;

pub(super) struct HttpProbe;

/// The statuses by which an app sends its visitors from http to https, among other places.
const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];

/// How an app sees that its visitor has used https.
const BY_HTTPS: (&str, &str) = ("X-Forwarded-Proto", "https");

impl Probe for HttpProbe {
    fn get(&self, address: &WorkerAddress, path: &str, timeout: Duration) -> Probing {
        let (address, path) = (wire_address(address), path.to_owned());
        Box::pin(async move {
            let until = Instant::now() + timeout;
            let status = ask_status(&address, &path, &[], timeout).await?;
            if !REDIRECTS.contains(&status) {
                return Ok(status);
            }
            // Such an app (Ghost, force-ssl) shows its pages and its health only to visitors with https.
            let left = until.saturating_duration_since(Instant::now());
            ask_status(&address, &path, &[BY_HTTPS], left).await
        })
    }
}

/// Converts the address: the two libraries do not know each other.
pub(super) fn wire_address(address: &WorkerAddress) -> hostler_wire::Address {
    match address {
        WorkerAddress::Unix(path) => hostler_wire::Address::Unix(Path::to_owned(path)),
        WorkerAddress::Tcp(address) => hostler_wire::Address::Tcp(address.ip().to_string(), address.port()),
    }
}
