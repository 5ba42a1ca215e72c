//! Certificates as the server keeps them: read from their files, and again when those change. Knows no handshakes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hostler_config as config;
use hostler_config::tls::{
    Certificate, CertificateFiles, Certificates, FileError, HandshakeSettings, Terminator,
};
use hostler_engine::journal::Level;
use rustls::ServerConfig;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

use super::running::RunningServer;
use super::trace::{Trace, trace};

/// How often files are looked at; one that has changed is read when it is found the same twice.
const LOOKING: Duration = Duration::from_secs(2);

/// What TLS listeners show and go by.
pub(super) struct TlsFiles {
    pub terminator: Arc<Terminator>,
    /// The port of the first listener.
    pub port: u16,
    /// The files as they were when they were last read, whatever came of it.
    read: Mutex<Vec<Trace>>,
}

/// Certificates that have been read, to be shown.
pub(super) struct Fresh {
    certificates: Certificates,
    traces: Vec<Trace>,
}

impl TlsFiles {
    /// Reads the certificates for the first time; `port` is that of the first listener.
    pub fn open(written: &config::Tls, port: u16) -> Result<Self, String> {
        let terminator = Terminator::new().map_err(|error| error.to_string())?;
        let tls = Self { terminator: Arc::new(terminator), port, read: Mutex::default() };
        tls.show(read(written).map_err(|error| error.to_string())?);
        Ok(tls)
    }

    /// The terms of handshakes.
    pub fn handshake(&self, written: &config::Tls, http2: bool) -> Result<Arc<ServerConfig>, String> {
        let handshake = HandshakeSettings {
            min_version: written.min_version,
            http2,
            clients: written.client_certificates.clone(),
        };
        self.terminator.on(&handshake).map_err(|error| error.to_string())
    }

    /// For handshakes that have not begun; true if the files are not as they were.
    pub fn show(&self, fresh: Fresh) -> bool {
        self.terminator.show(fresh.certificates);
        self.note(fresh.traces)
    }

    fn note(&self, traces: Vec<Trace>) -> bool {
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = *known != traces;
        *known = traces;
        is_new
    }

    fn knows(&self, traces: &[Trace]) -> bool {
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) == traces
    }

    /// Each certificate in a few words.
    pub fn describe(&self) -> Vec<String> {
        let describe = |certificate: &Certificate| {
            let names = certificate.names.join(", ");
            let until =
                certificate.valid.map_or(String::new(), |valid| format!(", valid until {}", valid.until));
            format!("tls: {} for {names}{until}", certificate.path.display())
        };
        self.terminator.shown().iter().map(describe).collect()
    }
}

/// Reads all certificates, away from everything that must not wait.
pub(super) async fn read_again(written: &config::Tls) -> Result<Fresh, String> {
    let written = written.clone();
    let fresh = spawn_blocking(move || read(&written)).await.map_err(|error| error.to_string())?;
    fresh.map_err(|error| error.to_string())
}

fn read(written: &config::Tls) -> Result<Fresh, FileError> {
    // Before they are read: what is written in between is then seen as a change.
    let traces = traces(&written.certificates);
    let certificates = written.certificates.iter().map(Certificate::load).collect::<Result<_, _>>();
    let certificates = certificates.map_err(|error| error.into_inner())?;
    Ok(Fresh { certificates: Certificates::new(certificates, written.strict_sni), traces })
}

fn traces(files: &[CertificateFiles]) -> Vec<Trace> {
    files.iter().flat_map(|files| [trace(&files.cert), trace(&files.key)]).collect()
}

/// Looks after the files for as long as this Hostler runs.
pub(super) async fn watch(running: Arc<RunningServer>) {
    let Some(tls) = running.tls.clone() else { return };
    let mut ticks = interval(LOOKING);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen = Vec::new();
    loop {
        ticks.tick().await;
        let Some(files) = running.config.load().tls.as_ref().map(|tls| tls.certificates.clone()) else {
            return;
        };
        let Ok(now) = spawn_blocking(move || traces(&files)).await else { return };
        // Whoever writes a certificate writes two files, and each in its time.
        let is_settled = now == seen;
        seen = now;
        if is_settled && !tls.knows(&seen) {
            follow(&running, &tls, &seen).await;
        }
    }
}

async fn follow(running: &RunningServer, tls: &TlsFiles, seen: &[Trace]) {
    let _turn = running.changes.acquire().await;
    let config = running.config.load_full();
    let Some(written) = &config.tls else { return };
    match read_again(written).await {
        Ok(fresh) => {
            tls.show(fresh);
            tls.describe().iter().for_each(|line| running.journal.event(Level::Info, line));
        }
        Err(why) => {
            // Said once: it is looked at again when it changes again.
            tls.note(seen.to_vec());
            let text = format!("tls: {why}; clients are shown the certificates that were read before");
            running.journal.event(Level::Error, &text);
        }
    }
}
