//! Which files and folders `--watch` watches below one path. Watches nothing.

use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::server::run_options::WatchOptions;

/// What is never watched, as lines of a `.gitignore`. A pattern of the operator with `!` takes one back.
const IGNORED: [&str; 7] =
    [".*", "!.env", "!.env.*", "node_modules/", "bower_components/", "coverage/", "logs/"];

/// The endings of files that a Node app reads when it starts.
const ENDINGS: [&str; 26] = [
    "js",
    "mjs",
    "cjs",
    "jsx",
    "ts",
    "mts",
    "cts",
    "tsx",
    "json",
    "node",
    "wasm", // code
    "html",
    "ejs",
    "pug",
    "hbs",
    "handlebars",
    "mustache",
    "njk",
    "liquid",
    "eta", // templates
    "graphql",
    "gql",
    "yaml",
    "yml",
    "toml",
    "xml", // schemas and settings
];

/// Chooses files below one path.
pub(super) struct FileFilter {
    /// The folder that is watched.
    pub root: PathBuf,
    /// Only this file in it.
    only: Option<PathBuf>,
    ignored: Gitignore,
    endings: Vec<String>,
}

impl FileFilter {
    /// For a folder or a file. The folders of `own` do not count, because Hostler writes into them.
    pub fn new(path: &Path, options: &WatchOptions, own: &[PathBuf]) -> Result<Self, String> {
        let whole =
            path.canonicalize().map_err(|error| format!("cannot watch {}: {error}", path.display()))?;
        let (root, only) = match whole.parent() {
            Some(parent) if whole.is_file() => (parent.to_owned(), Some(whole.clone())),
            _ => (whole, None),
        };
        let mut builder = GitignoreBuilder::new(&root);
        let own = own.iter().filter_map(|folder| folder.canonicalize().ok());
        let own = own.filter_map(|folder| Some(format!("/{}/", folder.strip_prefix(&root).ok()?.to_str()?)));
        let lines = IGNORED.map(str::to_owned).into_iter().chain(own.filter(|line| line != "//"));
        for line in lines.chain(options.ignored.iter().cloned()) {
            builder
                .add_line(None, &line)
                .map_err(|error| format!("--watch-ignore {line}: not a pattern of a .gitignore: {error}"))?;
        }
        let ignored = builder.build().map_err(|error| format!("--watch-ignore: {error}"))?;
        let endings = match options.endings.as_slice() {
            [] => ENDINGS.map(str::to_owned).to_vec(),
            endings => endings.iter().map(|ending| ending.trim_start_matches('.').to_owned()).collect(),
        };
        Ok(Self { root, only, ignored, endings })
    }

    /// Whether a change of this file restarts the workers.
    pub fn counts(&self, file: &Path) -> bool {
        if let Some(only) = &self.only {
            return file == only;
        }
        self.has_ending(file) && !self.is_ignored(file, false)
    }

    /// Whether changes in this folder may count.
    pub fn enters(&self, folder: &Path) -> bool {
        folder == self.root || (self.only.is_none() && !self.is_ignored(folder, true))
    }

    fn has_ending(&self, file: &Path) -> bool {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_env = name == ".env" || name.starts_with(".env.");
        is_env
            || name.rsplit_once('.').is_some_and(|(_, ending)| self.endings.iter().any(|one| one == ending))
    }

    fn is_ignored(&self, path: &Path, is_folder: bool) -> bool {
        let Ok(below) = path.strip_prefix(&self.root) else { return true };
        self.ignored.matched_path_or_any_parents(below, is_folder).is_ignore()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(folder: &Path, ignored: &[&str], endings: &[&str]) -> FileFilter {
        let text = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        let options = WatchOptions { paths: vec![], ignored: text(ignored), endings: text(endings) };
        FileFilter::new(folder, &options, &[folder.join("spool"), folder.to_owned()]).unwrap()
    }

    #[test]
    fn code_templates_and_settings_count_and_what_tools_write_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("spool")).unwrap();
        let filter = filter(&root, &[], &[]);
        for yes in [
            "app.js",
            "src/deep/page.tsx",
            "views/page.ejs",
            ".env",
            ".env.local",
            "dist/main.js",
            "data.json",
        ] {
            assert!(filter.counts(&root.join(yes)), "{yes}");
        }
        for no in [
            "app.js~",
            ".app.js.swp",
            "4913",
            "#app.js#",
            "photo.png",
            "README.md",
            "style.css",
            "node_modules/a/index.js",
            "packages/b/node_modules/a/index.js",
            ".git/index.json",
            ".next/server/app.js",
            "coverage/report.html",
            "spool/a.json",
        ] {
            assert!(!filter.counts(&root.join(no)), "{no}");
        }
        assert!(filter.enters(&root) && filter.enters(&root.join("src")));
        assert!(!filter.enters(&root.join("a/node_modules")) && !filter.enters(&root.join(".git")));
    }

    #[test]
    fn patterns_and_endings_of_the_operator_are_used() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let filter = filter(&root, &["/data", "*.test.js", "!coverage"], &["js", ".sql"]);
        for (file, counts) in [
            ("app.js", true),
            ("schema.sql", true),
            ("page.ts", false),
            (".env", true),
            ("data/a.js", false),
            ("src/data/a.js", true),
            ("src/a.test.js", false),
            ("coverage/a.js", true),
        ] {
            assert_eq!(filter.counts(&root.join(file)), counts, "{file}");
        }
    }

    #[test]
    fn a_path_may_be_one_file_and_must_exist() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::write(root.join("settings.ini"), "").unwrap();
        let filter = filter(&root.join("settings.ini"), &[], &[]);
        assert!(filter.counts(&root.join("settings.ini")) && !filter.counts(&root.join("app.js")));
        assert!(filter.enters(&root) && !filter.enters(&root.join("src")));
        let missing = FileFilter::new(&root.join("no"), &WatchOptions::default(), &[]);
        assert!(missing.err().is_some_and(|error| error.contains("cannot watch")));
    }
}
