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

    /// The pool and the name, if routers were told this address.
    pub fn at(&self, address: &Advertise) -> Option<(Arc<str>, String)> {
        (self.at == place(address)).then(|| (self.pool.as_str().into(), self.told.clone()))
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
        let at = |port| Advertise { host: "::1".into(), port, tls: true };
        let name = ToldName::new(&at(1), "web", "a.test/x");
        let registration = b"{\"host\":\"::1\",\"port\":1,\"uris\":[\"b.test\"]}\n";
        let read = ToldName::exported(&[&registration[..], &name.line()[..], &b"\n"[..]].concat());
        assert_eq!(read, [name]);
        assert_eq!(read[0].at(&at(1)), Some(("web".into(), "a.test/x".to_owned())));
        assert_eq!(read[0].at(&at(2)), None);
    }
}
