//! A real nats-server in its own process, on a free port that it keeps after a restart. Knows no messages.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::eventually::eventually;
use crate::log::Log;
use crate::port::{HeldPort, held_port};
use crate::program::nats_server;

/// The log line after which it accepts connections.
const READY: &str = "Server is ready";

/// A nats-server to be started.
pub struct NatsPlan {
    folder: TempDir,
    config: String,
}

/// A nats-server with default settings.
///
/// # Panics
/// If its folder cannot be made.
pub fn nats() -> NatsPlan {
    NatsPlan { folder: tempfile::tempdir().unwrap(), config: String::new() }
}

impl NatsPlan {
    /// Adds to its configuration, in its own syntax: `authorization { user: a, password: b }`.
    pub fn config(mut self, text: &str) -> Self {
        self.config.push_str(text);
        self.config.push('\n');
        self
    }

    /// The folder of its configuration file, for certificates.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts it and waits until it listens. `None` if it is not installed: a line about the skipped test has been
    /// printed.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(self) -> Option<NatsServer> {
        let program = nats_server()?;
        std::fs::write(self.folder.path().join("nats.conf"), &self.config).unwrap();
        let port = held_port();
        let child = launch(&program, self.folder.path(), &port).await;
        Some(NatsServer { program, folder: self.folder, child, port })
    }
}

/// A running nats-server. Dropping it kills it.
pub struct NatsServer {
    program: PathBuf,
    folder: TempDir,
    child: Child,
    /// Held while the server is stopped.
    port: HeldPort,
}

impl NatsServer {
    /// Its address, which stays the same after a restart.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Its URL, as a configuration has it.
    pub fn url(&self) -> String {
        format!("nats://{}", self.address())
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it, as a crash would: its clients' connections end.
    ///
    /// # Panics
    /// If the end of the process cannot be awaited.
    pub fn stop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }

    /// Starts it again on the same port.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start_again(&mut self) {
        self.child = launch(&self.program, self.folder.path(), &self.port).await;
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the program on this port and waits until it listens.
async fn launch(program: &Path, folder: &Path, port: &HeldPort) -> Child {
    let mut child = Command::new(program)
        .args(["--config", "nats.conf", "--addr", "127.0.0.1", "--port", &port.address().port().to_string()])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = Log::of(child.stderr.take().unwrap());
    eventually("nats-server to listen", async || {
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none(), "nats-server ended: {ended:?} {:#?}", log.lines());
        log.after(READY)
    })
    .await;
    child
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read};
    use std::net::TcpStream;

    use super::*;

    fn greeting(nats: &NatsServer) -> String {
        let mut start = [0; 5];
        TcpStream::connect(nats.address()).unwrap().read_exact(&mut start).unwrap();
        String::from_utf8_lossy(&start).into_owned()
    }

    #[tokio::test]
    async fn a_nats_server_comes_back_where_it_was() {
        let Some(mut nats) = nats().config("max_payload: 1000").start().await else { return };
        assert_eq!(greeting(&nats), "INFO ");

        nats.stop();
        let refused = TcpStream::connect(nats.address()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);

        nats.start_again().await;
        assert_eq!(greeting(&nats), "INFO ");
    }
}
