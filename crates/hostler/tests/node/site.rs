//! The program under test: how it is started, asked, looked at and ended.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval, timeout};

use super::proc;
use super::web::{Answer, HOME, fetch, request};

/// On a busy machine a Node process may take seconds to boot.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A command of Hostler, not started yet.
pub struct Plan {
    cwd: PathBuf,
    command: Vec<String>,
    options: Vec<String>,
    app: Vec<String>,
    env: Vec<(String, String)>,
    folder: TempDir,
}

/// `hostler run` with one of the preload's fixtures: apps that know nothing of Hostler.
pub fn fixture(name: &str) -> Plan {
    Plan::new(repository().join("packages/worker/test/apps").join(name))
}

/// `hostler run` with one of our own apps, which keep a diary of the requests they get.
pub fn app(name: &str) -> Plan {
    Plan::new(repository().join("crates/hostler/tests/node/apps")).runs(&format!("node {name}"))
}

/// `hostler run` with an app of which this is the source.
pub fn source(text: &str) -> Plan {
    let plan = Plan::new(PathBuf::new());
    std::fs::write(plan.folder.path().join("app.cjs"), text).unwrap();
    Plan { cwd: plan.folder.path().to_owned(), ..plan }.runs("node app.cjs")
}

/// `hostler start` with a configuration of which this is the text.
pub fn configured(text: &str) -> Plan {
    let plan = source("");
    std::fs::write(plan.folder.path().join("hostler.toml"), text).unwrap();
    plan.starts(Path::new("hostler.toml"))
}

/// `hostler start` with this file.
pub fn configured_by(file: &Path) -> Plan {
    Plan::new(repository()).starts(file)
}

impl Plan {
    fn new(cwd: PathBuf) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("run")).unwrap();
        let command = vec!["run".into()];
        Self { cwd, command, options: vec![], app: vec![], env: vec![], folder }.workers(1)
    }

    fn starts(self, file: &Path) -> Self {
        let command = vec!["start".into(), "--config".into(), file.to_str().unwrap().into()];
        Self { command, options: vec![], app: vec![], ..self }
    }

    /// The app's command line.
    pub fn runs(self, command: &str) -> Self {
        Self { app: command.split(' ').map(Into::into).collect(), ..self }
    }

    pub fn workers(self, count: usize) -> Self {
        self.option(&format!("pools.app.workers={count}"))
    }

    /// A key of the configuration.
    pub fn option(mut self, setting: &str) -> Self {
        self.options.extend(["--set".into(), setting.into()]);
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    pub fn cwd(self, cwd: PathBuf) -> Self {
        Self { cwd, ..self }
    }

    /// A file that apps and tests share.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn spawn(&self) -> Child {
        let mut hostler = Command::new(env!("CARGO_BIN_EXE_hostler"));
        hostler.args(&self.command).args(["--set", "server.listen=127.0.0.1:0"]);
        hostler.args(["--set", "server.admin=127.0.0.1:0"]).args(&self.options);
        if !self.app.is_empty() {
            hostler.arg("--").args(&self.app);
        }
        // Workers keep their diary in TEST_FOLDER; the runtime directory is where the test can look at it.
        hostler.env("XDG_RUNTIME_DIR", self.file("run")).env("TEST_FOLDER", self.folder.path());
        hostler.env_remove("NODE_OPTIONS").envs(self.env.iter().map(|(name, value)| (name, value)));
        hostler.current_dir(&self.cwd).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        hostler.kill_on_drop(true).spawn().unwrap()
    }

    /// Starts it and waits until it listens.
    pub async fn start(self) -> Site {
        let mut process = self.spawn();
        let (log, complaints) = (Arc::default(), Arc::default());
        let readers = vec![
            tokio::spawn(read(process.stdout.take().unwrap(), Arc::clone(&log))),
            tokio::spawn(read(process.stderr.take().unwrap(), Arc::clone(&complaints))),
        ];
        let nowhere = SocketAddr::new(HOME, 0);
        let pid = process.id().unwrap();
        let folder = self.folder;
        let mut site =
            Site { process, pid, log, complaints, readers, address: nowhere, admin: nowhere, folder };
        site.admin = site.logged("status on http://").await.split('/').next().unwrap().parse().unwrap();
        site.address = site.logged("listening on http://").await.parse().unwrap();
        site
    }

    /// Starts it and waits until all its workers are ready.
    pub async fn started(self) -> Site {
        let site = self.start().await;
        site.is_ready().await;
        site
    }

    /// Runs it to its end: exit code, standard output, standard error.
    pub async fn ended(self) -> (Option<i32>, String, String) {
        let output =
            timeout(PATIENCE, self.spawn().wait_with_output()).await.expect("the end in time").unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }
}

type Lines = Arc<Mutex<Vec<String>>>;

async fn read(pipe: impl AsyncRead + Unpin, lines: Lines) {
    let mut pipe = BufReader::new(pipe).lines();
    while let Ok(Some(line)) = pipe.next_line().await {
        lines.lock().unwrap().push(line);
    }
}

/// A running Hostler. Dropped, it is killed, and its guard ends its workers.
pub struct Site {
    pub address: SocketAddr,
    pub admin: SocketAddr,
    pub pid: u32,
    process: Child,
    log: Lines,
    complaints: Lines,
    readers: Vec<JoinHandle<()>>,
    folder: TempDir,
}

impl Site {
    pub async fn get(&self, path: &str) -> Answer {
        self.send(request("GET", path).body(Full::default()).unwrap()).await
    }

    pub async fn send(&self, request: hyper::http::Request<Full<Bytes>>) -> Answer {
        fetch(self.address, HOME, request).await.unwrap()
    }

    /// Asks in the background; aborted, the client leaves.
    pub fn ask(&self, path: &str) -> JoinHandle<Answer> {
        let (address, request) = (self.address, request("GET", path).body(Full::default()).unwrap());
        tokio::spawn(async move { fetch(address, HOME, request).await.unwrap() })
    }

    pub async fn status(&self) -> Value {
        let request = request("GET", "/status").body(Full::default()).unwrap();
        fetch(self.admin, HOME, request).await.unwrap().assert_ok().json()
    }

    /// The first pool's status.
    pub async fn pool(&self) -> Value {
        self.status().await["pools"][0].take()
    }

    /// The first pool's workers.
    pub async fn workers(&self) -> Vec<Value> {
        self.pool().await["workers"].as_array().unwrap().clone()
    }

    /// The process that listens in each worker of the first pool.
    pub async fn pids(&self) -> Vec<u32> {
        let workers = self.workers().await;
        workers.iter().filter_map(|worker| Some(worker["pid"].as_u64()? as u32)).collect()
    }

    pub async fn pid_of(&self, worker: usize) -> u32 {
        self.workers().await[worker - 1]["pid"].as_u64().expect("a running worker") as u32
    }

    pub async fn is_ready(&self) {
        eventually("all workers are ready", async || {
            let status = self.status().await;
            let pools = status["pools"].as_array().unwrap().iter();
            let mut workers = pools.filter_map(|pool| pool["workers"].as_array()).flatten();
            workers.all(|worker| worker["state"] == "ready").then_some(())
        })
        .await;
    }

    /// Waits until so many slots are in use and so many requests wait.
    pub async fn settles_at(&self, in_use: u64, waiting: u64) {
        eventually(&format!("{in_use} run and {waiting} wait"), async || {
            let pool = self.pool().await;
            (pool["in_use"] == in_use && pool["queue_length"] == waiting).then_some(())
        })
        .await;
    }

    /// The log so far.
    pub fn log(&self) -> Vec<Value> {
        let lines = self.log.lock().unwrap();
        let parsed = |line: &String| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        lines.iter().map(parsed).collect()
    }

    /// Waits for a line of Hostler's own whose text has `start`, and returns what follows.
    pub async fn logged(&self, start: &str) -> String {
        eventually(&format!("the log says {start:?}"), async || {
            let log = self.log();
            let texts =
                log.iter().filter(|line| line["event"] == "hostler").filter_map(|line| line["text"].as_str());
            texts.filter_map(|text| text.split_once(start)).map(|(_, rest)| rest.to_owned()).next()
        })
        .await
    }

    /// Waits for a line that a worker printed.
    pub async fn printed(&self, text: &str) -> Value {
        eventually(&format!("a worker prints {text:?}"), async || {
            let is_it =
                |line: &Value| line["event"] == "worker" && line["text"].as_str().unwrap().contains(text);
            self.log().into_iter().find(is_it)
        })
        .await
    }

    /// Waits for the access line of this target.
    pub async fn access(&self, target: &str) -> Value {
        eventually(&format!("the access line of {target}"), async || {
            self.log().into_iter().find(|line| line["event"] == "access" && line["target"] == target)
        })
        .await
    }

    /// A file that apps and tests share.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What the app waits for.
    pub fn touch(&self, name: &str) {
        std::fs::write(self.file(name), "").unwrap();
    }

    /// What the workers have written down: one entry a request, in order of arrival.
    pub fn diary(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.file("diary")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Where Hostler keeps its private directory.
    pub fn run_directory(&self) -> Vec<PathBuf> {
        std::fs::read_dir(self.file("run")).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    pub fn signal(&self, signal: Signal) {
        proc::signal(self.pid, signal);
    }

    /// Waits for its end.
    pub async fn ended(&mut self) -> ExitStatus {
        timeout(PATIENCE * 2, self.process.wait()).await.expect("the end in time").unwrap()
    }

    /// Stops it gracefully, and sees that it goes well.
    pub async fn stop(mut self) {
        self.signal(Signal::TERM);
        let status = self.ended().await;
        assert_eq!(status.code(), Some(0), "{status}");
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for line in self.complaints.lock().unwrap().iter().chain(self.log.lock().unwrap().iter()) {
                eprintln!("{line}");
            }
        }
        self.readers.iter().for_each(JoinHandle::abort);
    }
}

/// Looks again and again until there is something to see; a test that waits longer than patience has failed.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    let mut glances = interval(Duration::from_millis(20));
    loop {
        glances.tick().await;
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(Instant::now() < end, "never: {what}");
    }
}
