//! TLS for clients, without connections: certificates, the choice among them, and the settings of handshakes. Knows no connections and no
//! configuration.

mod certificate;
mod pem;
mod shown;
mod terminator;

pub use certificate::{Certificate, CertificateFiles, Expiry, LoadError};
pub use pem::{FileError, certificates, private_key};
pub use shown::Certificates;
pub use terminator::{ClientCertificates, HandshakeSettings, Terminator, TlsVersion};
