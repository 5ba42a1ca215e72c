//! The routes of one host in a list. Knows no rules.

use tokio::time::Instant;

use super::RouteEntry;

/// The routes of one host, sorted by path. Most hosts have one route, so a list is smaller than a tree or a hash table.
#[derive(Debug, Default)]
pub(super) struct Routes(pub Vec<(Box<str>, RouteEntry)>);

impl Routes {
    pub fn find(&self, path: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(path))
    }

    pub fn entry(&mut self, path: &str, now: Instant) -> &mut RouteEntry {
        let at = self.find(path).unwrap_or_else(|at| {
            if self.0.is_empty() {
                self.0.reserve_exact(1);
            }
            self.0.insert(at, (path.into(), RouteEntry::new(now)));
            at
        });
        &mut self.0[at].1
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &RouteEntry)> {
        self.0.iter().map(|(path, entry)| (&**path, entry))
    }
}
