//! Warns about keys that change nothing, because of what another key says. Knows no requests.

use std::time::Duration;

use super::Resolver;
use crate::document::KeyPath;
use crate::file::{AccessLog, Buffer, File, Sharding};
use crate::resolved::{Config, Pool, PoolMembers, Target};
use crate::value::{Period, ShowSize};

/// Whether the keys of a section change nothing, and why.
type Idle = (bool, &'static str, &'static [&'static str], &'static str);

impl Resolver<'_> {
    /// Warns about each key that is written and changes nothing.
    pub(super) fn warn_of_idle_keys(&mut self, file: &File, config: &Config) {
        for (_, section, keys, why) in idle(file, config).iter().filter(|(is_idle, ..)| *is_idle) {
            keys.iter().for_each(|key| self.warn_of_idle(&KeyPath::of(section).key(key), why));
        }
        for pool in &config.pools {
            self.warn_of_idle_keys_of(pool, config);
        }
        self.warn_of_a_small_spool(config);
    }

    fn warn_of_idle(&mut self, path: &KeyPath, why: &str) {
        if self.document.is_written(path) {
            let place = self.document.place_of_key(path);
            self.report.warn(place, format!("{path}: changes nothing, because {why}"));
        }
    }

    /// The key is not idle: without it, requests would wait for its default, which may be shorter.
    fn warn_of_a_long_wait(&mut self, path: &KeyPath, longest: Duration) {
        if self.document.is_written(path) {
            let place = self.document.place_of_key(path);
            let longest = Period(longest);
            let why = "a request waits no longer than that";
            self.report.warn(
                place,
                format!("{path}: has no effect above the longest request_timeout, {longest}: {why}"),
            );
        }
    }

    fn warn_of_idle_keys_of(&mut self, pool: &Pool, config: &Config) {
        let path = KeyPath::of("pools").key(&pool.name);
        if let PoolMembers::Workers(workers) = &pool.source {
            if workers.least.is_none() {
                self.warn_of_idle(&path.key("shrink_after"), "workers is not { min, max }");
            }
            if workers.least != Some(0) {
                self.warn_of_idle(&path.key("wake_timeout"), "workers is not { min = 0 }");
            }
        }
        let of_routes = config.routes.iter().filter_map(|route| match &route.target {
            Target::Pool { name, request_timeout } if *name == pool.name => Some(*request_timeout),
            _ => None,
        });
        if let Some(longest) = of_routes.max().filter(|longest| pool.queue.timeout > *longest) {
            self.warn_of_a_long_wait(&path.key("queue").key("timeout"), longest);
        }
    }

    /// One connection can take half of the spool.
    fn warn_of_a_small_spool(&mut self, config: &Config) {
        let stored = config.routes.iter().filter(|route| route.buffer == Buffer::Full);
        let stored = stored.filter(|route| matches!(route.target, Target::Pool { .. }));
        let registrar = config.registrar.as_ref().filter(|registrar| registrar.accept);
        let registered = registrar.filter(|registrar| registrar.buffer == Buffer::Full);
        let limits = stored.map(|route| route.max_body_size);
        let limits = limits.chain(registered.map(|registrar| registrar.max_body_size));
        let longest = limits.max().unwrap_or_default();
        let path = KeyPath::of("server.spool_size");
        let room = config.server.body_memory.saturating_add(config.server.spool_size / 2);
        if longest > room && self.document.is_written(&path) {
            let (half, longest) = (ShowSize(config.server.spool_size / 2), ShowSize(longest));
            let why = format!(
                "one connection can take half of it, {half}, and max_body_size allows {longest}: longer bodies are refused"
            );
            self.report.warn(self.document.place_of_value(&path), format!("{path}: {why}"));
        }
    }
}

fn idle(file: &File, config: &Config) -> [Idle; 14] {
    let Config { server, tls, routes, .. } = config;
    let redirects = tls.as_ref().is_some_and(|tls| tls.redirect_http);
    let trusts = server.trusted_hops.is_some() || !server.trusted_proxies.is_empty();
    let compresses = server.compress.is_some() || routes.iter().any(|route| route.compress.is_some());
    // Hostler shares a response that it does not store from the same memory, and up to the same size.
    let shares = routes.iter().any(|route| route.caching.is_some());
    let caches = routes.iter().any(|route| route.caching.as_ref().is_some_and(|caching| caching.stores));
    let scales =
        |pool: &Pool| matches!(&pool.source, PoolMembers::Workers(workers) if workers.least.is_some());
    let windows = &["http2_max_streams", "http2_stream_window", "http2_connection_window"];
    [
        (server.admin.is_none(), "server", &["admin_hosts", "admin_token_file"], "server.admin is \"off\""),
        (!server.http2, "server", windows, "server.http2 is false"),
        (
            !trusts,
            "server",
            &["client_ip_header"],
            "no proxy is trusted (server.trusted_proxies, trusted_hops)",
        ),
        (!compresses, "server", &["compress_memory"], "no route has compress"),
        (
            !config.pools.iter().any(scales),
            "server",
            &["worker_memory"],
            "no pool has workers = { min, max }",
        ),
        (server.listen.is_empty(), "tls", &["redirect_http"], "server.listen has no address"),
        (!redirects, "tls", &["public_port"], "tls.redirect_http is not true"),
        (
            config.cache.tier.is_none(),
            "cache",
            &["timeout", "max_item", "namespace"],
            "cache.memcached has no server",
        ),
        (!shares, "cache", &["memory", "max_entry"], "no route has cache or collapse"),
        (!caches, "cache", &["memcached"], "no route has cache"),
        (
            server.access_log == AccessLog::Gorouter,
            "log",
            &["sample", "slow"],
            "the log has all requests with server.access_log = \"gorouter\"",
        ),
        (
            server.access_log == AccessLog::Off,
            "log",
            &["sample", "slow"],
            "the log has no requests with server.access_log = \"off\"",
        ),
        (
            file.registrar.as_ref().is_some_and(|registrar| registrar.sharding == Sharding::All),
            "registrar",
            &["isolation_segments"],
            "registrar.sharding is \"all\"",
        ),
        (
            file.traces.endpoint.is_none(),
            "traces",
            &["headers", "tls", "sample", "slow", "parent_based"],
            "there is no traces.endpoint",
        ),
    ]
}
