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
    start(host, None).await
}

/// Starts a memcached that wants a password.
///
/// # Panics
/// If it does not start.
pub async fn memcached_with_password() -> Option<ServerProcess> {
    start(Ipv4Addr::LOCALHOST.into(), Some("user:password\n")).await
}

async fn start(host: IpAddr, passwords: Option<&str>) -> Option<ServerProcess> {
    if let Err(error) = TcpListener::bind((host, 0)) {
        program::say_skipped(&format!("nothing can listen at {host}: {error}"));
        return None;
    }
    let program = program::memcached()?;
    let folder = tempfile::tempdir().unwrap();
    let passwords = passwords.map(|passwords| {
        let file = folder.path().join("passwords");
        std::fs::write(&file, passwords).unwrap();
        file
    });
    let started = ServerProcess::start("memcached", folder, held_port_at(host), move |at| {
        let mut command = Command::new(&program);
        // If root starts it, -u is needed.
        command.args(["-u", "root", "-l", &at.ip().to_string(), "-U", "0", "-p", &at.port().to_string()]);
        if let Some(passwords) = &passwords {
            command.arg("-Y").arg(passwords);
        }
        command
    });
    Some(started.await)
}
