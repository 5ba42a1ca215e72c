//! What a reload cannot change: it keeps the old values, and names their keys. Knows no running part.

use hostler_config::{Config, Difference, Platform};

use crate::admin::CommandDone;

/// Keys of `[server]` that need a new process.
const FIXED: [&str; 4] = ["listen", "admin", "threads", "access_log"];

/// Keys of `[server]` that registered routes keep as they were at the start.
const OF_REGISTERED: [&str; 4] = ["max_header_size", "max_header_fields", "max_interim_answers", "compress"];

/// Gives `newer` the values of `older` where only a new process can change them, and tells which these are.
pub(super) fn keep(older: &Config, newer: &mut Config, done: &mut CommandDone) {
    let mut kept = KeptKeys { how: how_to_apply(older, newer), done };
    let Difference { server, cache, .. } = older.difference(newer);
    for key in server.iter().filter(|key| FIXED.contains(key)) {
        kept.tell(&format!("server.{key}"));
    }
    if older.registrar.as_ref().is_some_and(|registrar| registrar.accept) {
        for key in server.iter().filter(|key| OF_REGISTERED.contains(key)) {
            kept.tell_for(&format!("server.{key}"), " for registered routes");
        }
    }
    for key in cache.iter().filter(|key| **key != "tier") {
        kept.tell(&format!("cache.{key}"));
    }
    (newer.cache.memory, newer.cache.max_entry) = (older.cache.memory, older.cache.max_entry);
    keep_sections(older, newer, &mut kept);
    keep_platform(older, newer, &mut kept);
    keep_admin_names(older, newer);
    let server = &mut newer.server;
    server.listen.clone_from(&older.server.listen);
    (server.admin, server.threads) = (older.server.admin.clone(), older.server.threads);
    server.access_log = older.server.access_log;
    keep_listeners(older, newer, &mut kept);
}

/// Tells which keys keep their old values.
struct KeptKeys<'a> {
    how: String,
    done: &'a mut CommandDone,
}

impl KeptKeys<'_> {
    fn tell(&mut self, key: &str) {
        self.tell_for(key, "");
    }

    fn tell_for(&mut self, key: &str, part: &str) {
        self.done.push(format!("{key}: not applied yet{part}; {}", self.how));
    }
}

/// How to apply the rest. Commands read the file: if it has another admin address, they would look for this Hostler there.
fn how_to_apply(older: &Config, newer: &Config) -> String {
    let plain = || "run `hostler upgrade`".to_owned();
    if older.server.admin == newer.server.admin {
        return plain();
    }
    let Some(admin) = &older.server.admin else { return "send SIGUSR2 to Hostler".to_owned() };
    // The real port is not known here.
    let is_known = admin.tcp().is_none_or(|address| address.port() != 0);
    if is_known { format!("run `hostler upgrade --admin {admin}`") } else { plain() }
}

fn keep_sections(older: &Config, newer: &mut Config, kept: &mut KeptKeys<'_>) {
    if older.registrar != newer.registrar {
        kept.tell("registrar");
        newer.registrar.clone_from(&older.registrar);
        // A first `[registrar]` implies a `[platform]`. Without the upgrade it must have no effect: requests without a route would get its responses.
        if older.registrar.is_none()
            && older.platform.is_none()
            && newer.platform.take().is_some_and(|platform| platform != Platform::default())
        {
            kept.tell("platform");
        }
    }
    if older.traces != newer.traces {
        kept.tell("traces");
        newer.traces.clone_from(&older.traces);
    }
}

/// Keeps `compat` and `zone` of `[platform]`: the routing table, the registrations and the pools of registered routes were made for them. If only
/// some of these parts followed a new value, the rules would be those of neither value.
fn keep_platform(older: &Config, newer: &mut Config, kept: &mut KeptKeys<'_>) {
    let old = older.platform.clone().unwrap_or_default();
    let new = newer.platform.clone().unwrap_or_default();
    let changed = [("platform.compat", old.compat != new.compat), ("platform.zone", old.zone != new.zone)];
    for (key, _) in changed.into_iter().filter(|(_, changed)| *changed) {
        kept.tell(key);
    }
    let of_both = Platform { compat: old.compat, zone: old.zone, ..new };
    // A registrar stays until the upgrade and needs the section, even if the file has neither any more.
    let is_needed = newer.platform.is_some() || newer.registrar.is_some() || of_both != Platform::default();
    newer.platform = is_needed.then_some(of_both);
}

/// The host name in `server.admin` is one of the names that `Host` may have. The old address stays until the upgrade, so its name stays, too.
fn keep_admin_names(older: &Config, newer: &mut Config) {
    if older.server.admin != newer.server.admin {
        let names = &mut newer.server.admin_hosts;
        let others = older.server.admin_hosts.iter().filter(|name| !names.contains(name));
        let others: Vec<_> = others.cloned().collect();
        names.extend(others);
    }
}

/// A reload cannot change TLS listeners, nor add or remove them.
fn keep_listeners(older: &Config, newer: &mut Config, kept: &mut KeptKeys<'_>) {
    let is_changed = older.difference(newer).tls.contains(&"listen");
    match (&older.tls, &mut newer.tls) {
        (Some(older), Some(newer)) => newer.listen.clone_from(&older.listen),
        (older, newer) => newer.clone_from(older),
    }
    if is_changed {
        kept.tell("tls.listen");
    }
}

#[cfg(test)]
mod tests {
    use hostler_config::{Compat, Invocation, LoadContext};

    use super::*;

    fn config(text: &str) -> Config {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("routes = [{{ match = '*', respond = 'ok' }}]\n{text}");
        std::fs::write(folder.path().join("hostler.toml"), text).unwrap();
        let around = LoadContext::of_process();
        let load_context =
            LoadContext { folder: folder.path().into(), environment: Default::default(), ..around };
        let invocation = Invocation { file: Some("hostler.toml".into()), settings: Vec::new(), load_context };
        hostler_config::load(&invocation).unwrap_or_else(|errors| panic!("{errors}"))
    }

    /// What a reload from one file to another applies, and what it tells.
    fn kept(older: &str, newer: &str) -> (Config, CommandDone) {
        let (older, mut newer, mut done) = (config(older), config(newer), CommandDone::new());
        keep(&older, &mut newer, &mut done);
        (newer, done)
    }

    #[test]
    fn the_name_of_an_admin_address_stays_with_the_address() {
        let (kept, done) = kept(
            "server.admin = 'localhost:8081'\nserver.admin_hosts = ['a.test']",
            "server.admin = '127.0.0.1:9'\nserver.admin_hosts = ['b.test']",
        );
        assert_eq!(kept.server.admin_hosts, ["b.test", "a.test", "localhost"]);
        assert!(done.len() == 1 && done[0].starts_with("server.admin: not applied yet; "), "{done:?}");
    }

    #[test]
    fn the_lines_of_health_checks_follow_the_access_log_that_stays() {
        let (json, gorouter) = ("server.access_log = 'json'", "server.access_log = 'gorouter'");
        for (older, newer, logs) in [(json, gorouter, false), (gorouter, json, true)] {
            let (config, done) = kept(older, newer);
            assert_eq!((config.server.logs_health_checks(), done.len()), (logs, 1), "{older}");
        }
        let (set, _) = kept(json, &format!("{gorouter}\nserver.log_health_checks = true"));
        assert!(set.server.logs_health_checks());
    }

    #[test]
    fn the_way_to_apply_the_rest_names_the_admin_address_that_holds_until_then() {
        for (admin, how) in [
            ("127.0.0.1:8081", "run `hostler upgrade --admin 127.0.0.1:8081`"),
            ("127.0.0.1:0", "run `hostler upgrade`"),
            ("off", "send SIGUSR2 to Hostler"),
        ] {
            let older = format!("server.admin = '{admin}'\nserver.threads = 1");
            let (_, done) = kept(&older, "server.admin = '127.0.0.1:9'\nserver.threads = 2");
            let told = ["admin", "threads"].map(|key| format!("server.{key}: not applied yet; {how}"));
            assert_eq!(done, told);
        }
    }

    #[test]
    fn compat_and_zone_stay_also_without_their_section() {
        let (with_both, done) = kept("platform = { compat = 'gorouter', zone = 'a' }", "");
        let expected = Platform { compat: Compat::Gorouter, zone: Some("a".into()), ..Platform::default() };
        assert_eq!((with_both.platform, done.len()), (Some(expected), 2));
        let (without, done) = kept("platform.secure_cookies = true", "");
        assert_eq!((without.platform, done), (None, CommandDone::new()));
    }

    #[test]
    fn a_first_registrar_waits_for_an_upgrade_with_its_platform() {
        let registrar = "registrar.nats = ['nats://127.0.0.1:4222']\n";
        let later = |keys: &[&str]| {
            let told = keys.iter().map(|key| format!("{key}: not applied yet; run `hostler upgrade`"));
            told.collect::<CommandDone>()
        };
        let (without, done) = kept("", registrar);
        assert_eq!(
            (without.registrar.is_some(), without.platform, done),
            (false, None, later(&["registrar"]))
        );
        let (with, done) = kept("", &format!("{registrar}platform.secure_cookies = true"));
        assert_eq!((with.platform, done), (None, later(&["registrar", "platform"])));
        let (alone, done) = kept("", "platform.secure_cookies = true");
        assert_eq!((alone.platform.is_some(), done), (true, CommandDone::new()));
    }
}
