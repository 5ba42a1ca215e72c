//! A Hostler to be started: its configuration, its surroundings, its command line. Knows nothing of it once it runs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use toml::{Table, Value as Toml};

use crate::process::{Output, run};
use crate::site::Site;
use crate::upstream::Upstream;

/// A site to be started.
pub struct SitePlan {
    binary: PathBuf,
    config: Table,
    folder: TempDir,
    arguments: Vec<String>,
    cwd: PathBuf,
    env: Vec<(String, OsString)>,
}

/// A site with this configuration, on free ports. What it does not say is such that nothing gets in a test's way: one data-plane
/// thread, so that what is kept for each thread can be counted; endless patience, so that only that runs out which the test is
/// about.
///
/// # Panics
/// If the text is not TOML.
pub fn site(binary: &str, config: &str) -> SitePlan {
    let mut config: Table = toml::from_str(config).unwrap();
    complete(&mut config);
    let folder = tempfile::tempdir().unwrap();
    let cwd = folder.path().to_owned();
    SitePlan { binary: binary.into(), config, folder, arguments: vec!["start".into()], cwd, env: Vec::new() }
}

pub(crate) fn complete(config: &mut Table) {
    let server = table(config, "server");
    for (key, value) in [
        ("listen", "127.0.0.1:0"),
        ("admin", "127.0.0.1:0"),
        ("drain_timeout", "1h"),
        ("header_timeout", "1h"),
        ("body_timeout", "1h"),
        ("send_timeout", "1h"),
        ("idle_timeout", "1h"),
    ] {
        server.entry(key).or_insert_with(|| value.into());
    }
    server.entry("threads").or_insert(Toml::Integer(1));
}

fn table<'a>(parent: &'a mut Table, key: &str) -> &'a mut Table {
    let entry = parent.entry(key).or_insert_with(|| Table::new().into());
    entry.as_table_mut().unwrap()
}

impl SitePlan {
    /// Makes an upstream a member of a pool.
    pub fn with(self, pool: &str, upstream: &Upstream) -> Self {
        self.with_member(pool, upstream.address())
    }

    /// Makes whatever listens there a member of a pool.
    pub fn with_member(mut self, pool: &str, address: &str) -> Self {
        let pool = table(table(&mut self.config, "pools"), pool);
        pool.entry("request_timeout").or_insert_with(|| "1h".into());
        table(pool, "queue").entry("timeout").or_insert_with(|| "1h".into());
        let members = pool.entry("members").or_insert_with(|| Toml::Array(Vec::new()));
        members.as_array_mut().unwrap().push(address.into());
        self
    }

    /// Sets a variable of its environment.
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Another path to the program.
    pub fn called(self, binary: &Path) -> Self {
        Self { binary: binary.to_owned(), ..self }
    }

    /// Starts it elsewhere and with other arguments than `start`: a command line that says everything by itself.
    pub fn invoked(self, cwd: &Path, arguments: Vec<String>) -> Self {
        Self { cwd: cwd.to_owned(), arguments, ..self }
    }

    /// The folder of the configuration file, for other files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self) {
        let text = toml::to_string(&self.config).unwrap();
        std::fs::write(self.folder.path().join("hostler.toml"), text).unwrap();
    }

    /// Starts it, and waits until it listens.
    ///
    /// # Panics
    /// If it does not.
    pub async fn start(self) -> Site {
        self.write();
        let child = Command::new(&self.binary)
            .args(&self.arguments)
            .current_dir(&self.cwd)
            .envs(self.env)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let with_admin = self.config["server"]["admin"].as_str() != Some("off");
        Site::of(child, self.binary, self.folder, with_admin).await
    }

    /// Runs another command of the program in the folder of the configuration, to its end.
    pub async fn run(&self, arguments: &[&str]) -> Output {
        self.write();
        run(self.binary.to_str().unwrap(), arguments, self.folder.path()).await
    }
}
