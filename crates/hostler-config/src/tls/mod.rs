//! TLS for clients, without connections: certificates, the choice among them, and the settings of handshakes. Knows no connections and no
//! configuration.

mod bound;
mod certificate;
mod chain;
mod handshaking;
mod itself;
mod pem;
mod rules;
mod shown;
mod terminator;
mod validity;

pub use certificate::{Certificate, CertificateFiles, LoadError};
pub(crate) use certificate::{is_beyond_library, key_for_servers};
pub use chain::identity_doubts;
pub use handshaking::Handshaking;
pub(crate) use itself::is_trusted_itself;
pub(crate) use pem::is_plain;
pub use pem::{FileError, certificates, private_key};
pub use rules::{ClientCertificates, HandshakeSettings, TlsVersion};
pub use shown::Certificates;
pub use terminator::Terminator;
pub use validity::Expiry;
