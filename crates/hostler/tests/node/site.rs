//! Hostler with Node apps behind it: how it is started, and what the test can see of its workers.

use std::ops::{Deref, DerefMut};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use hostler_testkit::{self as testkit, Output, ReceivedAnswer, SitePlan, client, eventually};
use serde_json::Value;
use tokio::task::JoinHandle;

/// Next to the file that the test kit writes. `hostler run` does not read it.
const FILE: &str = "configured.toml";

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A command line of Hostler that is not started yet.
pub struct Plan {
    site: SitePlan,
    cwd: PathBuf,
    command: Vec<String>,
    options: Vec<String>,
    app: Vec<String>,
}

/// `hostler run` with a fixture of the preload: an app that does not know Hostler.
pub fn fixture(name: &str) -> Plan {
    Plan::new().patient().cwd(repository().join("packages/worker/test/apps").join(name)).workers(1)
}

/// `hostler run` with one of our own apps.
pub fn app(name: &str) -> Plan {
    Plan::new()
        .patient()
        .cwd(repository().join("crates/hostler/tests/node/apps"))
        .runs(&format!("node {name}"))
        .workers(1)
}

/// `hostler run` with an app of this source.
pub fn source(text: &str) -> Plan {
    let plan = Plan::new().patient();
    std::fs::write(plan.cwd.join("app.cjs"), text).unwrap();
    plan.runs("node app.cjs").workers(1)
}

/// `hostler start` with this file.
pub fn configured_by(file: &Path) -> Plan {
    Plan { command: vec!["start".into(), "--config".into(), file.to_str().unwrap().into()], ..Plan::new() }
}

/// `hostler start` with a file of this text, which [`Site::configure`] changes.
pub fn configured(text: &str) -> Plan {
    let plan = Plan::new();
    let file = plan.folder().join(FILE);
    std::fs::write(&file, text).unwrap();
    Plan { command: vec!["start".into(), "--config".into(), file.to_str().unwrap().into()], ..plan }
}

impl Plan {
    /// The same app by `hostler start` with a file.
    pub fn by_file(self) -> Self {
        let file = self.folder().join(FILE);
        let command = serde_json::to_string(&self.app).unwrap();
        std::fs::write(
            &file,
            format!("[pools.app]\ncommand = {command}\n[[routes]]\nmatch = '*'\npool = 'app'\n"),
        )
        .unwrap();
        let command = vec!["start".into(), "--config".into(), file.to_str().unwrap().into()];
        Self { command, app: vec![], ..self }
    }

    /// A flag of `hostler run`.
    pub fn flag(mut self, flag: &str) -> Self {
        self.options.push(flag.into());
        self
    }

    /// A request waits until there is a worker, unless the test sets a limit.
    fn patient(self) -> Self {
        self.option("pools.app.queue.timeout=1h")
    }

    fn new() -> Self {
        let site = testkit::site(env!("CARGO_BIN_EXE_hostler"), "");
        let folder = site.folder().to_owned();
        std::fs::create_dir(folder.join("run")).unwrap();
        // Apps write into TEST_FOLDER. The runtime directory is made where the test can look at it.
        let site = site
            .env("TEST_FOLDER", &folder)
            .env("XDG_RUNTIME_DIR", folder.join("run"))
            .env("NODE_OPTIONS", "");
        let plan = Self { site, cwd: folder, command: vec!["run".into()], options: vec![], app: vec![] };
        plan.option("server.listen=127.0.0.1:0").option("server.admin=127.0.0.1:0")
    }

    /// The app's command line.
    pub fn runs(self, command: &str) -> Self {
        Self { app: command.split(' ').map(Into::into).collect(), ..self }
    }

    pub fn workers(self, count: usize) -> Self {
        self.option(&format!("pools.app.workers={count}"))
    }

    /// A key of the configuration. The last value counts.
    pub fn option(mut self, setting: &str) -> Self {
        self.options.extend(["--set".into(), setting.into()]);
        self
    }

    pub fn env(self, name: &str, value: &str) -> Self {
        Self { site: self.site.env(name, value), ..self }
    }

    pub fn cwd(self, cwd: PathBuf) -> Self {
        Self { cwd, ..self }
    }

    /// Another path to the program.
    pub fn called(self, binary: &Path) -> Self {
        Self { site: self.site.called(binary), ..self }
    }

    /// Starts it with this descriptor open under this number.
    pub fn descriptor(self, number: i32, descriptor: impl Into<OwnedFd>) -> Self {
        Self { site: self.site.descriptor(number, descriptor), ..self }
    }

    /// Gives it a socket as systemd does.
    pub fn given(self, socket: impl Into<OwnedFd>, name: &str) -> Self {
        Self { site: self.site.given([socket], name), ..self }
    }

    /// The folder that the app shares with the test.
    pub fn folder(&self) -> &Path {
        self.site.folder()
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments = [self.command.as_slice(), &self.options].concat();
        if !self.app.is_empty() {
            arguments.push("--".into());
            arguments.extend_from_slice(&self.app);
        }
        arguments
    }

    /// Starts it and waits until it listens.
    pub async fn start(self) -> Site {
        let arguments = self.arguments();
        Site(self.site.invoked(&self.cwd, arguments).start().await)
    }

    /// Starts it and waits until all its workers are ready.
    pub async fn started(self) -> Site {
        let site = self.start().await;
        site.is_ready().await;
        site
    }

    /// Runs it until it ends.
    pub async fn ended(self) -> Output {
        let arguments = self.arguments();
        self.site.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).await
    }
}

/// A running Hostler.
pub struct Site(testkit::Site);

impl Deref for Site {
    type Target = testkit::Site;

    fn deref(&self) -> &testkit::Site {
        &self.0
    }
}

impl DerefMut for Site {
    fn deref_mut(&mut self) -> &mut testkit::Site {
        &mut self.0
    }
}

/// The first worker, once the condition holds.
pub async fn worker(site: &Site, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    eventually(what, async || site.workers().await.into_iter().next().filter(&is_so)).await
}

impl Site {
    /// Sends a request in the background. If the task is aborted, the client leaves.
    pub fn ask(&self, path: &str) -> JoinHandle<ReceivedAnswer> {
        let (address, path) = (self.address(), path.to_owned());
        tokio::spawn(async move { client(address).await.get(&path).await })
    }

    /// The workers of the pool that `hostler run` makes.
    pub async fn workers(&self) -> Vec<Value> {
        self.pool("app").await["workers"].as_array().unwrap().clone()
    }

    /// The process that listens in each worker.
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

    /// Waits until the workers have this many open `"streams"` or `"tunnels"`, the fewest first.
    pub async fn has_open(&self, what: &str, per_worker: &[u64]) {
        eventually(format!("{per_worker:?} {what}"), async || {
            let workers = self.workers().await;
            let mut open: Vec<_> = workers.iter().map(|worker| worker[what].as_u64().unwrap()).collect();
            open.sort_unstable();
            (open == per_worker).then_some(())
        })
        .await;
    }

    /// Waits until the app has written exactly these lines about ended connections, in any order.
    pub async fn app_heard(&self, mut expected: Vec<String>) {
        expected.sort();
        eventually(format!("the app to hear {expected:?}"), async || {
            let heard = std::fs::read_to_string(self.file("closed")).unwrap_or_default();
            let mut heard: Vec<_> = heard.lines().collect();
            heard.sort_unstable();
            (heard == expected).then_some(())
        })
        .await;
    }

    /// Waits until this many slots are in use and this many requests wait.
    pub async fn settles_at(&self, in_use: usize, waiting: usize) {
        self.settles("app", in_use, waiting).await;
    }

    /// The log so far.
    pub fn log(&self) -> Vec<Value> {
        let parsed = |line: &String| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        self.lines().iter().map(parsed).collect()
    }

    /// Waits for a log line of Hostler with this text, and returns the rest of the line.
    pub async fn logged(&self, text: &str) -> String {
        eventually(format!("the log says {text:?}"), async || {
            let log = self.log();
            let texts =
                log.iter().filter(|line| line["event"] == "hostler").filter_map(|line| line["text"].as_str());
            texts.filter_map(|line| line.split_once(text)).map(|(_, rest)| rest.to_owned()).next()
        })
        .await
    }

    /// Waits for a line that a worker printed.
    pub async fn printed(&self, text: &str) -> Value {
        eventually(format!("a worker prints {text:?}"), async || {
            // A JSON object that the worker printed has its message as `text`, if it has one.
            let contains = |line: &Value| line["text"].as_str().is_some_and(|said| said.contains(text));
            let is_it = |line: &Value| line["event"] == "worker" && contains(line);
            self.log().into_iter().find(is_it)
        })
        .await
    }

    /// Replaces the text of the file of [`configured`].
    pub fn configure(&self, text: &str) {
        std::fs::write(self.file(FILE), text).unwrap();
    }

    /// A file that apps and tests share.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// Creates a file that an app waits for.
    pub fn touch(&self, name: &str) {
        std::fs::write(self.file(name), "").unwrap();
    }

    /// The entries of `diary.cjs`: one for each request, in order of arrival.
    pub fn diary(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.file("diary")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Hostler's private directories.
    pub fn run_directory(&self) -> Vec<PathBuf> {
        std::fs::read_dir(self.file("run")).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    /// Stops it gracefully, and checks that it ends well.
    pub async fn stop(mut self) {
        self.terminate();
        assert_eq!(self.exit().await, 0);
    }
}
