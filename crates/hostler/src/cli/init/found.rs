//! What `hostler init` has found: pools, and folders with files of a build. Does not know how it was found.

use std::collections::BTreeMap;

/// A pool to write. It has no command if Hostler serves only files.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FoundPool {
    /// Its name, as far as the source names it.
    pub name: String,
    /// What it is, for people: `a Next.js app`.
    pub what: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its folder, relative to the file. `None`: the folder of the file.
    pub cwd: Option<String>,
    pub env: BTreeMap<String, String>,
    /// Further keys of the pool.
    pub keys: Vec<FoundKey>,
    /// What was found, one sentence a line.
    pub found: Vec<String>,
    /// What is not known, or needs a look.
    pub open: Vec<String>,
    /// Folders that Hostler serves itself.
    pub files: Vec<FoundFiles>,
    /// Commands to run before the start.
    pub steps: Vec<String>,
    /// Whether it needs a host or path of its own, because another pool gets everything else.
    pub is_further: bool,
}

impl FoundPool {
    /// The preload works in Node only. Other programs get their port in a variable.
    pub fn consider_runtime(&mut self) {
        let program =
            self.command.first().map_or("", |program| program.rsplit('/').next().unwrap_or_default());
        if ["bun", "deno", "ruby", "php", "perl"].contains(&program) || program.starts_with("python") {
            self.listens_on_port();
        }
    }

    /// The program is not Node.
    pub fn listens_on_port(&mut self) {
        self.keys.push(FoundKey::text("bind", "port", "not Node: the app must listen on PORT"));
        // Hostler sets these itself then.
        self.env.retain(|name, _| !["PORT", "HOST", "HOSTNAME"].contains(&name.as_str()));
    }
}

/// A key of a pool.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FoundKey {
    pub key: &'static str,
    /// The value, in TOML.
    pub value: String,
    pub why: String,
}

impl FoundKey {
    pub fn text(key: &'static str, value: &str, why: &str) -> Self {
        Self { key, value: format!("\"{value}\""), why: why.into() }
    }

    pub fn number(key: &'static str, value: impl ToString, why: &str) -> Self {
        Self { key, value: value.to_string(), why: why.into() }
    }
}

/// A folder whose files Hostler serves.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FoundFiles {
    /// The comment above the route.
    pub why: String,
    /// The paths of requests, such as `/assets/*`. `*`: files come first, then the pool.
    pub paths: String,
    pub dir: String,
    /// The prefix that is not part of the names of the files.
    pub strip_prefix: Option<String>,
    /// Paths of files whose names contain a hash.
    pub immutable: Option<String>,
    pub precompressed: bool,
    /// The page of a single-page app.
    pub fallback: Option<String>,
    /// The page for a path without a file.
    pub not_found: Option<String>,
    /// Paths below `paths` that the app must answer.
    pub except: Option<String>,
}
