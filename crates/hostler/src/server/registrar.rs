//! Routes that other programs register: starts their registrar, and has the rules for their requests. Knows no messages.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use hostler_address::OwnAddresses;
use hostler_config::{AccessLog, Advertise, Config};
use hostler_engine::exchange::{Counters, DiskThreads};
use hostler_engine::gateway::{
    AccessFormat, ExpectedCosts, FairKeys, Gateway, Health, RegistrarRules, low_requests,
};
use hostler_engine::journal::{Journal, Level};
use hostler_engine::proxy::Meter;
use hostler_gorouter::access_log;
use hostler_gorouter::announce::ToldName;
use hostler_gorouter::nats::NatsConnection;
use hostler_gorouter::registrar::{RegistrarTask, RouteTemplate};
use hostler_gorouter::request::PlatformRules;
use serde_json::Value;

use super::settings;
use super::tables::Tables;
use crate::admin::Registrations;

/// Shown in the table of routes in place of a target.
const NOT_SERVED: &str = "not served: a configured route has its paths";
/// How long the start waits for NATS.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// The rules of `[platform]`: how requests are handled while routes may be registered. Empty without that section.
pub(super) struct RegisteredRules(ArcSwapOption<PlatformRules>);

impl RegisteredRules {
    pub fn of(config: &Config, health: &Arc<Health>) -> Self {
        Self(ArcSwapOption::new(rules(config, health)))
    }

    /// The same for the gateway.
    pub fn for_gateway(&self) -> Option<Arc<RegistrarRules>> {
        self.0.load().as_ref().map(|rules| Arc::new(rules.for_gateway()))
    }

    /// Whether the paths of routes have no upper and lower case.
    pub fn folds_paths(&self) -> bool {
        self.0.load().as_ref().is_some_and(|rules| rules.is_compat())
    }

    /// Applies a new configuration. Registered routes keep their rules, with new settings.
    pub fn update(&self, config: &Config, gateway: &Gateway) {
        match (&*self.0.load(), &config.platform) {
            (Some(rules), Some(settings)) => rules.update(settings.clone()),
            _ => self.0.store(rules(config, &gateway.health)),
        }
        gateway.registrar.store(self.for_gateway());
    }
}

fn rules(config: &Config, health: &Arc<Health>) -> Option<Arc<PlatformRules>> {
    config.platform.clone().map(|settings| Arc::new(PlatformRules::new(settings, health.clone())))
}

/// What writes the access lines, if they are in gorouter's format.
pub(super) fn access_format(config: &Config) -> Option<AccessFormat> {
    (config.server.access_log == AccessLog::Gorouter).then_some(access_log::write)
}

/// The registrar and its connection.
#[derive(Clone)]
pub(super) struct Registering {
    /// None if no registrar is configured.
    registrar: Option<RegistrarTask>,
    tables: Arc<Tables>,
    pub connection: NatsConnection,
    /// What the predecessor has announced.
    pub told: Vec<ToldName>,
    start_delay: Duration,
    is_successor: bool,
    /// Routes are accepted, and none has come from a predecessor.
    lacks_routes: bool,
    /// The requests of all registered routes.
    counters: Arc<Counters>,
    /// Their times.
    meter: Arc<Meter>,
}

impl Registering {
    /// Starts the registrar, if one is configured.
    pub fn open(
        config: &Config,
        registered: &RegisteredRules,
        (tables, own): (Arc<Tables>, OwnAddresses),
        journal: &Journal,
        known: Option<File>,
    ) -> Option<Self> {
        let (settings, rules) = (config.registrar.clone()?, registered.0.load_full()?);
        let accept = settings.accept;
        let start_delay = if accept { settings.start_delay } else { Duration::ZERO };
        let connection = NatsConnection::open(settings.nats.clone(), journal.clone());
        let fair = FairKeys::new(&settings.queue.fair, None);
        let costs = ExpectedCosts::new(settings.queue.short_first, None);
        let low = low_requests(&settings.queue.low);
        let (counters, meter) = (Arc::<Counters>::default(), Arc::new(Meter::new(config.server.threads)));
        let template = RouteTemplate {
            settings,
            counters: counters.clone(),
            meter: meter.clone(),
            fair,
            costs,
            low,
            limits: settings::limits(&config.server),
            max_interim_answers: config.server.max_interim_answers,
            own: Arc::new(own),
            threads: config.server.threads,
            rules,
            compress: config.server.compress.clone(),
            journal: journal.clone(),
        };
        let known = known.map(|file| read_or_say(file, journal).unwrap_or_default());
        let told = known.as_deref().map(ToldName::exported).unwrap_or_default();
        // A successor gets the registrations from its predecessor and need not wait for them.
        let start_delay = match &known {
            Some(lines) if !lines.is_empty() && told.is_empty() => Duration::ZERO,
            _ => start_delay,
        };
        let table = tables.clone();
        let publish = Box::new(move |changed| table.register(changed));
        let registrar =
            accept.then(|| RegistrarTask::open(connection.clone(), template, known.as_deref(), publish));
        let lacks_routes = accept && !has_routes(known.as_deref().unwrap_or_default(), &told);
        let is_successor = known.is_some();
        Some(Self {
            registrar,
            tables,
            connection,
            told,
            start_delay,
            is_successor,
            lacks_routes,
            counters,
            meter,
        })
    }

    /// Waits for the connection to NATS, for [`TIME_LIMIT`] at most, and then until clients have had the time to register. A successor
    /// waits for its subscription: what it cannot hear yet, the predecessor must tell it. If there is no connection by then, Hostler begins
    /// without registered routes.
    pub async fn filled(&self) {
        if let (true, Some(registrar)) = (self.is_successor, &self.registrar) {
            let _ = tokio::time::timeout(TIME_LIMIT, registrar.subscribed()).await;
        }
        let limit = if self.start_delay.is_zero() { Duration::ZERO } else { TIME_LIMIT };
        let is_up = tokio::time::timeout(limit, self.connection.up()).await.is_ok();
        // Before the delay: if NATS comes during it, clients have `start_delay` from then on.
        if self.lacks_routes && !is_up {
            self.fill_later();
        }
        tokio::time::sleep(self.start_delay).await;
    }

    /// NATS is away, so no program could register a route. Balancers must not send clients here until one could.
    fn fill_later(&self) {
        let Self { tables, connection, start_delay, .. } = self.clone();
        tables.wait_for_registrations(true);
        tokio::spawn(async move {
            connection.up().await;
            tokio::time::sleep(start_delay).await;
            tables.wait_for_registrations(false);
        });
    }

    /// Waits until everything is read that the NATS server had before the successor subscribed.
    pub async fn catch_up(&self) {
        if let Some(registrar) = &self.registrar {
            registrar.catch_up().await;
        }
    }

    /// An unnamed file in this folder with all registrations, for a successor, and with what is announced at this address.
    pub async fn export(
        &self,
        folder: PathBuf,
        at: Option<Advertise>,
        announced: Vec<(Arc<str>, String)>,
    ) -> io::Result<OwnedFd> {
        let mut lines = self.registrar.as_ref().map(RegistrarTask::export).unwrap_or_default();
        if let Some(at) = &at {
            lines.extend(announced.iter().flat_map(|(pool, name)| ToldName::new(at, pool, name).line()));
        }
        written(folder, lines).await
    }

    /// Takes what the predecessor has exported once this process was subscribed. If that cannot be read, the first export stays.
    pub fn take_over(&self, newest: Option<File>, journal: &Journal) {
        if let Some(registrar) = &self.registrar {
            registrar.take_over(newest.and_then(|file| read_or_say(file, journal)).as_deref());
        }
    }

    pub fn dismiss_tunnels(&self) {
        if let Some(registrar) = &self.registrar {
            registrar.dismiss_tunnels();
        }
    }

    /// The registrar's part of the Status. None without a registrar.
    pub fn source(&self) -> Option<Registrations> {
        let registrar = self.registrar.as_ref()?;
        let (status, routes, table) = (registrar.clone(), registrar.clone(), registrar.clone());
        let (counted, listed) = (self.tables.clone(), self.tables.clone());
        Some(Registrations {
            counters: self.counters.clone(),
            meter: self.meter.clone(),
            status: Box::new(move || {
                let mut status = status.status();
                status["not_served"] = counted.not_served().len().into();
                status
            }),
            routes: Box::new(move || routes.routes()),
            table: Box::new(move || {
                let (mut rows, not_served) = (table.table(), listed.not_served());
                let is_it =
                    |row: &&mut Value| row["route"].as_str().is_some_and(|name| not_served.contains(name));
                rows.iter_mut().filter(is_it).for_each(|row| row["target"] = NOT_SERVED.into());
                rows
            }),
        })
    }
}

/// Whether a predecessor has exported routes. One that accepts none exports only what it has announced.
fn has_routes(exported: &[u8], told: &[ToldName]) -> bool {
    let lines = exported.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines.count() > told.len()
}

/// An unnamed file in this folder. With a time limit: a disk that hangs would hold up this upgrade, and each later reload behind it.
async fn written(folder: PathBuf, lines: Vec<u8>) -> io::Result<OwnedFd> {
    let shown = folder.display().to_string();
    let writing = DiskThreads::new(1).run(move || {
        let mut file = tempfile::tempfile_in(folder)?;
        file.write_all(&lines)?;
        Ok(OwnedFd::from(file))
    });
    writing.await.map_err(|error| {
        let text = format!("the registered routes cannot be written to {shown} (server.temp_dir): {error}");
        io::Error::new(error.kind(), text)
    })
}

fn read_or_say(file: File, journal: &Journal) -> Option<Vec<u8>> {
    let lines = read(file);
    if let Err(error) = &lines {
        journal
            .event(Level::Warn, &format!("the registered routes of the old process cannot be read: {error}"));
    }
    lines.ok()
}

fn read(mut file: File) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    // The writer has left the position at the end.
    file.rewind()?;
    file.read_to_end(&mut lines)?;
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_predecessor_has_announced_is_no_route() {
        let at = Advertise { host: "10.0.0.5".into(), port: 8080, tls: false };
        let told = ToldName::new(&at, "web", "a.test").line();
        let route = b"{\"host\":\"10.0.0.6\",\"port\":1,\"uris\":[\"b.test\"]}\n";
        for (exported, expected) in [
            (Vec::new(), false),
            (told.clone(), false),
            (route.to_vec(), true),
            ([&route[..], &told[..]].concat(), true),
        ] {
            assert_eq!(has_routes(&exported, &ToldName::exported(&exported)), expected);
        }
    }

    #[tokio::test]
    async fn an_export_that_cannot_be_written_names_its_folder() {
        let folder = tempfile::tempdir().unwrap().path().join("missing");
        let error = written(folder.clone(), Vec::new()).await.unwrap_err().to_string();
        assert!(error.contains(&format!("{} (server.temp_dir)", folder.display())), "{error}");
    }
}
