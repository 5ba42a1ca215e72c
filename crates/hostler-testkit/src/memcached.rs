//! A real memcached in its own process, on a free port that it keeps after a restart. Knows no item.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::eventually::eventually;
use crate::port::{HeldPort, held_port_at};
use crate::program;

/// A running memcached. Dropping it kills it.
pub struct Memcached {
    program: PathBuf,
    folder: TempDir,
    child: Child,
    /// Held while memcached is stopped.
    port: HeldPort,
}

/// Starts memcached and waits until it listens. `None` if it is not installed: a line about the skipped test has been
/// printed.
///
/// # Panics
/// If it does not start.
pub async fn memcached() -> Option<Memcached> {
    memcached_at(Ipv4Addr::LOCALHOST.into()).await
}

/// Starts memcached at this address. `None` also if the machine has no such address.
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
    /// Its address, which stays the same after a restart.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Kills it. Its items are lost.
    ///
    /// # Panics
    /// If the end of the process cannot be awaited.
    pub fn stop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }

    /// Starts it again, without items, on the same port.
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
    // The file of the run before.
    let _ = std::fs::remove_file(&file);
    let mut child = Command::new(program)
        // If root starts it, this option is needed.
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
