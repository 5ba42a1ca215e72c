//! The meaning of `[geo]`. Knows no requests.

use super::Resolver;
use crate::config::document::KeyPath;
use crate::config::file;
use crate::config::resolved::Geo;

impl Resolver<'_> {
    /// The meaning of `[geo]`; none where nothing is written.
    pub(super) fn geo(&mut self, written: Option<&file::Geo>) -> Option<Geo> {
        let written = written?;
        let databases = self.data_files(&KeyPath::of("geo"), "databases", &written.databases);
        Some(Geo { databases, lookups: written.lookups })
    }
}
