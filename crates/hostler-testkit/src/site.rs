//! A running Hostler: the real program with its own configuration, on free ports. Knows it only from outside.

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
use crate::defaults::complete;
use crate::eventually::eventually;
use crate::log::Log;
use crate::process::{Output, run};

/// How long a dropped site has to end.
const FAREWELL: Duration = Duration::from_secs(5);
/// How often it gets SIGTERM within this time. After the second one it waits for no request that a test has left open.
const TOLD: u32 = 20;

/// How many lines of the log a failed test prints.
const LAST_LINES: usize = 20;

fn address(text: &str) -> SocketAddr {
    let end = text.find(['"', '/']).unwrap_or(text.len());
    text[..end].parse().unwrap()
}

/// A running Hostler. Dropping it stops it, and kills it if it does not stop.
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
    /// Waits until a started program listens.
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
        let last = if with_admin { "live page on http://" } else { "listening on http" };
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
        site.admin = site.log.after("live page on http://").map(|rest| address(&rest));
        site
    }

    /// The address of its first listener.
    pub fn address(&self) -> SocketAddr {
        self.listen[0]
    }

    /// The address of its TLS listener.
    pub fn tls_address(&self) -> SocketAddr {
        self.listen_tls[0]
    }

    /// The addresses of all listeners.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.listen
    }

    /// The address of its admin listener.
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

    /// Sends GET on a new connection.
    pub async fn get(&self, path: &str) -> ReceivedAnswer {
        self.connect().await.get(path).await
    }

    /// Sends POST on a new connection.
    pub async fn post(&self, path: &str, body: impl AsRef<[u8]>) -> ReceivedAnswer {
        self.connect().await.post(path, body).await
    }

    /// Sends exact bytes on a new connection and reads the response.
    pub async fn send(&self, bytes: impl AsRef<[u8]>) -> ReceivedAnswer {
        let mut client = self.connect().await;
        client.send(bytes).await;
        client.answer().await
    }

    /// Sends GET on a new connection, and returns the connection to read the response from.
    pub async fn begin(&self, path: &str) -> Client {
        let mut client = self.connect().await;
        client.send(format!("GET {path} HTTP/1.1\r\nHost: site.test\r\n\r\n")).await;
        client
    }

    /// Sends GET to the admin listener on a new connection.
    pub async fn ask_admin(&self, path: &str) -> ReceivedAnswer {
        client(self.admin()).await.get_of("localhost", path).await
    }

    /// The current status.
    pub async fn status(&self) -> Value {
        let mut client = client(self.admin()).await;
        client.send("GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
        serde_json::from_slice(&client.answer().await.assert_status(200).body).unwrap()
    }

    /// The pool's part of the current status.
    pub async fn pool(&self, name: &str) -> Value {
        let status = self.status().await;
        let pools = status["pools"].as_array().unwrap();
        pools
            .iter()
            .find(|pool| pool["name"] == name)
            .unwrap_or_else(|| panic!("no pool {name}: {status}"))
            .clone()
    }

    /// Waits until this many slots of a pool are in use and this many requests wait.
    pub async fn settles(&self, pool: &str, in_use: usize, waiting: usize) {
        eventually(format!("{in_use} running and {waiting} waiting in {pool}"), async || {
            let pool = self.pool(pool).await;
            (pool["in_use"] == in_use && pool["queue_length"] == waiting).then_some(())
        })
        .await;
    }

    /// The lines of its log so far.
    pub fn lines(&self) -> Vec<String> {
        self.log.lines()
    }

    /// The lines of its standard error, where panics are printed.
    pub fn complaints(&self) -> Vec<String> {
        self.errors.lines()
    }

    /// The access lines so far.
    pub fn access_lines(&self) -> Vec<Value> {
        self.log.values().into_iter().filter(|line| line["event"] == "access").collect()
    }

    /// Waits for this many access lines.
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

    /// Waits for a log line with this text.
    pub async fn says(&self, text: &str) -> String {
        eventually(format!("a log line with {text:?}"), async || {
            self.lines().into_iter().find(|line| line.contains(text))
        })
        .await
    }

    /// Runs a command of the program against this Hostler, and waits for its end.
    pub async fn command(&self, arguments: &[&str]) -> Output {
        self.command_of(self.binary.to_str().unwrap(), arguments).await
    }

    /// The same, with the program at another path.
    pub async fn command_of(&self, binary: &str, arguments: &[&str]) -> Output {
        let admin = self.admin().to_string();
        run(binary, &[arguments, &["--admin", &admin]].concat(), self.folder()).await
    }

    /// Writes another configuration file, as [`crate::site`] does, with the same addresses.
    pub fn rewrite(&self, config: &str) {
        let mut config: Table = toml::from_str(config).unwrap();
        complete(&mut config);
        self.write_file(&toml::to_string(&config).unwrap());
    }

    /// Writes this text as the configuration file.
    pub fn write_file(&self, text: &str) {
        std::fs::write(self.folder().join("hostler.toml"), text).unwrap();
    }

    /// Sends SIGHUP: reload the configuration.
    pub fn hang_up(&self) {
        self.signal(Signal::HUP);
    }

    /// Sends SIGUSR2: upgrade to the current program file.
    pub fn ask_for_upgrade(&self) {
        self.signal(Signal::USR2);
    }

    /// Sends SIGUSR1: drain, then stop.
    pub fn ask_to_drain(&self) {
        self.signal(Signal::USR1);
    }

    /// Sends SIGTERM: stop.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends SIGINT, as Ctrl-C does: stop.
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        // It may have ended already.
        let _ = kill_process(pid, signal);
    }

    /// Waits for its end and for the last line of its log. Returns the exit code, or the negative number of the signal.
    pub async fn exit(&mut self) -> i32 {
        let status = eventually("Hostler's end", async || self.try_exit()).await;
        // The pipe may still have lines. After an upgrade, the new process goes on writing to it.
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
    /// The processes that took over, in order. They are child processes of this test only for a short time.
    fn successors(&self) -> Vec<Pid> {
        let lines = self.log.lines();
        let told =
            lines.iter().filter_map(|line| line.split_once("upgrade: pid ")?.1.split_once(" has taken over"));
        told.filter_map(|(pid, _)| Pid::from_raw(pid.parse().ok()?)).collect()
    }

    /// Whether all writers of the log end within [`FAREWELL`] after SIGTERM.
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
            // Its log ends when the process ends.
            if !self.ends_when_told(Pid::from_child(&self.child)) {
                self.signal(Signal::KILL);
            }
            let _ = self.child.wait();
        }
        self.errors.ends_within(FAREWELL);
        let complaints = self.errors.lines().join("\n");
        // A panic fails the test, even if no client noticed it.
        let has_panicked = complaints.contains("panicked at");
        if std::thread::panicking() || has_panicked {
            let lines = self.log.lines();
            let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
            eprintln!("--- the end of Hostler's log\n{}\n{complaints}", last.join("\n"));
        }
        assert!(std::thread::panicking() || !has_panicked, "Hostler has panicked");
    }
}
