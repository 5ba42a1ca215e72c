//! The meaning of `static`: checks the folder and its pages. Knows no requests.

use std::path::{Component, Path, PathBuf};

use super::Resolver;
use super::changes::field_value;
use crate::access;
use crate::document::KeyPath;
use crate::file;
use crate::pattern::{MatchPattern, PathPattern};
use crate::resolved::{Rewrite, Route, StaticFiles, Target};
use crate::value::TextOr;

impl Resolver<'_> {
    /// The meaning of a route's `static`. Reports errors.
    pub(super) fn static_files(
        &mut self,
        path: &KeyPath,
        written: &TextOr<file::Static>,
        pattern: &MatchPattern,
        rewrite: Option<&Rewrite>,
    ) -> Option<StaticFiles> {
        let (at, written) = match written {
            TextOr::Word(dir) => {
                (path.clone(), &file::Static { dir: Some(dir.clone()), ..file::Static::default() })
            }
            TextOr::Value(table) => (path.key("dir"), table),
        };
        let Some(dir) = &written.dir else {
            if !self.document.is_written(&at) {
                self.refuse(path, "dir is missing; write for example dir = \"public\"");
            }
            return None;
        };
        let dir = self.folder_at(&at, dir);
        self.warn_of_the_missing_prefix(&at, &dir, pattern, rewrite);
        if field_value(&written.cache_control).is_err() {
            self.refuse(&path.key("cache_control"), "is not a valid value of a header field");
        }
        let index = Some(written.index.clone()).filter(|index| !index.is_empty());
        if index.as_deref().is_some_and(|index| !is_plain(Path::new(index)) || index.contains('/')) {
            self.refuse(&path.key("index"), "is not the name of a file, such as \"index.html\"");
        }
        let fallback = self.page(&path.key("fallback"), &dir, written.fallback.as_deref());
        let not_found = self.page(&path.key("not_found"), &dir, written.not_found.as_deref());
        let list = path.key("immutable");
        let immutable = written.immutable.iter().enumerate();
        let immutable = immutable.filter_map(|(at, text)| self.path_pattern(&list.index(at), text)).collect();
        Some(StaticFiles {
            is_local: access::is_on_local_disk(&dir),
            dir,
            index,
            fallback,
            not_found,
            cache_control: written.cache_control.clone(),
            immutable,
            precompressed: written.precompressed,
            dotfiles: written.dotfiles,
        })
    }

    fn page(&mut self, path: &KeyPath, dir: &Path, name: Option<&str>) -> Option<PathBuf> {
        let name = Path::new(name?);
        let file = dir.join(name);
        if !is_plain(name) {
            self.refuse(path, format!("{} is not a file in dir", file.display()));
        } else if let Err(why) = access::file(&file) {
            self.refuse(path, why);
        }
        Some(name.to_path_buf())
    }

    fn path_pattern(&mut self, path: &KeyPath, text: &str) -> Option<PathPattern> {
        let parsed = text.parse::<MatchPattern>();
        match parsed {
            Ok(MatchPattern { host: None, path }) if text.starts_with('/') => Some(path),
            Err(why) => {
                self.refuse(path, why);
                None
            }
            Ok(_) => {
                self.refuse(path, format!("{text:?} is not a path in dir, such as \"/assets/*\""));
                None
            }
        }
    }

    /// nginx has `root` and `alias`, which are easy to confuse. The wrong one leads to 404 for every file.
    fn warn_of_the_missing_prefix(
        &mut self,
        at: &KeyPath,
        dir: &Path,
        pattern: &MatchPattern,
        rewrite: Option<&Rewrite>,
    ) {
        let PathPattern::Prefix(prefix) = &pattern.path else { return };
        let below = prefix.trim_start_matches('/');
        if rewrite.is_none() && !below.is_empty() && dir.is_dir() && !dir.join(below).exists() {
            let place = self.document.place_of_value(at);
            let written = self.document.original(at);
            let file = dir.join(below).join("x");
            let why =
                format!("Hostler looks for {prefix}/x at {}, and that folder does not exist", file.display());
            self.report.warn(
                place,
                format!("{written}: {why}; rewrite = {{ strip_prefix = \"{prefix}\" }} removes the prefix"),
            );
        }
    }

    /// The folder of the configuration file is not one of files for clients: they can read the configuration, and often the source of the app.
    pub(super) fn warn_of_the_published_file(&mut self, file: Option<&Path>, routes: &[Route]) {
        let file = file.and_then(|file| self.load_context.folder.join(file).canonicalize().ok());
        let Some(file) = file else { return };
        for (index, route) in routes.iter().enumerate() {
            let files = match &route.target {
                Target::Static(files) => Some(files),
                _ => route.files_first.as_ref(),
            };
            if files.is_some_and(|files| publishes(files, route, &file)) {
                let here = KeyPath::of("routes").index(index).key("static");
                let why = format!(
                    "clients can read {}, which is in this folder; serve a folder that has only files for them, such as \"public\"",
                    file.display()
                );
                self.report.warn(self.document.place_of_value(&here), format!("{here}: {why}"));
            }
        }
    }
}

/// Whether a request for this route can get the file.
fn publishes(files: &StaticFiles, route: &Route, file: &Path) -> bool {
    let Ok(folder) = files.dir.canonicalize() else { return false };
    let Some(below) = file.strip_prefix(folder).ok().and_then(Path::to_str) else { return false };
    if !files.dotfiles && below.split('/').any(|name| name.starts_with('.')) {
        return false;
    }
    let path = format!("/{below}");
    // As a client asks for it.
    let asked = match &route.changes.rewrite {
        Some(Rewrite { strip, add }) => path.strip_prefix(add.as_str()).map(|rest| format!("{strip}{rest}")),
        None => Some(path),
    };
    asked.is_some_and(|asked| route.pattern.path.matches(asked.as_bytes()))
}

/// Names only, and a relative path.
fn is_plain(path: &Path) -> bool {
    let mut parts = path.components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}
