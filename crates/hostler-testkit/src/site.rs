//! A running Hostler: the real binary with a configuration of its own, on free ports. Knows it only from outside.

use std::net::{IpAddr, SocketAddr};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use toml::Table;

use crate::answer::ReceivedAnswer;
use crate::client::{Client, client, client_from};
use crate::eventually::eventually;
use crate::log::Log;
use crate::plan::complete;
use crate::process::{Output, run};

/// How long a site that is dropped has to end by itself.
const FAREWELL: Duration = Duration::from_secs(5);
/// How often it is told to meanwhile: from the second time on it waits for nobody, whatever the test has left under way.
const TOLD: u32 = 20;

/// What of a log is shown when a test has failed.
const LAST_LINES: usize = 20;

fn address(text: &str) -> SocketAddr {
    let end = text.find(['"', '/']).unwrap_or(text.len());
    text[..end].parse().unwrap()
}

/// A running Hostler. Dropped, it is told to stop, and killed if it does not.
pub struct Site {
    binary: PathBuf,
    child: Child,
    exit: Option<ExitStatus>,
    log: Log,
    errors: Log,
    listen: Vec<SocketAddr>,
    listen_tls: Vec<SocketAddr>,
    admin: Option<SocketAddr>,
    folder: TempDir,
}

impl Site {
    /// A program that has been started; waits until it listens.
    pub(crate) async fn of(mut child: Child, binary: PathBuf, folder: TempDir, with_admin: bool) -> Self {
        let log = Log::of(child.stdout.take().unwrap());
        let errors = Log::of(child.stderr.take().unwrap());
        let mut site = Site {
            binary,
            child,
            exit: None,
            log,
            errors,
            listen: Vec::new(),
            listen_tls: Vec::new(),
            admin: None,
            folder,
        };
        let last = if with_admin { "status on http://" } else { "listening on http" };
        eventually("Hostler to listen", async || {
            assert!(
                site.try_exit().is_none(),
                "Hostler ended: {:?} {:?}",
                site.log.lines(),
                site.errors.lines()
            );
            site.log.after(last)
        })
        .await;
        let lines = site.log.lines();
        let addresses = lines.iter().filter_map(|line| line.split_once("listening on http://"));
        site.listen = addresses.map(|(_, rest)| address(rest)).collect();
        let secure = lines.iter().filter_map(|line| line.split_once("listening on https://"));
        site.listen_tls = secure.map(|(_, rest)| address(rest)).collect();
        site.admin = site.log.after("status on http://").map(|rest| address(&rest));
        site
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.listen[0]
    }

    /// Where it listens for TLS.
    pub fn tls_address(&self) -> SocketAddr {
        self.listen_tls[0]
    }

    /// All addresses on which it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.listen
    }

    /// Where its status is.
    pub fn admin(&self) -> SocketAddr {
        self.admin.unwrap()
    }

    /// The folder of its configuration file.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A new connection.
    pub async fn connect(&self) -> Client {
        client(self.address()).await
    }

    /// A new connection from one of the machine's addresses, such as `127.0.0.2`.
    pub async fn connect_from(&self, from: &str) -> Client {
        client_from(from.parse::<IpAddr>().unwrap(), self.address()).await
    }

    /// GET on a connection of its own.
    pub async fn get(&self, path: &str) -> ReceivedAnswer {
        self.connect().await.get(path).await
    }

    /// POST on a connection of its own.
    pub async fn post(&self, path: &str, body: impl AsRef<[u8]>) -> ReceivedAnswer {
        self.connect().await.post(path, body).await
    }

    /// Exact bytes on a connection of their own, and the answer.
    pub async fn send(&self, bytes: impl AsRef<[u8]>) -> ReceivedAnswer {
        let mut client = self.connect().await;
        client.send(bytes).await;
        client.answer().await
    }

    /// Begins a GET on a connection of its own; the connection is for reading the answer.
    pub async fn begin(&self, path: &str) -> Client {
        let mut client = self.connect().await;
        client.send(format!("GET {path} HTTP/1.1\r\nHost: site.test\r\n\r\n")).await;
        client
    }

    /// The status of this moment.
    pub async fn status(&self) -> Value {
        let mut client = client(self.admin()).await;
        client.send("GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
        serde_json::from_slice(&client.answer().await.assert_status(200).body).unwrap()
    }

    /// The pool's part of the status of this moment.
    pub async fn pool(&self, name: &str) -> Value {
        let status = self.status().await;
        let pools = status["pools"].as_array().unwrap();
        pools
            .iter()
            .find(|pool| pool["name"] == name)
            .unwrap_or_else(|| panic!("no pool {name}: {status}"))
            .clone()
    }

    /// Waits until so many of a pool's slots are in use, and so many requests wait.
    pub async fn settles(&self, pool: &str, in_use: usize, waiting: usize) {
        eventually(format!("{in_use} running and {waiting} waiting in {pool}"), async || {
            let pool = self.pool(pool).await;
            (pool["in_use"] == in_use && pool["queue_length"] == waiting).then_some(())
        })
        .await;
    }

    /// The lines of its log.
    pub fn lines(&self) -> Vec<String> {
        self.log.lines()
    }

    /// The lines of its standard error: what a panic says goes there.
    pub fn complaints(&self) -> Vec<String> {
        self.errors.lines()
    }

    /// The access lines so far.
    pub fn access_lines(&self) -> Vec<Value> {
        self.log.values().into_iter().filter(|line| line["event"] == "access").collect()
    }

    /// Waits for so many access lines.
    pub async fn exchanges(&self, number: usize) -> Vec<Value> {
        eventually(format!("{number} access lines"), async || {
            Some(self.access_lines()).filter(|lines| lines.len() >= number)
        })
        .await
    }

    /// Waits for the access line of a target, the first if there are several.
    pub async fn access(&self, target: &str) -> Value {
        eventually(format!("an access line for {target}"), async || {
            self.access_lines().into_iter().find(|line| line["target"] == target)
        })
        .await
    }

    /// Waits for the access line of a refusal for this reason.
    pub async fn refusal(&self, reason: &str) -> Value {
        eventually(format!("a refusal for {reason}"), async || {
            self.access_lines().into_iter().find(|line| line["refusal"] == reason)
        })
        .await
    }

    /// Waits for a line of the log that has this text.
    pub async fn says(&self, text: &str) -> String {
        eventually(format!("a log line with {text:?}"), async || {
            self.lines().into_iter().find(|line| line.contains(text))
        })
        .await
    }

    /// Runs a command of the program that asks this Hostler for something, to its end.
    pub async fn command(&self, arguments: &[&str]) -> Output {
        self.command_of(self.binary.to_str().unwrap(), arguments).await
    }

    /// The same, of a program that lies elsewhere.
    pub async fn command_of(&self, binary: &str, arguments: &[&str]) -> Output {
        let admin = self.admin().to_string();
        run(binary, &[arguments, &["--admin", &admin]].concat(), self.folder()).await
    }

    /// Writes another configuration file, as [`crate::site`] does, on the same addresses.
    pub fn rewrite(&self, config: &str) {
        let mut config: Table = toml::from_str(config).unwrap();
        complete(&mut config);
        self.write_file(&toml::to_string(&config).unwrap());
    }

    /// Writes these words as the configuration file.
    pub fn write_file(&self, text: &str) {
        std::fs::write(self.folder().join("hostler.toml"), text).unwrap();
    }

    /// Tells it to load its configuration again (SIGHUP).
    pub fn hang_up(&self) {
        self.signal(Signal::HUP);
    }

    /// Tells it to hand over to the program as it is now (SIGUSR2).
    pub fn ask_for_upgrade(&self) {
        self.signal(Signal::USR2);
    }

    /// Tells it to let its clients look elsewhere, and then to stop (SIGUSR1).
    pub fn ask_to_drain(&self) {
        self.signal(Signal::USR1);
    }

    /// Tells it to stop (SIGTERM).
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Tells it to stop as Ctrl-C does (SIGINT).
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        // One that has ended in this moment needs no telling.
        let _ = kill_process(pid, signal);
    }

    /// Waits for its end, and for the last line of its log: the exit code, or minus the signal that ended it.
    pub async fn exit(&mut self) -> i32 {
        let status = eventually("Hostler's end", async || self.try_exit()).await;
        // What it has written may still be in the pipe. One to which it has handed over writes there too, and goes on.
        eventually("the end of Hostler's log", async || {
            (self.log.ends_within(Duration::ZERO) || !self.successors().is_empty()).then_some(())
        })
        .await;
        status.code().unwrap_or_else(|| -status.signal().unwrap_or_default())
    }

    fn try_exit(&mut self) -> Option<ExitStatus> {
        if self.exit.is_none() {
            self.exit = self.child.try_wait().unwrap();
        }
        self.exit
    }
}

impl Site {
    /// Those to which it has handed over, one to the next; they are not its children for long.
    fn successors(&self) -> Vec<Pid> {
        let lines = self.log.lines();
        let told =
            lines.iter().filter_map(|line| line.split_once("upgrade: pid ")?.1.split_once(" has taken over"));
        told.filter_map(|(pid, _)| Pid::from_raw(pid.parse().ok()?)).collect()
    }

    /// True when nobody writes to the log any more, in [`FAREWELL`].
    fn ends_when_told(&self, pid: Pid) -> bool {
        (0..TOLD).any(|_| {
            let _ = kill_process(pid, Signal::TERM);
            self.log.ends_within(FAREWELL / TOLD)
        })
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Some(&last) = self.successors().last() {
            // The pipe of the log ends with the last process that writes to it.
            if !self.ends_when_told(last) {
                for pid in self.successors() {
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
        }
        if self.try_exit().is_none() {
            // Its log ends when it does.
            if !self.ends_when_told(Pid::from_child(&self.child)) {
                self.signal(Signal::KILL);
            }
            let _ = self.child.wait();
        }
        self.errors.ends_within(FAREWELL);
        let complaints = self.errors.lines().join("\n");
        // Whatever the clients saw of it: one connection's panic is nobody else's.
        let has_panicked = complaints.contains("panicked at");
        if std::thread::panicking() || has_panicked {
            let lines = self.log.lines();
            let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
            eprintln!("--- the end of Hostler's log\n{}\n{complaints}", last.join("\n"));
        }
        assert!(std::thread::panicking() || !has_panicked, "Hostler has panicked");
    }
}
