//! Configurations and what becomes of them. The language of these tests: `site(text)` is a file in a folder
//! of its own.

mod admin;
mod cache;
mod caching;
mod cpus;
mod descriptors;
mod difference;
mod errors;
mod hedge;
mod idle_keys;
mod later;
mod lookups;
mod meaning;
mod member_tls;
mod memory;
mod other_programs;
mod programs;
mod registrar;
mod request_keys;
mod robust;
mod secrets;
mod sense;
mod sources;
mod sticky;
mod targets;
mod tls;
mod traces;
mod unread_certificates;
mod when;

use std::path::{Path, PathBuf};

use expect_test::Expect;
use hostler_worker::WorkerSettings;

use super::{Config, ConfigErrors, Given, Invocation, LoadContext, PoolMembers, Setting, load};

/// The workers of the only pool.
fn workers(config: &Config) -> &WorkerSettings {
    match &config.pools[0].source {
        PoolMembers::Workers(workers) => workers,
        PoolMembers::Members(members) => panic!("members: {members:?}"),
    }
}

/// A folder with a `hostler.toml`, and what it is started with.
struct Site {
    folder: tempfile::TempDir,
    invocation: Invocation,
}

fn site(text: &str) -> Site {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hostler.toml"), text).unwrap();
    let load_context = LoadContext {
        environment: [("PATH".to_string(), "/bin".to_string())].into(),
        folder: folder.path().into(),
        temp_dir: "/tmp".into(),
        cores: 3,
        cpus: "0-2".parse().ok(),
        open_files: None,
        soft_open_files: None,
        memory: None,
        has_ipv6: true,
        workers_before: Default::default(),
    };
    let invocation = Invocation { file: Some("hostler.toml".into()), settings: Vec::new(), load_context };
    Site { folder, invocation }
}

/// The errors or the warnings of this file.
fn check(text: &str, expected: Expect) {
    site(text).says(expected);
}

impl Site {
    fn without_file(mut self) -> Self {
        self.invocation.file = None;
        self
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.invocation.load_context.environment.insert(name.into(), value.into());
        self
    }

    fn flag(mut self, key: &str, value: &str) -> Self {
        let given = Given::Text(value.into());
        self.invocation.settings.push(Setting { key: key.into(), given, name: format!("--{key}") });
        self
    }

    fn folder(&self) -> PathBuf {
        self.folder.path().into()
    }

    fn load(&self) -> Result<Config, ConfigErrors> {
        load(&self.invocation)
    }

    fn config(&self) -> Config {
        self.load().unwrap_or_else(|errors| panic!("{errors}"))
    }

    /// Errors, or else warnings, one a line.
    fn says(&self, expected: Expect) {
        let said = match self.load() {
            Err(errors) => errors.to_string(),
            Ok(config) => config.warnings.join("\n"),
        };
        expected.assert_eq(&hide(&said, self.folder.path()));
    }
}

fn hide(text: &str, folder: &Path) -> String {
    text.replace(&folder.display().to_string(), "FOLDER")
}
