//! Starts the announcement of our pools with what it needs from the server, and takes names back before a reload removes them. Knows no messages.

use std::sync::{Arc, Weak};

use hostler_config::{Advertise, Config};
use hostler_gorouter::announce::{AnnounceSettings, Announcement, NOTICE, ToldName};
use tokio::time::sleep;

use super::pools::RunningPool;
use super::running::RunningServer;

/// Starts the announcement if it is configured. Reads the pools anew each time, so a reload needs no restart of it.
pub(super) fn begin(running: &Arc<RunningServer>) -> Option<Announcement> {
    let registering = running.registering.as_ref()?;
    let config = running.config.load();
    let at = running.advertised()?;
    let settings = AnnounceSettings {
        former: former(running, &at),
        at,
        zone: config.platform.as_ref().and_then(|platform| platform.zone.clone()).unwrap_or_default(),
        interval: config.registrar.as_ref()?.register_interval,
        journal: running.journal.clone(),
    };
    let weak = Arc::downgrade(running);
    Some(Announcement::begin(&registering.connection, settings, Box::new(move || servable(&weak))))
}

/// What the predecessor has announced and is true no more: a name that the configuration announces no more, or another address. Routers would
/// send it requests until `stale_threshold` has passed, and to a member with TLS for ever.
fn former(running: &RunningServer, at: &Advertise) -> Vec<ToldName> {
    let announced = running.announced();
    let is_announced = |told: &ToldName| announced.iter().any(|(_, name)| name == told.name());
    let told = running.registering.iter().flat_map(|registering| &registering.told);
    told.filter(|told| !told.is_at(at) || !is_announced(told)).cloned().collect()
}

/// Takes back the names that `newer` announces no more, and waits until routers have heard of it. To be called before the routes change: otherwise
/// requests that routers still send would find no route.
pub(super) async fn withdraw(running: &RunningServer, newer: &Config) {
    let stays = |name: &String| newer.pools.iter().any(|pool| pool.announce.contains(name));
    let gone = servable_now(running).into_iter().map(|(_, name)| name).filter(|name| !stays(name));
    let gone: Vec<String> = gone.collect();
    let must_wait = !gone.is_empty();
    running.withdrawn.store(Arc::new(gone));
    if must_wait {
        sleep(NOTICE).await;
    }
}

fn servable(running: &Weak<RunningServer>) -> Vec<(Arc<str>, String)> {
    running.upgrade().map(|running| servable_now(&running)).unwrap_or_default()
}

/// Only pools with a ready worker or a healthy member and pools that are asleep are announced, and none during a drain (SIGUSR1): routers send their requests to others.
/// None while this process accepts routes either, as it does until the upgrade after a reload has added the first `announce`: it would register its own
/// pools with itself.
fn servable_now(running: &RunningServer) -> Vec<(Arc<str>, String)> {
    let accepts = running.config.load().registrar.as_ref().is_some_and(|registrar| registrar.accept);
    if accepts || running.connections().is_end_announced() {
        return Vec::new();
    }
    let pools = running.pools.load();
    let can_serve = |pool: &RunningPool| pool.pool.has_healthy_member() || pool.pool.is_asleep();
    let ready = pools.iter().filter(|pool| !pool.settings.announce.is_empty() && can_serve(pool));
    let names =
        ready.flat_map(|pool| pool.settings.announce.iter().map(|name| (pool.name.clone(), name.clone())));
    let withdrawn = running.withdrawn.load();
    names.filter(|(_, name)| !withdrawn.contains(name)).collect()
}
