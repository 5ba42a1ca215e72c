//! TLS for clients, without connections: certificates, the choice among them, and the settings of handshakes. Knows no connections and no
//! configuration.

mod certificate;
mod chain;
mod pem;
mod shown;
mod terminator;
mod validity;

pub use certificate::{Certificate, CertificateFiles, LoadError};
pub use pem::{FileError, certificates, private_key};
pub use shown::Certificates;
pub use terminator::{ClientCertificates, HandshakeSettings, Terminator, TlsVersion};
pub use validity::Expiry;
