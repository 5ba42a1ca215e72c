//! What a reload cannot change: it keeps the old values, and names their keys. Knows no running part.

use hostler_config::{Config, Difference, Platform};

use crate::admin::CommandDone;

const LATER: &str = "not applied yet";
const HOW: &str = "run `hostler upgrade`";

/// Keys of `[server]` that need a new process.
const FIXED: [&str; 4] = ["listen", "admin", "threads", "access_log"];

/// Keys of `[server]` that registered routes keep as they were at the start.
const OF_REGISTERED: [&str; 4] = ["max_header_size", "max_header_fields", "max_interim_answers", "compress"];

/// Gives `newer` the values of `older` where only a new process can change them, and tells which these are.
pub(super) fn keep(older: &Config, newer: &mut Config, done: &mut CommandDone) {
    let Difference { server, cache, .. } = older.difference(newer);
    let fixed = server.iter().filter(|key| FIXED.contains(key));
    done.extend(fixed.map(|key| later(&format!("server.{key}"))));
    if older.registrar.as_ref().is_some_and(|registrar| registrar.accept) {
        let kept = server.iter().filter(|key| OF_REGISTERED.contains(key));
        done.extend(kept.map(|key| format!("server.{key}: {LATER} for registered routes; {HOW}")));
    }
    done.extend(cache.iter().filter(|key| **key != "tier").map(|key| later(&format!("cache.{key}"))));
    (newer.cache.memory, newer.cache.max_entry) = (older.cache.memory, older.cache.max_entry);
    keep_sections(older, newer, done);
    keep_platform(older, newer, done);
    let server = &mut newer.server;
    server.listen.clone_from(&older.server.listen);
    (server.admin, server.threads) = (older.server.admin.clone(), older.server.threads);
    server.access_log = older.server.access_log;
    keep_listeners(older, newer, done);
}

fn later(key: &str) -> String {
    format!("{key}: {LATER}; {HOW}")
}

fn keep_sections(older: &Config, newer: &mut Config, done: &mut CommandDone) {
    if older.registrar != newer.registrar {
        done.push(later("registrar"));
        newer.registrar.clone_from(&older.registrar);
    }
    if older.traces != newer.traces {
        done.push(later("traces"));
        newer.traces.clone_from(&older.traces);
    }
}

/// The routing table, the registrations and the pools of registered routes were made for one `compat` and one `zone`. Half of a new value
/// would make rules that neither value has.
fn keep_platform(older: &Config, newer: &mut Config, done: &mut CommandDone) {
    let old = older.platform.clone().unwrap_or_default();
    let new = newer.platform.clone().unwrap_or_default();
    let changed = [("platform.compat", old.compat != new.compat), ("platform.zone", old.zone != new.zone)];
    done.extend(changed.into_iter().filter(|(_, changed)| *changed).map(|(key, _)| later(key)));
    let kept = Platform { compat: old.compat, zone: old.zone, ..new };
    // A registrar that stays until the upgrade needs the section, also if neither is written any more.
    let is_needed = newer.platform.is_some() || newer.registrar.is_some() || kept != Platform::default();
    newer.platform = is_needed.then_some(kept);
}

/// A reload cannot change TLS listeners, nor add or remove them.
fn keep_listeners(older: &Config, newer: &mut Config, done: &mut CommandDone) {
    let is_changed = older.difference(newer).tls.contains(&"listen");
    match (&older.tls, &mut newer.tls) {
        (Some(older), Some(newer)) => newer.listen.clone_from(&older.listen),
        (older, newer) => newer.clone_from(older),
    }
    if is_changed {
        done.push(later("tls.listen"));
    }
}
