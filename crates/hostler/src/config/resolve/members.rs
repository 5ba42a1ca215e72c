//! The meaning of a pool's members: where they listen, and over what. Knows no workers.

use super::Resolver;
use crate::config::document::KeyPath;
use crate::config::file::Pool;
use crate::config::resolved::{Endpoint, Members};
use crate::config::value::MemberAddress;

/// A Unix socket's path has to fit into `sun_path`, with its closing NUL.
const LONGEST_SOCKET_PATH: usize = 107;

impl Resolver<'_> {
    /// The meaning of a pool's `members`, and of the keys that are about them.
    pub(super) fn members(&mut self, path: &KeyPath, pool: &Pool, written: &[MemberAddress]) -> Members {
        for key in WORKERS_ONLY {
            let here = path.key(key);
            if self.document.is_written(&here) {
                let place = self.document.place_of_key(&here);
                self.report
                    .error(place, format!("{here}: has no meaning for members: somebody else runs them"));
            }
        }
        let endpoints = self.endpoints(&path.key("members"), written);
        let here = path.key("tls");
        let has_tls = endpoints.iter().any(|endpoint| matches!(endpoint, Endpoint::Tls { .. }));
        if !has_tls && self.document.is_written(&here) {
            let place = self.document.place_of_key(&here);
            self.report.error(place, format!("{here}: has no meaning: no member begins with https://"));
        }
        let tls = if has_tls { self.member_tls(&here, &pool.tls) } else { None };
        Members { endpoints, protocol: pool.protocol, tls }
    }

    fn endpoints(&mut self, list: &KeyPath, written: &[MemberAddress]) -> Vec<Endpoint> {
        if written.is_empty() && !self.report.has_errors() {
            self.refuse(list, "at least one member is needed");
        }
        let mut found: Vec<Endpoint> = Vec::new();
        for (index, member) in written.iter().enumerate() {
            let endpoint = self.endpoint(&list.index(index), member);
            if found.contains(&endpoint) {
                self.refuse(
                    &list.index(index),
                    format!("{endpoint} is there twice; raise concurrency instead"),
                );
            }
            found.push(endpoint);
        }
        found
    }

    fn endpoint(&mut self, path: &KeyPath, written: &MemberAddress) -> Endpoint {
        match written {
            MemberAddress::Tcp(host, port) => Endpoint::Tcp { host: host.clone(), port: *port },
            MemberAddress::Tls(host, port) => {
                if rustls::pki_types::ServerName::try_from(host.as_str()).is_err() {
                    self.refuse(path, format!("\"{host}\" is no name that a certificate could have"));
                }
                Endpoint::Tls { host: host.clone(), port: *port }
            }
            MemberAddress::Unix(socket) => {
                let socket = self.folder.join(socket);
                if socket.as_os_str().len() > LONGEST_SOCKET_PATH {
                    self.refuse(
                        path,
                        format!("a Unix socket's path has at most {LONGEST_SOCKET_PATH} bytes"),
                    );
                }
                Endpoint::Unix(socket)
            }
        }
    }
}

/// What has a meaning for workers alone.
const WORKERS_ONLY: [&str; 15] = [
    "workers",
    "bind",
    "port",
    "env",
    "cwd",
    "warmup",
    "health",
    "start_timeout",
    "stop_timeout",
    "hang_timeout",
    "max_requests",
    "max_age",
    "max_memory",
    "gc",
    "poison",
];
