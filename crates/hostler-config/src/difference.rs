//! The differences between two configurations: pools by name, routes as a whole, keys of `[server]` one by one. Does not know what can
//! change while Hostler runs.

use super::resolved::{Cache, Config, Pool, Server, Tls};

/// The differences from one configuration to the next.
#[derive(Debug, PartialEq)]
pub struct Difference<'a> {
    /// The keys of `[server]` whose meaning has changed.
    pub server: Vec<&'static str>,
    /// The keys of `[tls]` whose meaning has changed.
    pub tls: Vec<&'static str>,
    /// The pools that have changed, in order of their names.
    pub pools: Vec<PoolChange<'a>>,
    /// Whether any route has changed, including the contents of its fallback.
    pub routes: bool,
    /// Whether `[platform]` has changed.
    pub platform: bool,
    /// Which of the sections `[geo]` and `[postal]` have changed.
    pub lookups: Vec<&'static str>,
    /// The keys of `[cache]` whose meaning has changed. `tier` stands for all keys about memcached.
    pub cache: Vec<&'static str>,
    /// Whether `[log]` has changed.
    pub log: bool,
    /// Whether `[traces]` has changed.
    pub traces: bool,
    /// Whether `[registrar]` has changed.
    pub registrar: bool,
}

/// One pool that has changed.
#[derive(Debug, PartialEq)]
pub enum PoolChange<'a> {
    /// A new pool.
    Added(&'a Pool),
    /// A pool that is gone.
    Removed(&'a Pool),
    /// The old pool and the new pool.
    Changed(&'a Pool, &'a Pool),
}

impl Config {
    /// The differences to `newer`.
    pub fn difference<'a>(&'a self, newer: &'a Self) -> Difference<'a> {
        let kept_or_removed = self.pools.iter().filter_map(|old| match newer.pool(&old.name) {
            None => Some(PoolChange::Removed(old)),
            Some(new) if new == old => None,
            Some(new) => Some(PoolChange::Changed(old, new)),
        });
        let added = newer.pools.iter().filter(|new| self.pool(&new.name).is_none()).map(PoolChange::Added);
        let mut pools: Vec<_> = kept_or_removed.chain(added).collect();
        pools.sort_by(|one, other| one.name().cmp(other.name()));
        Difference {
            server: changed_keys(&self.server, &newer.server),
            tls: changed_tls(self.tls.as_ref(), newer.tls.as_ref()),
            pools,
            routes: self.routes != newer.routes,
            platform: self.platform != newer.platform,
            lookups: [("geo", self.geo != newer.geo), ("postal", self.postal != newer.postal)]
                .into_iter()
                .filter_map(|(section, changed)| changed.then_some(section))
                .collect(),
            cache: changed_cache(&self.cache, &newer.cache),
            log: self.log != newer.log,
            traces: self.traces != newer.traces,
            registrar: self.registrar != newer.registrar,
        }
    }

    /// The pool of this name.
    pub fn pool(&self, name: &str) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.name == name)
    }
}

impl Difference<'_> {
    /// Whether both configurations mean the same.
    pub fn is_empty(&self) -> bool {
        let sections = self.platform || self.registrar || self.routes || self.log || self.traces;
        let sections = sections || !self.lookups.is_empty() || !self.cache.is_empty();
        self.server.is_empty() && self.tls.is_empty() && self.pools.is_empty() && !sections
    }
}

impl PoolChange<'_> {
    /// The pool's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Added(pool) | Self::Removed(pool) | Self::Changed(pool, _) => &pool.name,
        }
    }
}

macro_rules! changed {
    ($section:ident, $old:ident, $new:ident, [$($key:ident),+ $(,)?]) => {{
        // Without `..`: a new field that is not compared does not compile.
        let $section { $($key: _),+ } = $old;
        let keys = [$((stringify!($key), $old.$key != $new.$key)),+];
        keys.into_iter().filter_map(|(key, changed)| changed.then_some(key)).collect()
    }};
}

fn changed_keys(old: &Server, new: &Server) -> Vec<&'static str> {
    changed!(
        Server,
        old,
        new,
        [
            listen,
            admin,
            admin_hosts,
            admin_token_file,
            admin_token,
            threads,
            header_timeout,
            body_timeout,
            min_receive_rate,
            min_send_rate,
            min_slot_rate,
            send_timeout,
            idle_timeout,
            drain_timeout,
            drain_wait,
            health_path,
            health_pools,
            log_health_checks,
            upgrade_timeout,
            worker_memory,
            max_header_size,
            max_header_fields,
            max_interim_answers,
            body_memory,
            request_memory,
            temp_dir,
            spool_size,
            answer_memory,
            answer_buffer,
            compress,
            compress_memory,
            max_connections,
            client_connections,
            client_requests,
            http2,
            http2_max_streams,
            http2_stream_window,
            http2_connection_window,
            access_log,
            trusted_proxies,
            trusted_hops,
            proxy_protocol,
            client_ip_header,
        ]
    )
}

fn changed_cache(old: &Cache, new: &Cache) -> Vec<&'static str> {
    changed!(Cache, old, new, [memory, max_entry, tier])
}

/// A `[tls]` section that comes or goes means a listener that comes or goes.
fn changed_tls(old: Option<&Tls>, new: Option<&Tls>) -> Vec<&'static str> {
    match (old, new) {
        (None, None) => Vec::new(),
        (Some(old), Some(new)) => changed!(
            Tls,
            old,
            new,
            [
                listen,
                certificates,
                strict_sni,
                min_version,
                client_certificates,
                redirect_http,
                public_port,
                hsts,
            ]
        ),
        _ => vec!["listen"],
    }
}
