//! Who a client is: the address of the socket, or what trusted proxies say; and what kind of address that is.

mod header;
mod hop;
mod kind;
mod own;
mod trust;

pub use header::AddressHeader;
pub use kind::{AddressKind, plain};
pub use own::OwnAddresses;
pub use trust::{AddressSource, ClientAddress, Peer, Trust};
