//! Starts a real nats-server. Knows no messages.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::port::held_port;
use crate::program::nats_server;
use crate::server_process::ServerProcess;

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
        let started = ServerProcess::start("nats-server", self.folder, held_port(), move |at| {
            let mut command = Command::new(&program);
            let address = ["--addr", &at.ip().to_string(), "--port", &at.port().to_string()];
            command.args(["--config", "nats.conf"]).args(address);
            command
        });
        Some(NatsServer(started.await))
    }
}

/// A running nats-server. Dropping it kills it.
pub struct NatsServer(pub(crate) ServerProcess);

impl NatsServer {
    /// Its URL, as a configuration has it.
    pub fn url(&self) -> String {
        format!("nats://{}", self.address())
    }
}

impl Deref for NatsServer {
    type Target = ServerProcess;

    fn deref(&self) -> &ServerProcess {
        &self.0
    }
}

impl DerefMut for NatsServer {
    fn deref_mut(&mut self) -> &mut ServerProcess {
        &mut self.0
    }
}
