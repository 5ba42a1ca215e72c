//! The data that Hostler answers out of itself: opened at the start, and again where the configuration says otherwise. Knows no
//! requests.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

use super::running::Running;
use super::trace::{Trace, trace};
use crate::config::{Config, MatchPattern, PathPattern};
use crate::journal::Level;
use crate::native::Native;
use crate::native::geo::Geo;
use crate::native::postal::Postal;

/// How often databases are looked at; one that has changed is gone over to when it is found the same twice.
const LOOKING: Duration = Duration::from_secs(2);

/// What there is.
#[derive(Clone, Default)]
pub(super) struct Lookups {
    pub geo: Option<Arc<Geo>>,
    pub postal: Option<Arc<Postal>>,
    /// The files of `geo` as they were when they were last read, whatever came of it.
    read: Arc<Mutex<Vec<Trace>>>,
}

impl Lookups {
    /// What the configuration names. What it named before, in the same words, stays open.
    pub fn open(newer: &Config, before: Option<(&Config, &Self)>) -> Result<Self, String> {
        let databases = |config: &Config| config.geo.as_ref().map(|geo| geo.databases.clone());
        let read = match before {
            Some((older, data)) if databases(older) == databases(newer) => data.read.clone(),
            // Before they are read: what is written in between is then seen as a change.
            _ => Arc::new(Mutex::new(traces(&databases(newer).unwrap_or_default()))),
        };
        let geo = match (&newer.geo, before) {
            (Some(written), Some((older, data))) if older.geo.as_ref() == Some(written) => data.geo.clone(),
            (Some(written), before) => {
                let before = before.and_then(|(_, data)| data.geo.as_deref());
                let opened = Geo::open(written, before).map_err(|error| format!("geo.databases: {error}"));
                Some(Arc::new(opened?))
            }
            (None, _) => None,
        };
        let postal = match (&newer.postal, before) {
            (Some(written), Some((older, data))) if older.postal.as_ref() == Some(written) => {
                data.postal.clone()
            }
            (Some(written), _) => {
                let opened = Postal::open(written).map_err(|error| format!("postal.data: {error}"));
                Some(Arc::new(opened?))
            }
            (None, _) => None,
        };
        Ok(Self { geo, postal, read })
    }

    fn knows(&self, traces: &[Trace]) -> bool {
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) == traces
    }

    fn note(&self, traces: &[Trace]) {
        traces.clone_into(&mut self.read.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// What a route answers.
    pub fn native(&self, pattern: &MatchPattern, geo: bool, postal: bool) -> Native {
        let prefix = match &pattern.path {
            PathPattern::Prefix(prefix) => prefix.as_str(),
            PathPattern::Exact(_) => "",
        };
        Native {
            geo: self.geo.clone().filter(|_| geo),
            postal: self.postal.clone().filter(|_| postal),
            prefix: prefix.into(),
        }
    }
}

/// What a route answers, in words.
pub(super) fn names(native: &Native) -> String {
    let names = [native.geo.as_ref().map(|_| "geo"), native.postal.as_ref().map(|_| "postal")];
    names.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn traces(files: &[PathBuf]) -> Vec<Trace> {
    files.iter().map(|file| trace(file)).collect()
}

/// Looks after the databases for as long as this Hostler runs.
pub(super) async fn watch(running: Arc<Running>) {
    let mut ticks = interval(LOOKING);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen = Vec::new();
    loop {
        ticks.tick().await;
        let lookups = running.lookups.load_full();
        let Some(geo) = lookups.geo.clone() else { continue };
        let files = geo.databases().to_vec();
        let Ok(now) = spawn_blocking(move || traces(&files)).await else { return };
        // One for IPv4 and one for IPv6 come one after the other, and belong together.
        let is_settled = now == seen;
        seen = now;
        if is_settled && !lookups.knows(&seen) {
            follow(&running, &seen).await;
        }
    }
}

async fn follow(running: &Running, seen: &[Trace]) {
    let _turn = running.changes.acquire().await;
    // A reload may have had its turn before.
    let lookups = running.lookups.load_full();
    let Some(geo) = lookups.geo.clone() else { return };
    // Whatever comes of it: it is looked at again when it changes again.
    lookups.note(seen);
    let renewing = geo.clone();
    match spawn_blocking(move || renewing.renew()).await {
        Ok(Ok(warnings)) => {
            warnings
                .iter()
                .for_each(|warning| running.journal.event(Level::Info, &format!("geo: {warning}")));
            let databases = geo.status().databases.join(", ");
            running.journal.event(Level::Info, &format!("geo: now from {databases}"));
        }
        Ok(Err(why)) => {
            let text = format!("geo: {why}; addresses are looked up in what was read before");
            running.journal.event(Level::Error, &text);
        }
        // The runtime is ending.
        Err(_) => {}
    }
}
