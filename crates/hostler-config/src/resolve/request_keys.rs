//! The meaning of lists that give requests their keys: `queue.fair` and `rate_limit.key`. Knows no requests.

use super::Resolver;
use crate::document::KeyPath;
use crate::file::{FairBy, File, Route};

impl Resolver<'_> {
    /// The own list of the route at this path. Its pool must be fair: otherwise requests of other routes have no key.
    pub(super) fn route_fair(
        &mut self,
        route: &KeyPath,
        written: &Route,
        file: &File,
    ) -> Option<Vec<FairBy>> {
        let (list, name) = (written.fair.as_ref()?, written.pool.as_ref()?);
        let path = route.key("fair");
        // What could not be read has an error already.
        if list.0.is_empty() && !self.report.has_errors() {
            self.refuse(&path, "is empty; leave it out for the list of the pool");
        }
        let of_pool = file.pools.get(name).map_or(&[][..], |pool| &pool.queue.fair.0);
        if of_pool.is_empty() && !self.report.has_errors() {
            let why =
                format!("needs queue.fair of the pool \"{name}\", which serves requests in order of arrival");
            self.refuse(&path, why);
        }
        Some(self.request_keys(&path, &list.0))
    }

    /// The list at this path. Warns of entries that no request ever reaches.
    pub(super) fn request_keys(&mut self, path: &KeyPath, written: &[FairBy]) -> Vec<FairBy> {
        let client = written.iter().position(|by| *by == FairBy::Client);
        if let Some(after) = client.map(|client| client + 1).filter(|after| *after < written.len()) {
            let here = path.index(after);
            let why = format!(
                "\"{}\" never counts, because each request has a client; write \"client\" last",
                written[after]
            );
            self.report.warn(self.document.place_of_value(&here), format!("{here}: {why}"));
        }
        written.to_vec()
    }
}
