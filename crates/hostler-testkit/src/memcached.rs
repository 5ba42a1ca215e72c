//! A real memcached in a process of its own, on a free port that it keeps when it comes back. Knows no item.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::eventually::eventually;
use crate::port::{HeldPort, held_port_at};
use crate::program;

/// A running memcached. Dropped, it is killed.
pub struct Memcached {
    program: PathBuf,
    folder: TempDir,
    child: Child,
    /// Kept while it is away.
    port: HeldPort,
}

/// Starts one and waits until it listens; `None` where there is no memcached: that has been said aloud, and the test has nothing
/// more to do.
///
/// # Panics
/// If it does not start.
pub async fn memcached() -> Option<Memcached> {
    memcached_at(Ipv4Addr::LOCALHOST.into()).await
}

/// One that listens at this address; `None` likewise where this machine has none of that kind.
///
/// # Panics
/// If it does not start.
pub async fn memcached_at(host: IpAddr) -> Option<Memcached> {
    if let Err(error) = TcpListener::bind((host, 0)) {
        program::say_skipped(&format!("nothing can listen at {host}: {error}"));
        return None;
    }
    let program = program::memcached()?;
    let folder = tempfile::tempdir().unwrap();
    let port = held_port_at(host);
    let child = launch(&program, folder.path(), &port).await;
    Some(Memcached { program, folder, child, port })
}

impl Memcached {
    /// Where it listens, now and when it has come back.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Takes it away at once, with all that it holds.
    ///
    /// # Panics
    /// If it cannot be waited for.
    pub fn stop(&mut self) {
        // One that has ended needs no killing.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }

    /// Brings it back, empty, on the port it had.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start_again(&mut self) {
        self.child = launch(&self.program, self.folder.path(), &self.port).await;
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn launch(program: &Path, folder: &Path, port: &HeldPort) -> Child {
    let (file, at) = (folder.join("port"), port.address());
    // That of its life before.
    let _ = std::fs::remove_file(&file);
    let mut child = Command::new(program)
        // Started by root it wants to be told to stay so.
        .args(["-u", "root", "-l", &at.ip().to_string(), "-U", "0", "-p", &at.port().to_string()])
        .env("MEMCACHED_PORT_FILENAME", &file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("memcached to listen", async || {
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none(), "memcached ended: {ended:?}");
        std::fs::read_to_string(&file).ok()?.starts_with("TCP INET").then_some(())
    })
    .await;
    child
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::TcpStream;

    use super::*;

    fn version(memcached: &Memcached) -> String {
        let mut start = [0; 8];
        let mut connection = TcpStream::connect(memcached.address()).unwrap();
        connection.write_all(b"version\r\n").unwrap();
        connection.read_exact(&mut start).unwrap();
        String::from_utf8_lossy(&start).into_owned()
    }

    #[tokio::test]
    async fn a_memcached_comes_back_where_it_was() {
        let Some(mut memcached) = memcached().await else { return };
        assert_eq!(version(&memcached), "VERSION ");

        memcached.stop();
        let refused = TcpStream::connect(memcached.address()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);

        memcached.start_again().await;
        assert_eq!(version(&memcached), "VERSION ");
    }
}
