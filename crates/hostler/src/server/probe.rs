//! The HTTP requests of the supervisor to a worker: health checks and warm-up. Knows no workers.

use std::path::Path;
use std::time::Duration;

use hostler_worker::{Probe, Probing, WorkerAddress};

use hostler_engine::proxy::ask;

pub(super) struct HttpProbe;

impl Probe for HttpProbe {
    fn get(&self, address: &WorkerAddress, path: &str, timeout: Duration) -> Probing {
        let (address, path) = (wire_address(address), path.to_owned());
        Box::pin(async move { ask(&address, &path, &[], timeout).await.map(|asked| asked.status) })
    }
}

/// Converts the address: the two libraries do not know each other.
pub(super) fn wire_address(address: &WorkerAddress) -> hostler_wire::Address {
    match address {
        WorkerAddress::Unix(path) => hostler_wire::Address::Unix(Path::to_owned(path)),
        WorkerAddress::Tcp(address) => hostler_wire::Address::Tcp(address.ip().to_string(), address.port()),
    }
}
