//! The certificates: read from files, and given to the TLS listeners. Knows no handshakes.

use std::sync::{Arc, Mutex, PoisonError};

use hostler_config as config;
use hostler_config::tls::{
    Certificate, CertificateFiles, Certificates, FileError, HandshakeSettings, Handshaking, Terminator,
};
use jiff::Timestamp;
use tokio::task::spawn_blocking;

use super::file_stamp::{FileStamp, file_stamp};

pub(super) struct TlsFiles {
    pub terminator: Arc<Terminator>,
    /// The port of the first TLS listener.
    pub port: u16,
    /// The files at the time when they were last read, also if that failed.
    read: Mutex<Vec<FileStamp>>,
}

/// Certificates that were read and are not used yet.
pub(super) struct Fresh {
    certificates: Certificates,
    stamps: Vec<FileStamp>,
}

impl TlsFiles {
    /// Reads the certificates for the first time. `port` is that of the first TLS listener.
    pub fn open(written: &config::Tls, port: u16) -> Result<Self, String> {
        let terminator = Terminator::new().map_err(|error| error.to_string())?;
        let tls = Self { terminator: Arc::new(terminator), port, read: Mutex::default() };
        tls.show(read(written).map_err(|error| error.to_string())?);
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

    /// Uses these certificates for new handshakes. True if the files have changed.
    pub fn show(&self, fresh: Fresh) -> bool {
        self.terminator.show(fresh.certificates);
        self.note(fresh.stamps)
    }

    /// Uses each certificate that can be read. In place of the others, those that were read before stay.
    pub async fn show_readable(&self, written: &config::Tls) {
        let (written, before) = (written.clone(), self.terminator.shown());
        let load = move || {
            let known = |files: &CertificateFiles| before.iter().find(|one| one.path == files.cert).cloned();
            let all = written.certificates.iter();
            let all = all.filter_map(|files| Certificate::load(files).ok().or_else(|| known(files)));
            Certificates::new(all.collect(), written.strict_sni)
        };
        if let Ok(certificates) = spawn_blocking(load).await {
            self.terminator.show(certificates);
        }
    }

    /// Records the stamps of the last read. True if they differ from those of the read before.
    pub fn note(&self, stamps: Vec<FileStamp>) -> bool {
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = *known != stamps;
        *known = stamps;
        is_new
    }

    /// Whether the files had these stamps at the last read.
    pub fn knows(&self, stamps: &[FileStamp]) -> bool {
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) == stamps
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
    let fresh = spawn_blocking(move || read(&written)).await.map_err(|error| error.to_string())?;
    fresh.map_err(|error| error.to_string())
}

fn read(written: &config::Tls) -> Result<Fresh, FileError> {
    // Taken before the read, so that a later change of a file is noticed.
    let stamps = stamps(&written.certificates);
    let certificates = written.certificates.iter().map(Certificate::load).collect::<Result<_, _>>();
    let certificates = certificates.map_err(|error| error.into_inner())?;
    Ok(Fresh { certificates: Certificates::new(certificates, written.strict_sni), stamps })
}

/// The stamps of all certificates and keys.
pub(super) fn stamps(files: &[CertificateFiles]) -> Vec<FileStamp> {
    files.iter().flat_map(|files| [file_stamp(&files.cert), file_stamp(&files.key)]).collect()
}
