//! Starts a real memcached. Knows no item.

use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::process::Command;

use crate::port::held_port_at;
use crate::program;
use crate::server_process::ServerProcess;

/// Starts memcached and waits until it listens. `None` if it is not installed: a line about the skipped test has been
/// printed.
///
/// # Panics
/// If it does not start.
pub async fn memcached() -> Option<ServerProcess> {
    memcached_at(Ipv4Addr::LOCALHOST.into()).await
}

/// Starts memcached at this address. `None` also if the machine has no such address.
///
/// # Panics
/// If it does not start.
pub async fn memcached_at(host: IpAddr) -> Option<ServerProcess> {
    if let Err(error) = TcpListener::bind((host, 0)) {
        program::say_skipped(&format!("nothing can listen at {host}: {error}"));
        return None;
    }
    let program = program::memcached()?;
    let folder = tempfile::tempdir().unwrap();
    let started = ServerProcess::start("memcached", folder, held_port_at(host), move |at| {
        let mut command = Command::new(&program);
        // If root starts it, -u is needed.
        command.args(["-u", "root", "-l", &at.ip().to_string(), "-U", "0", "-p", &at.port().to_string()]);
        command
    });
    Some(started.await)
}
