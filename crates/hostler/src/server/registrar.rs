//! The registrar with what it needs of the rest of the program. Knows no messages.

use std::sync::Arc;
use std::time::Duration;

use super::settings;
use super::tables::Tables;
use crate::admin::Registrations;
use crate::config::Config;
use crate::gateway::platform::Rules;
use crate::journal::Journal;
use crate::nats::Connection;
use crate::registrar::{Mould, Registrar};

/// How long the start waits for NATS before it goes on without.
const PATIENCE: Duration = Duration::from_secs(5);

/// A registrar and its connection, where one is configured.
#[derive(Clone)]
pub(super) struct Registering {
    /// None: others' routes are not taken.
    registrar: Option<Registrar>,
    pub connection: Connection,
    start_delay: Duration,
}

impl Registering {
    /// Begins to listen, where a registrar is configured, and rules for its routes with it.
    /// Begins to listen.
    pub fn open(
        config: &Config,
        rules: Option<Arc<Rules>>,
        tables: Arc<Tables>,
        journal: &Journal,
    ) -> Option<Self> {
        let (settings, rules) = (config.registrar.clone()?, rules?);
        let accept = settings.accept;
        let start_delay = if accept { settings.start_delay } else { Duration::ZERO };
        let connection = Connection::open(settings.nats.clone(), journal.clone());
        let mould = Mould {
            settings,
            limits: settings::limits(&config.server),
            threads: config.server.threads,
            rules,
            journal: journal.clone(),
        };
        let publish = Box::new(move |changed| tables.register(changed));
        let registrar = accept.then(|| Registrar::open(connection.clone(), mould, publish));
        Some(Self { registrar, connection, start_delay })
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

    /// Tells the tunnels of registered routes to end.
    pub fn dismiss_tunnels(&self) {
        if let Some(registrar) = &self.registrar {
            registrar.dismiss_tunnels();
        }
    }

    /// For those who ask; none where there are no such routes.
    pub fn source(&self) -> Option<Registrations> {
        let registrar = self.registrar.as_ref()?;
        let (status, routes, table) = (registrar.clone(), registrar.clone(), registrar.clone());
        Some(Registrations {
            status: Box::new(move || status.status()),
            routes: Box::new(move || routes.routes()),
            table: Box::new(move || table.table()),
        })
    }
}
