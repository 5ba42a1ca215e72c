//! The address of a client, from its socket or from trusted proxies, and the kind of that address. Knows no requests.

mod header;
mod hop;
mod kind;
mod own;
mod trust;

pub use header::AddressHeader;
pub use kind::{AddressKind, of_client, plain};
pub use own::OwnAddresses;
pub use trust::{AddressSource, ClientAddress, Peer, Trust};
