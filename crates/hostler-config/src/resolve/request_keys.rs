//! The meaning of lists that give requests their keys: `queue.fair` and `rate_limit.key`. Knows no requests.

use super::Resolver;
use crate::document::KeyPath;
use crate::file::FairBy;

impl Resolver<'_> {
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
