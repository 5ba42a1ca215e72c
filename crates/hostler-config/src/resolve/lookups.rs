//! The meaning of routes with `geo` or `postal`. Checks that their data is configured. Knows no data.

use std::path::PathBuf;

use super::Resolver;
use crate::access;
use crate::document::KeyPath;
use crate::file::{self, File};
use crate::resolved::{Route, Target};
use crate::value::{FileName, OneOrMany};

impl Resolver<'_> {
    /// Lookups that Hostler answers itself. A route may have both.
    pub(super) fn native(&mut self, path: &KeyPath, written: &file::Route, file: &File) -> Option<Target> {
        let needs = [
            ("geo", "databases", written.geo, file.geo.is_some()),
            ("postal", "data", written.postal, file.postal.is_some()),
        ];
        for (section, key, wanted, there) in needs {
            if wanted {
                self.needs_data(path, section, (section, key), there);
            }
        }
        Some(Target::Native { geo: written.geo, postal: written.postal })
    }

    /// Refuses a key whose data is not configured.
    pub(super) fn needs_data(
        &mut self,
        route: &KeyPath,
        wanted: &str,
        (section, key): (&'static str, &str),
        there: bool,
    ) {
        if !there && !self.document.is_written(&KeyPath::of(section)) {
            self.refuse(&route.key(wanted), format!("needs data; add [{section}] with {key}"));
        }
    }

    /// The data files that exist.
    pub(super) fn data_files(
        &mut self,
        section: &KeyPath,
        key: &str,
        names: &OneOrMany<FileName>,
    ) -> Vec<PathBuf> {
        let list = section.key(key);
        if names.0.is_empty() && !self.report.has_errors() {
            self.refuse(section, format!("{key} is missing; name at least one file"));
        }
        let mut files = Vec::new();
        for (index, name) in names.0.iter().enumerate() {
            let file = self.folder.join(&name.0);
            let place = self.item(&list, index);
            match std::fs::metadata(&file) {
                Ok(about) if about.is_file() => files.push(file),
                Ok(_) => self.refuse(&place, format!("{} is not a file", file.display())),
                Err(error) => {
                    self.refuse(&place, format!("{} {}", file.display(), access::unreadable(&error)));
                }
            }
        }
        files
    }

    /// The path of an item. A single text in place of a list has no index.
    pub(super) fn item(&self, list: &KeyPath, index: usize) -> KeyPath {
        let item = list.index(index);
        if self.document.is_written(&item) { item } else { list.clone() }
    }

    /// Warns about data that no route uses, because it costs memory.
    pub(super) fn warn_of_unused_data(&mut self, file: &File, routes: &[Route]) {
        let used = |of: fn(&Target) -> bool| routes.iter().any(|route| of(&route.target));
        let sections = [
            (
                "geo",
                file.geo.is_some(),
                routes.iter().any(|route| route.changes.geo_headers)
                    || used(|target| matches!(target, Target::Native { geo: true, .. })),
            ),
            (
                "postal",
                file.postal.is_some(),
                used(|target| matches!(target, Target::Native { postal: true, .. })),
            ),
        ];
        for (section, there, used) in sections {
            if there && !used {
                let path = KeyPath::of(section);
                let place = self.document.place_of_key(&path);
                let ways =
                    if section == "geo" { "geo = true or geo_headers = true" } else { "postal = true" };
                self.report.warn(place, format!("{section}: no route has {ways}"));
            }
        }
    }
}
