//! The Rust sources of the repository, and the list of violations of a rule. Knows no rule.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A file with its text.
#[derive(Clone)]
pub struct Source {
    /// Relative to the repository's root, with forward slashes.
    pub path: String,
    pub text: String,
}

impl Source {
    /// The text before the first module of tests.
    pub fn text_without_tests(&self) -> &str {
        let tests = self.text.find("\n#[cfg(test)]\nmod tests {").unwrap_or(self.text.len());
        &self.text[..tests]
    }

    /// The lines of that text, numbered from 1.
    pub fn without_tests(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text_without_tests().lines().enumerate().map(|(at, line)| (at + 1, line))
    }

    /// All lines except comments, numbered from 1.
    pub fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate().map(|(at, line)| (at + 1, line));
        lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// A file that contains only tests.
    pub fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }
}

/// Fails with all violations of a rule at once.
#[derive(Default)]
pub struct Broken(String);

impl Broken {
    pub fn at(&mut self, source: &Source, line: usize, what: std::fmt::Arguments<'_>) {
        self.in_file(&source.path, line, what);
    }

    pub fn in_file(&mut self, path: &str, line: usize, what: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{path}:{line}: {what}").unwrap();
    }

    #[track_caller]
    pub fn check(self) {
        assert!(self.0.is_empty(), "\n{}", self.0);
    }
}

/// All Rust sources of the repository.
pub fn all() -> Vec<Source> {
    [sources("crates"), sources("fuzz")].into_iter().flatten().collect()
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The Rust sources below a folder of the repository.
pub fn sources(folder: &str) -> Vec<Source> {
    let root = root();
    let mut found = Vec::new();
    collect(&root.join(folder), &mut found);
    found.sort();
    let read = |path: PathBuf| Source {
        text: std::fs::read_to_string(&path).unwrap(),
        path: path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/"),
    };
    found.into_iter().map(read).collect()
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    // A planned library may have no folder yet.
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true if path.ends_with("target") => {}
            true => collect(&path, found),
            false if path.extension().is_some_and(|extension| extension == "rs") => found.push(path),
            false => {}
        }
    }
}
