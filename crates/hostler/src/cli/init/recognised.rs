//! What is known of an app by its framework. Does not know how frameworks are recognised.

use super::config_text::TextSetting;
use super::found::{FoundFiles, FoundPool};
use super::package::NodePackage;
use super::script_line::ScriptLine;

/// What a framework says about its app.
#[derive(Clone, Debug, Default)]
pub(super) struct Recognised {
    /// The pool, without what `package.json` says about every app. Without a command: the `start` script decides.
    pub pool: FoundPool,
    /// A file that exists after the build.
    pub built: Option<String>,
}

impl Recognised {
    /// An app that `command` starts after a build.
    pub fn app(what: &str, command: Vec<String>, built: &str) -> Self {
        let pool = FoundPool { what: what.into(), command, ..FoundPool::default() };
        Self { pool, built: Some(built.into()) }
    }

    /// Pages without an app.
    pub fn pages(what: &str, dir: &str, files: FoundFiles) -> Self {
        let files = FoundFiles { paths: "*".into(), dir: dir.into(), ..files };
        let pool = FoundPool { what: what.into(), files: vec![files], ..FoundPool::default() };
        Self { pool, built: Some(dir.into()) }
    }

    /// Names the path for which pages are built, as the configuration says. Their folder does not contain it.
    pub fn built_for(self, base: &TextSetting) -> Self {
        let TextSetting::Text(base) = base else { return self };
        let base = base.trim_matches('/');
        // The address of another server, or relative to the page.
        if base.is_empty() || base.starts_with('.') || base.contains(':') {
            return self;
        }
        self.open(format!(
            "The pages are built for /{base}/, and their folder has no folder of that name: write match = \"/{base}/*\" in their route, and \
             rewrite = {{ strip_prefix = \"/{base}\" }}."
        ))
    }

    pub fn serves(mut self, files: FoundFiles) -> Self {
        self.pool.files.push(files);
        self
    }

    pub fn with_env(mut self, env: &[(&str, &str)]) -> Self {
        self.pool.env.extend(env.iter().map(|&(name, value)| (name.into(), value.into())));
        self
    }

    /// With the variables and options of the script that starts the same server, such as `NODE_OPTIONS=... node build`. Or with the
    /// server of its own that the script starts.
    pub fn with_script(mut self, package: &NodePackage) -> Self {
        let (Some(server), Some(built)) = (self.pool.command.last(), &self.built) else { return self };
        // The file of the build, or its folder. The last word of `next start` is neither.
        if !built.starts_with(bare(server)) {
            return self;
        }
        let is_server = |word: &String| [bare(server), built.as_str()].contains(&bare(word));
        let is_same = |line: &&ScriptLine| {
            line.words.first() == self.pool.command.first() && line.words.iter().any(is_server)
        };
        let scripts = ["start:prod", "start:production", "start"];
        let lines: Vec<ScriptLine> = scripts.iter().filter_map(|script| package.server_of(script)).collect();
        if let Some(line) = lines.iter().find(is_same).cloned() {
            self.pool.command = line.words;
            self.pool.env.extend(line.env);
        } else if let Some(line) = lines.into_iter().find(|line| starts_a_file(line, package)) {
            self.pool.what.push_str(" with a server of its own");
            self.pool.command = line.words;
            self.pool.env.extend(line.env);
        }
        self
    }

    pub fn open(mut self, question: impl Into<String>) -> Self {
        self.pool.open.push(question.into());
        self
    }
}

/// Whether a script starts a file of the app, such as `node server.js`.
fn starts_a_file(line: &ScriptLine, package: &NodePackage) -> bool {
    let Some((program, arguments)) = line.words.split_first() else { return false };
    let is_file = |word: &String| !word.starts_with('-') && package.is_there(word);
    ["node", "tsx"].contains(&program.rsplit('/').next().unwrap_or_default()) && arguments.iter().any(is_file)
}

/// A path without what does not change its meaning: `build` of `./build/`.
fn bare(path: &str) -> &str {
    path.trim_start_matches("./").trim_end_matches('/')
}

/// The comment above routes with files of a build.
pub(super) const HASHED: &str = "The files of the build: Hostler serves them itself. Their names contain a hash, so browsers keep them for a year.";

/// Files below `paths` in `dir`, with a hash in their names.
pub(super) fn hashed(paths: &str, dir: &str, immutable: &str) -> FoundFiles {
    FoundFiles {
        why: HASHED.into(),
        paths: paths.into(),
        dir: dir.into(),
        immutable: Some(immutable.into()),
        ..FoundFiles::default()
    }
}
