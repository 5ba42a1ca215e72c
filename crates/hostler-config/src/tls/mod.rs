//! What it takes to speak TLS to clients, without the speaking: certificates, which of them a client is shown, and the terms of
//! a handshake. Knows no connections and no configuration.

mod certificate;
mod pem;
mod shown;
mod terminator;

pub use certificate::{Certificate, CertificateFiles, Expiry, LoadError};
pub use pem::{FileError, certificates, private_key};
pub use shown::Certificates;
pub use terminator::{ClientCertificates, HandshakeSettings, Terminator, TlsVersion};
