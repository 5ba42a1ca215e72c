//! What a process has told routers about its pools, in lines for its successor. Knows no connection.

use std::sync::Arc;

use hostler_config::Advertise;
use serde::{Deserialize, Serialize};

/// A name under which routers know a pool of a predecessor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldName {
    /// The name. No line about a registered route has this field.
    told: String,
    pool: String,
    at: String,
}

impl ToldName {
    pub fn new(at: &Advertise, pool: &str, name: &str) -> Self {
        Self { told: name.to_owned(), pool: pool.to_owned(), at: place(at) }
    }

    /// As a line of its own. An older version ignores it, because it has no address.
    pub fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// Those in what a predecessor has exported.
    pub fn exported(lines: &[u8]) -> Vec<Self> {
        lines.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }

    pub fn name(&self) -> &str {
        &self.told
    }

    /// Whether routers know the name at this host and port. There they have one member, with TLS or without.
    pub fn is_at(&self, address: &Advertise) -> bool {
        self.address().is_some_and(|told| (&told.host, told.port) == (&address.host, address.port))
    }

    /// The address that routers were told.
    pub(super) fn address(&self) -> Option<Advertise> {
        let (scheme, rest) = self.at.split_once(' ')?;
        let (port, host) = rest.split_once(' ')?;
        Some(Advertise { host: host.to_owned(), port: port.parse().ok()?, tls: scheme == "https" })
    }

    /// The pool and the name.
    pub(super) fn entry(&self) -> (Arc<str>, String) {
        (self.pool.as_str().into(), self.told.clone())
    }
}

fn place(Advertise { host, port, tls }: &Advertise) -> String {
    format!("{} {port} {host}", if *tls { "https" } else { "http" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_successor_reads_the_names_of_its_own_address_among_other_lines() {
        let at = |port| Advertise { host: "::1".into(), port, tls: port == 1 };
        let name = ToldName::new(&at(1), "web", "a.test/x");
        let registration = b"{\"host\":\"::1\",\"port\":1,\"uris\":[\"b.test\"]}\n";
        let read = ToldName::exported(&[&registration[..], &name.line()[..], &b"\n"[..]].concat());
        assert_eq!(read, [name]);
        assert_eq!(read[0].entry(), ("web".into(), "a.test/x".to_owned()));
        assert_eq!(read[0].address(), Some(at(1)));
        assert!(read[0].is_at(&Advertise { tls: false, ..at(1) }) && !read[0].is_at(&at(2)));
    }
}
