//! A real server in its own process, on a free port that it keeps after a restart. Knows no protocol.

use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::eventually::eventually;
use crate::port::HeldPort;

/// The command that starts a server on this address.
type StartCommand = Box<dyn Fn(SocketAddr) -> Command + Send + Sync>;

/// A running server. Dropping it kills it.
pub struct ServerProcess {
    name: &'static str,
    command: StartCommand,
    folder: TempDir,
    child: Child,
    /// Held while the server is stopped.
    port: HeldPort,
}

impl ServerProcess {
    /// Starts a server and waits until it accepts connections.
    ///
    /// # Panics
    /// If it does not start.
    pub(crate) async fn start(
        name: &'static str,
        folder: TempDir,
        port: HeldPort,
        command: impl Fn(SocketAddr) -> Command + Send + Sync + 'static,
    ) -> Self {
        let child = launch(name, command(port.address()), folder.path(), port.address()).await;
        Self { name, command: Box::new(command), folder, child, port }
    }

    /// Its address, which stays the same after a restart.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it, as a crash would: its clients' connections end, and what it had in memory is lost.
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
        let (folder, address) = (self.folder.path(), self.port.address());
        self.child = launch(self.name, (self.command)(address), folder, address).await;
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn launch(name: &str, mut command: Command, folder: &Path, address: SocketAddr) -> Child {
    let log = folder.join("log");
    let mut child = command
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&log).unwrap())
        .spawn()
        .unwrap();
    eventually((name, "to listen"), async || {
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none(), "{name} ended: {ended:?} {}", std::fs::read_to_string(&log).unwrap());
        TcpStream::connect(address).await.ok().map(drop)
    })
    .await;
    child
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::TcpStream;

    use super::*;
    use crate::{memcached, nats};

    /// The first bytes that the server sends after `asked`.
    fn first<const BYTES: usize>(server: &ServerProcess, asked: &[u8]) -> [u8; BYTES] {
        let mut start = [0; BYTES];
        let mut connection = TcpStream::connect(server.address()).unwrap();
        connection.write_all(asked).unwrap();
        connection.read_exact(&mut start).unwrap();
        start
    }

    async fn comes_back(mut server: ServerProcess, answers: impl Fn(&ServerProcess)) {
        answers(&server);
        server.stop();
        let refused = TcpStream::connect(server.address()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        server.start_again().await;
        answers(&server);
    }

    #[tokio::test]
    async fn a_nats_server_comes_back_where_it_was() {
        let Some(nats) = nats().config("max_payload: 1000").start().await else { return };
        comes_back(nats.0, |nats| assert_eq!(&first(nats, b""), b"INFO ")).await;
    }

    #[tokio::test]
    async fn a_memcached_comes_back_where_it_was() {
        let Some(memcached) = memcached().await else { return };
        comes_back(memcached, |memcached| assert_eq!(&first(memcached, b"version\r\n"), b"VERSION ")).await;
    }
}
