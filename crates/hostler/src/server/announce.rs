//! Starts the announcement of our pools with what it needs from the server. Knows no messages.

use std::sync::{Arc, Weak};

use hostler_config::{Advertise, Config};
use hostler_gorouter::announce::{AnnounceSettings, Announcement};

use super::pools::RunningPool;
use super::running::RunningServer;
use crate::listen::ListenerKind;

/// Starts the announcement if it is configured. Reads the pools anew each time, so a reload needs no restart of it.
pub(super) fn begin(running: &Arc<RunningServer>) -> Option<Announcement> {
    let registering = running.registering.as_ref()?;
    let config = running.config.load();
    let settings = AnnounceSettings {
        at: address(running, &config)?,
        zone: config.platform.as_ref().and_then(|platform| platform.zone.clone()).unwrap_or_default(),
        interval: config.registrar.as_ref()?.register_interval,
        journal: running.journal.clone(),
    };
    let weak = Arc::downgrade(running);
    Some(Announcement::begin(&registering.connection, settings, Box::new(move || servable(&weak))))
}

/// The configured address, or else the first plain listener. None if that listens on all addresses; the configuration then announces no pool.
fn address(running: &RunningServer, config: &Config) -> Option<Advertise> {
    if let Some(written) = config.registrar.as_ref()?.advertise.clone() {
        return Some(written);
    }
    let listeners = running.listeners.load();
    let (_, address) =
        listeners.as_ref()?.addresses().find(|(listener_kind, _)| *listener_kind == ListenerKind::Plain)?;
    let at = Advertise { host: address.ip().to_string(), port: address.port(), tls: false };
    (!address.ip().is_unspecified()).then_some(at)
}

/// Only pools with a ready worker and pools that are asleep are announced, and none during a drain (SIGUSR1): routers send their requests to others.
fn servable(running: &Weak<RunningServer>) -> Vec<(Arc<str>, String)> {
    let Some(running) = running.upgrade() else { return Vec::new() };
    if running.connections().is_end_announced() {
        return Vec::new();
    }
    let pools = running.pools.load();
    let can_serve = |pool: &RunningPool| pool.pool.members() > 0 || pool.pool.is_asleep();
    let ready = pools.iter().filter(|pool| !pool.settings.announce.is_empty() && can_serve(pool));
    ready
        .flat_map(|pool| pool.settings.announce.iter().map(|name| (pool.name.clone(), name.clone())))
        .collect()
}
