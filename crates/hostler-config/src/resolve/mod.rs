//! From the configuration as written to its meaning: looks up addresses and folders, fills in defaults that depend on other keys, and
//! refuses combinations that cannot work. Knows no TOML.

mod admin;
mod announce;
mod cache;
mod caching;
mod changes;
mod compress;
mod descriptors;
mod env_file;
mod fallback;
mod files;
mod geo;
mod health_check;
mod idle_keys;
mod log;
mod lookups;
mod member_tls;
mod members;
mod memory;
mod places;
mod platform;
mod pool;
mod postal;
mod programs;
mod rate_limit;
mod redirect;
mod registrar;
mod request_keys;
mod resolver;
mod respond;
mod route;
mod script;
mod server;
mod sticky;
mod tls;
mod traces;
mod when;

use std::path::PathBuf;

use super::document::KeyPath;
use super::file::{File, Platform};
use super::resolved::{Config, Pool, Route, Server, Target, Tls};

pub use resolver::Resolver;
pub use server::overlap;

/// The size of the spool if bodies have an ordinary length.
const SPOOL_SIZE: u64 = 1 << 30;

impl Resolver<'_> {
    /// The meaning of the whole file.
    pub fn config(&mut self, file: File, path: Option<PathBuf>) -> Config {
        let mut server = self.server(&file.server);
        self.admin_token(&mut server);
        let tls = tls::resolve(self, &file.tls, &server);
        self.check_listeners(&server, tls.as_ref());
        let routes: Vec<Route> = self.routes(&file, server.compress.as_ref());
        self.warn_of_lone_folders(&routes);
        self.warn_of_the_published_file(path.as_deref(), &routes);
        server.spool_size = spool_size(&file, &routes);
        let pools = file.pools.iter().map(|(name, pool)| self.pool(name, pool, &routes)).collect::<Vec<_>>();
        self.warn_of_unused(&pools, &routes);
        self.warn_of_own_members(&pools, &server, tls.as_ref());
        self.check_health_pools(&server, &routes);
        self.warn_of_unused_data(&file, &routes);
        let cache = self.cache(&file.cache);
        let log = self.log(&file.log);
        let traces = self.traces(&file.traces);
        let geo = self.geo(file.geo.as_ref(), &server.temp_dir);
        let postal = self.postal(file.postal.as_ref());
        let registrar = self.registrar(&file, &server);
        let platform = match &file.platform {
            Some(written) => Some(platform::resolve(self, written)),
            // Registered routes need settings.
            None => registrar.as_ref().map(|_| Platform::default()),
        };
        let warnings = Vec::new();
        let mut config = Config {
            path,
            server,
            tls,
            pools,
            routes,
            registrar,
            platform,
            cache,
            log,
            traces,
            geo,
            postal,
            spare_descriptors: None,
            warnings,
        };
        self.fit_into_descriptors(&mut config);
        self.fit_into_memory(&config);
        self.warn_of_idle_keys(&file, &config);
        config
    }

    /// The meaning of `[server]`, without the admin token.
    pub fn server(&mut self, written: &super::file::Server) -> Server {
        server::resolve(self, written)
    }

    /// One of the two keys is enough.
    fn check_listeners(&mut self, server: &Server, tls: Option<&Tls>) {
        if server.listen.is_empty() && tls.is_none() && !self.report.has_errors() {
            self.refuse(&KeyPath::of("server.listen"), "at least one address is needed, such as \":8080\"");
        }
    }

    /// Refuses `health_pools` that no route leads to.
    fn check_health_pools(&mut self, server: &Server, routes: &[Route]) {
        for (index, wanted) in server.health_pools.iter().enumerate() {
            let mut used = routes.iter().filter_map(|route| match &route.target {
                Target::Pool { name, .. } => Some(name.as_str()),
                _ => None,
            });
            if !used.any(|name| name == wanted) {
                let path = KeyPath::of("server.health_pools").index(index);
                self.refuse(&path, format!("no route leads to a pool named {wanted:?}"));
            }
        }
    }

    fn warn_of_unused(&mut self, pools: &[Pool], routes: &[Route]) {
        for pool in pools {
            let used = routes
                .iter()
                .any(|route| matches!(&route.target, Target::Pool { name, .. } if *name == pool.name));
            let path = KeyPath::of("pools").key(&pool.name);
            if !used {
                self.report
                    .warn(self.document.place_of_key(&path), format!("{path}: no route leads to this pool"));
            }
        }
    }
}

/// The value as written, or room for a few of the longest bodies.
fn spool_size(file: &File, routes: &[Route]) -> u64 {
    let registered = file.registrar.as_ref().and_then(|registrar| registrar.max_body_size);
    let limits = routes.iter().map(|route| route.max_body_size).chain(registered.map(|size| size.0));
    let longest = limits.max().unwrap_or_default().max(file.server.max_body_size.0);
    file.server.spool_size.map_or(SPOOL_SIZE.max(longest.saturating_mul(4)), |size| size.0)
}
