//! The meaning of `[cache]`. Knows no requests.

use hostler_cache::TierSettings;

use super::Resolver;
use crate::document::KeyPath;
use crate::file;
use crate::resolved::Cache;
use crate::value::{MemcachedAddress, ShowSize};

/// A key in memcached has at most 250 bytes, and the namespace is only its beginning.
const LONGEST_NAMESPACE: usize = 64;

impl Resolver<'_> {
    /// The meaning of `[cache]`, also if the section is not written.
    pub(super) fn cache(&mut self, written: &file::Cache) -> Cache {
        let section = KeyPath::of("cache");
        if written.max_entry.0 > written.memory.0 && self.document.is_written(&section.key("max_entry")) {
            let memory = ShowSize(written.memory.0);
            self.refuse(&section.key("max_entry"), format!("is more than memory ({memory})"));
        }
        let namespace = &written.namespace;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if namespace.is_empty() || namespace.len() > LONGEST_NAMESPACE || !namespace.bytes().all(is_plain) {
            let why = format!("must have 1 to {LONGEST_NAMESPACE} letters, digits, '-', '_' and '.'");
            self.refuse(&section.key("namespace"), why);
        }
        let servers = self.memcached_servers(&section, &written.memcached.0);
        let tier = (!servers.is_empty()).then(|| TierSettings {
            servers,
            namespace: namespace.as_str().into(),
            timeout: written.timeout.0,
            max_item: usize::try_from(written.max_item.0).unwrap_or(usize::MAX),
        });
        let max_entry = usize::try_from(written.max_entry.0.min(written.memory.0)).unwrap_or(usize::MAX);
        Cache { memory: written.memory.0, max_entry, tier }
    }

    fn memcached_servers(&mut self, section: &KeyPath, written: &[MemcachedAddress]) -> Vec<Box<str>> {
        let list = section.key("memcached");
        let mut servers: Vec<Box<str>> = Vec::new();
        for (index, address) in written.iter().enumerate() {
            let server = match address {
                MemcachedAddress::Tcp(..) => address.to_string(),
                MemcachedAddress::Unix(socket) => {
                    let here = self.item(&list, index);
                    format!("unix:{}", self.socket_at(&here, socket).display())
                }
            };
            if servers.iter().any(|other| **other == *server) {
                self.refuse(&self.item(&list, index), "is in the list twice");
            }
            servers.push(server.into());
        }
        servers
    }
}
