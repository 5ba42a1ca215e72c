//! The certificates: read from files, and given to the TLS listeners. Knows no handshakes.

use std::sync::Arc;

use hostler_config as config;
use hostler_config::tls::{
    Certificate, CertificateFiles, Certificates, FileError, HandshakeSettings, Handshaking, LoadError,
    Terminator,
};
use jiff::Timestamp;

use super::file_stamp::{FileStamp, Read, file_stamp};
use super::runtime;

pub(super) struct TlsFiles {
    pub terminator: Arc<Terminator>,
    /// The port of the first TLS listener.
    pub port: u16,
    pub read: Read,
}

/// What one read of all files has given, and what is not used yet.
pub(super) struct Fresh {
    written: config::Tls,
    /// Each of the written certificates, or why it cannot be used.
    each: Vec<Result<Certificate, FileError>>,
    stamps: Vec<FileStamp>,
}

impl Fresh {
    /// Blocks.
    fn read(written: config::Tls) -> Self {
        // Taken before the read, so that a later change of a file is noticed.
        let stamps = stamps(&written.certificates);
        let each = written.certificates.iter().map(Certificate::load);
        let each = each.map(|one| one.map_err(LoadError::into_inner)).collect();
        Self { written, each, stamps }
    }

    /// Why some certificates cannot be used.
    pub fn errors(&self) -> Vec<String> {
        self.each.iter().filter_map(|one| one.as_ref().err()).map(ToString::to_string).collect()
    }

    /// Fails if a certificate cannot be used.
    pub fn whole(self) -> Result<Self, String> {
        let errors = self.errors();
        if errors.is_empty() { Ok(self) } else { Err(errors.join("\n")) }
    }
}

impl TlsFiles {
    /// Reads the certificates for the first time. `port` is that of the first TLS listener.
    pub fn open(written: &config::Tls, port: u16) -> Result<Self, String> {
        let terminator = Terminator::new().map_err(|error| error.to_string())?;
        let tls = Self { terminator: Arc::new(terminator), port, read: Read::default() };
        tls.show(Fresh::read(written.clone()).whole()?);
        Ok(tls)
    }

    /// How handshakes are made. `before`: how they are made until now.
    pub fn handshaking(
        &self,
        written: &config::Tls,
        http2: bool,
        before: Option<&Handshaking>,
    ) -> Result<Arc<Handshaking>, String> {
        let handshake = HandshakeSettings {
            min_version: written.min_version,
            http2,
            clients: written.client_certificates.clone(),
        };
        self.terminator.on(&handshake, before).map(Arc::new).map_err(|error| error.to_string())
    }

    /// Uses these certificates for new handshakes. In place of one that cannot be used, the one that was read before stays. True if the files
    /// have changed.
    pub fn show(&self, Fresh { written, each, stamps }: Fresh) -> bool {
        let before = self.terminator.shown();
        let known = |files: &CertificateFiles| before.iter().find(|one| one.path == files.cert).cloned();
        let each = each.into_iter().zip(&written.certificates);
        let all = each.filter_map(|(one, files)| one.ok().or_else(|| known(files))).collect();
        self.terminator.show(Certificates::new(all, written.strict_sni));
        self.read.note(&stamps)
    }

    /// A line for each certificate.
    pub fn describe(&self) -> Vec<String> {
        let describe = |certificate: &Certificate| {
            let names = certificate.names.join(", ");
            let until =
                certificate.valid.map_or(String::new(), |valid| format!(", valid until {}", valid.until));
            format!("tls: {} for {names}{until}", certificate.path.display())
        };
        self.terminator.shown().iter().map(describe).collect()
    }

    /// What is wrong with certificates that are used all the same.
    pub fn doubts(&self) -> Vec<String> {
        let (shown, now) = (self.terminator.shown(), Timestamp::now());
        let doubts = shown.iter().flat_map(|certificate| certificate.doubts(now));
        doubts.map(|doubt| format!("tls: {doubt}")).collect()
    }
}

/// Reads all certificates on a blocking thread.
pub(super) async fn read_again(written: &config::Tls) -> Result<Fresh, String> {
    let written = written.clone();
    runtime::read(move || Fresh::read(written)).await
}

/// The stamps of all certificates and keys.
pub(super) fn stamps(files: &[CertificateFiles]) -> Vec<FileStamp> {
    files.iter().flat_map(|files| [file_stamp(&files.cert), file_stamp(&files.key)]).collect()
}
