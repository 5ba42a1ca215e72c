//! The meaning of `[geo]`. Knows no requests.

use std::path::Path;

use hostler_lookup::Mapping;
use hostler_lookup::geo::GeoDatabases;

use super::Resolver;
use crate::document::KeyPath;
use crate::file;
use crate::resolved::Geo;

impl Resolver<'_> {
    /// The meaning of `[geo]`. `None` if it is not written. A reload looks at the databases while requests are served, so it looks at copies:
    /// a program that writes into a mapped file would end Hostler. A start makes its copies after this look, and to copy twice takes too long.
    pub(super) fn geo(&mut self, written: Option<&file::Geo>, temp_dir: &Path) -> Option<Geo> {
        let written = written?;
        let section = KeyPath::of("geo");
        let databases = self.data_files(&section, "databases", &written.databases);
        let mapping = if self.serves { Mapping::Copy(temp_dir) } else { Mapping::InPlace };
        if databases.len() == written.databases.0.len()
            && let Err(error) = GeoDatabases::open(&databases, mapping)
        {
            let index = databases.iter().position(|path| path == error.path()).unwrap_or(0);
            self.refuse(&self.item(&section.key("databases"), index), error);
        }
        Some(Geo {
            databases,
            lookups: written.lookups,
            decimals: u8::try_from(written.decimals.get()).expect("invariant: a count up to 6"),
            max_age: written.max_age.0,
            cors: written.cors.0.clone(),
            attribution: written.attribution.clone(),
        })
    }
}
