//! Finds the processes of a group that listen on TCP: behind `npm start`, the app is not the process that Hostler started.
//! Blocks for some milliseconds. Knows no worker.

use std::collections::HashMap;
use std::fs;

use super::process_files::{group_of, processes};

/// The state LISTEN in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// A TCP port on which a process listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TcpListen {
    pub port: u16,
    /// Of several processes that share the socket, the one with the lowest number, which is the one that opened it.
    pub pid: u32,
    /// It listens on all addresses of the machine.
    pub is_open: bool,
}

/// The process of this group that listens on the port.
pub(super) fn port_owner(port: u16, group: u32) -> Option<TcpListen> {
    let own = listens(group, |other| other == port);
    own.into_iter().min_by_key(|listen| listen.pid)
}

/// All TCP ports on which processes of this group listen.
pub(super) fn listens_of(group: u32) -> Vec<TcpListen> {
    listens(group, |_| true)
}

fn listens(group: u32, wanted: impl Fn(u16) -> bool) -> Vec<TcpListen> {
    let sockets = listening(wanted);
    let mut found: HashMap<&str, TcpListen> = HashMap::new();
    for pid in processes().filter(|pid| !sockets.is_empty() && group_of(*pid) == Some(group)) {
        for (socket, (port, is_open)) in held_by(pid, &sockets) {
            let listen = found.entry(socket).or_insert(TcpListen { port, pid, is_open });
            listen.pid = listen.pid.min(pid);
        }
    }
    let mut found: Vec<_> = found.into_values().collect();
    found.sort_unstable();
    found
}

type Sockets = HashMap<String, (u16, bool)>;

/// The sockets that listen, as `/proc/PID/fd` names them, with the port and whether it is open to other machines.
fn listening(wanted: impl Fn(u16) -> bool) -> Sockets {
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
    let lines = tables.iter().flat_map(|table| table.lines().skip(1));
    let sockets = lines.filter_map(|line| {
        let columns: Vec<_> = line.split_ascii_whitespace().collect();
        let [_, local, _, state, ..] = columns[..] else { return None };
        let (address, port) = local.split_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        let is_open = address.bytes().all(|digit| digit == b'0');
        let inode = columns.get(9)?;
        (state == LISTEN && wanted(port)).then(|| (format!("socket:[{inode}]"), (port, is_open)))
    });
    sockets.collect()
}

fn held_by(pid: u32, sockets: &Sockets) -> Vec<(&str, (u16, bool))> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let targets = files.filter_map(|file| fs::read_link(file.path()).ok());
    targets
        .filter_map(|target| {
            sockets.get_key_value(target.to_str()?).map(|(name, listen)| (name.as_str(), *listen))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use rustix::process::getpgrp;

    use super::*;

    #[test]
    fn the_process_that_listens_is_found_in_its_group_only() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let group = getpgrp().as_raw_pid().cast_unsigned();
        assert_eq!(port_owner(port, group).map(|listen| listen.pid), Some(std::process::id()));
        assert_eq!(port_owner(port, 1), None);
        let open = TcpListener::bind("0.0.0.0:0").unwrap();
        let open_port = open.local_addr().unwrap().port();
        let pid = std::process::id();
        let all = listens_of(group);
        assert!(all.contains(&TcpListen { port, pid, is_open: false }), "{all:?}");
        assert!(all.contains(&TcpListen { port: open_port, pid, is_open: true }), "{all:?}");
        drop(listener);
        assert_eq!(port_owner(port, group), None);
    }
}
