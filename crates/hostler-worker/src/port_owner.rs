//! Finds which process of a group listens on a TCP port. Behind `npm start` it is not the process that Hostler started.
//! Blocks for some milliseconds.

use std::collections::HashSet;
use std::fs;

use super::process::stat_after_name;

/// The state LISTEN in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// The process of this group that listens on the port. Of several that share the socket, the one with the lowest number,
/// which is the one that opened it.
pub(super) fn port_owner(port: u16, group: u32) -> Option<u32> {
    let sockets = listening_on(port);
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let pids = processes.filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| group_of(*pid) == Some(group)).filter(|pid| holds(*pid, &sockets)).min()
}

/// The sockets that listen on the port, as `/proc/PID/fd` names them.
fn listening_on(port: u16) -> HashSet<String> {
    let ending = format!(":{port:04X}");
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
    let lines = tables.iter().flat_map(|table| table.lines().skip(1));
    let sockets = lines.filter_map(|line| {
        let columns: Vec<_> = line.split_ascii_whitespace().collect();
        let [_, local, _, state, ..] = columns[..] else { return None };
        let inode = columns.get(9)?;
        (local.ends_with(&ending) && state == LISTEN).then(|| format!("socket:[{inode}]"))
    });
    sockets.collect()
}

/// The process group: field 5 of the stat file.
fn group_of(pid: u32) -> Option<u32> {
    stat_after_name(pid)?.split_ascii_whitespace().nth(2)?.parse().ok()
}

fn holds(pid: u32, sockets: &HashSet<String>) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut targets = files.filter_map(|file| fs::read_link(file.path()).ok());
    targets.any(|target| target.to_str().is_some_and(|target| sockets.contains(target)))
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
        assert_eq!(port_owner(port, group), Some(std::process::id()));
        assert_eq!(port_owner(port, 1), None);
        drop(listener);
        assert_eq!(port_owner(port, group), None);
    }
}
