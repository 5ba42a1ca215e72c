//! A Hostler to be started: its configuration, environment and command line. Knows nothing of the running program.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use command_fds::{CommandFdExt, FdMapping};
use tempfile::TempDir;
use toml::{Table, Value as Toml};

use crate::defaults::{complete, table};
use crate::process::{Output, outcome, run};
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
    open_files: Option<(u64, u64)>,
    descriptors: Vec<FdMapping>,
    is_activated: bool,
}

/// A site with this configuration, on free ports.
///
/// Settings that the configuration does not have get values that do not disturb a test: one data-plane thread, so that a
/// test can count what is kept for each thread, and very long timeouts, so that only the tested one can expire.
///
/// # Panics
/// If the text is not TOML.
pub fn site(binary: &str, config: &str) -> SitePlan {
    let mut config: Table = toml::from_str(config).unwrap();
    complete(&mut config);
    let folder = tempfile::tempdir().unwrap();
    let cwd = folder.path().to_owned();
    // Workers keep compiled code there. It must not get into the folder of the user that runs the tests.
    let cache = folder.path().join("cache").into_os_string();
    SitePlan {
        binary: binary.into(),
        config,
        folder,
        arguments: vec!["start".into()],
        cwd,
        env: vec![("XDG_CACHE_HOME".into(), cache)],
        open_files: None,
        descriptors: Vec::new(),
        is_activated: false,
    }
}

impl SitePlan {
    /// Adds an upstream to the members of a pool.
    pub fn with(self, pool: &str, upstream: &Upstream) -> Self {
        self.with_member(pool, upstream.address())
    }

    /// Adds an address to the members of a pool.
    pub fn with_member(mut self, pool: &str, address: &str) -> Self {
        let pool = table(table(&mut self.config, "pools"), pool);
        pool.entry("request_timeout").or_insert_with(|| "1h".into());
        table(pool, "queue").entry("timeout").or_insert_with(|| "1h".into());
        let members = pool.entry("members").or_insert_with(|| Toml::Array(Vec::new()));
        members.as_array_mut().unwrap().push(address.into());
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Starts it with this descriptor open, under this number.
    pub fn descriptor(mut self, number: i32, descriptor: impl Into<OwnedFd>) -> Self {
        self.descriptors.push(FdMapping { parent_fd: descriptor.into(), child_fd: number });
        self
    }

    /// Passes sockets as systemd does: from number 3 on, with names, and with its process id in LISTEN_PID.
    pub fn given<T: Into<OwnedFd>>(self, sockets: impl IntoIterator<Item = T>, names: &str) -> Self {
        let plan = (3..).zip(sockets).fold(self, |plan, (number, socket)| plan.descriptor(number, socket));
        let count = plan.descriptors.len().to_string();
        let plan = plan.env("LISTEN_FDS", count).env("LISTEN_FDNAMES", names);
        Self { is_activated: true, ..plan }
    }

    /// Another path to the program.
    pub fn called(self, binary: &Path) -> Self {
        Self { binary: binary.to_owned(), ..self }
    }

    /// Starts it with these soft and hard limits on open files.
    pub fn with_open_files(self, soft: u64, hard: u64) -> Self {
        Self { open_files: Some((soft, hard)), ..self }
    }

    /// Starts it in another directory, with these arguments only.
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

    /// Starts it and waits until it listens.
    ///
    /// # Panics
    /// If it does not listen in time.
    pub async fn start(self) -> Site {
        let (plan, child) = self.spawn();
        let with_admin = plan.config["server"]["admin"].as_str() != Some("off");
        Site::of(child, plan.binary, plan.folder, with_admin).await
    }

    /// The same for a Hostler whose admin listener has no port.
    ///
    /// # Panics
    /// If it does not listen in time.
    pub async fn start_without_admin(self) -> Site {
        let (plan, child) = self.spawn();
        Site::of(child, plan.binary, plan.folder, false).await
    }

    /// Starts it and waits for its end.
    ///
    /// # Panics
    /// If it cannot be started.
    pub async fn ended(self) -> Output {
        let (_plan, child) = self.spawn();
        outcome("hostler", child).await
    }

    fn spawn(mut self) -> (Self, Child) {
        self.write();
        // A shell replaces itself by the program (exec), so both have the same process id, and the program can be told
        // its own.
        let mut script = String::new();
        if let Some((soft, hard)) = self.open_files {
            script += &format!("ulimit -Sn {soft} && ulimit -Hn {hard} && ");
        }
        script += match self.is_activated {
            true => "exec env LISTEN_PID=$$ \"$0\" \"$@\"",
            false => "exec \"$0\" \"$@\"",
        };
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(&self.binary);
        command.args(&self.arguments).current_dir(&self.cwd).envs(self.env.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.fd_mappings(std::mem::take(&mut self.descriptors)).unwrap();
        let child = command.spawn().unwrap();
        (self, child)
    }

    /// Runs another command of the program in the folder of the configuration, and waits for its end.
    pub async fn run(&self, arguments: &[&str]) -> Output {
        self.write();
        run(self.binary.to_str().unwrap(), arguments, self.folder.path()).await
    }
}
