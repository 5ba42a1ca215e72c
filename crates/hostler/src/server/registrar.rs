//! The registrar with what it needs of the rest of the program. Knows no messages.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::settings;
use super::tables::Tables;
use crate::admin::Registrations;
use crate::config::Config;
use crate::gateway::platform::Rules;
use crate::journal::{Journal, Level};
use crate::nats::Connection;
use crate::registrar::{Mould, Registrar};

/// How long the start waits for NATS before it goes on without.
const PATIENCE: Duration = Duration::from_secs(5);

/// A registrar and its connection, where one is configured.
#[derive(Clone)]
pub(super) struct Registering {
    pub registrar: Registrar,
    pub connection: Connection,
    start_delay: Duration,
    temp_dir: PathBuf,
}

impl Registering {
    /// Begins to listen.
    pub fn open(
        config: &Config,
        rules: Option<Arc<Rules>>,
        tables: Arc<Tables>,
        journal: &Journal,
        known: Option<File>,
    ) -> Option<Self> {
        let (settings, rules) = (config.registrar.clone()?, rules?);
        let start_delay = settings.start_delay;
        let connection = Connection::open(settings.nats.clone(), journal.clone());
        let mould = Mould {
            settings,
            limits: settings::limits(&config.server),
            threads: config.server.threads,
            rules,
            journal: journal.clone(),
        };
        let known = known.map(read).unwrap_or_else(|| Ok(Vec::new()));
        // Whoever has handed all over to us has heard them already.
        let start_delay = match &known {
            Ok(lines) if !lines.is_empty() => Duration::ZERO,
            _ => start_delay,
        };
        let known = known.unwrap_or_else(|error| {
            journal.event(Level::Warn, &format!("the predecessor's routes cannot be read: {error}"));
            Vec::new()
        });
        let publish = Box::new(move |changed| tables.register(changed));
        let registrar = Registrar::open(connection.clone(), mould, &known, publish);
        Some(Self { registrar, connection, start_delay, temp_dir: config.server.temp_dir.clone() })
    }

    /// Waits until clients have had the time to register. Where NATS is away, that is not waited for: what is configured can be
    /// served.
    pub async fn filled(&self) {
        if self.start_delay.is_zero() {
            return;
        }
        let _ = tokio::time::timeout(PATIENCE, self.connection.up()).await;
        tokio::time::sleep(self.start_delay).await;
    }

    /// A file without a name with all that is known, for a successor.
    pub async fn export(&self) -> io::Result<OwnedFd> {
        let (lines, folder) = (self.registrar.export(), self.temp_dir.clone());
        let written = tokio::task::spawn_blocking(move || {
            let mut file = tempfile::tempfile_in(folder)?;
            file.write_all(&lines)?;
            Ok(OwnedFd::from(file))
        });
        written.await.map_err(io::Error::other)?
    }

    /// For those who ask.
    pub fn source(&self) -> Registrations {
        let (status, routes, table) =
            (self.registrar.clone(), self.registrar.clone(), self.registrar.clone());
        Registrations {
            status: Box::new(move || status.status()),
            routes: Box::new(move || routes.routes()),
            table: Box::new(move || table.table()),
        }
    }
}

fn read(mut file: File) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    // Whoever has written it has left it at its end.
    file.rewind()?;
    file.read_to_end(&mut lines)?;
    Ok(lines)
}
