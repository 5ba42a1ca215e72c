//! Reads /proc: processes, their groups and their ports. Knows no Hostler.

use std::collections::HashSet;
use std::fs;

use rustix::process::{Pid, Signal, kill_process};

pub fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

/// The process may have ended already.
pub fn kill(pid: u32) {
    try_signal(pid, Signal::KILL);
}

/// Stops the process until it is continued. It may have ended already.
pub fn freeze(pid: u32) {
    try_signal(pid, Signal::STOP);
}

/// The process may have ended already.
pub fn wake(pid: u32) {
    try_signal(pid, Signal::CONT);
}

fn try_signal(pid: u32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal);
}

/// A zombie is not alive: it only waits until its parent has read its status.
pub fn is_alive(pid: u32) -> bool {
    field(pid, 0).is_some_and(|state| state != "Z" && state != "X")
}

pub fn parent_of(pid: u32) -> Option<u32> {
    field(pid, 1)?.parse().ok()
}

/// The living processes of this process's group.
pub fn group_of(pid: u32) -> Vec<u32> {
    let Some(group) = field(pid, 2) else { return vec![] };
    all_processes().filter(|&pid| field(pid, 2).as_ref() == Some(&group) && is_alive(pid)).collect()
}

/// The program itself, not its guard.
pub fn is_hostler(pid: u32) -> bool {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = words.split(|&byte| byte == 0);
    words.next().is_some_and(|name| name.ends_with(b"hostler")) && words.next() == Some(b"run")
}

/// The name in the kernel.
pub fn name_of(pid: u32) -> Option<String> {
    Some(fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end().to_owned())
}

pub fn children_of(pid: u32) -> Vec<u32> {
    all_processes().filter(|&child| parent_of(child) == Some(pid)).collect()
}

/// The TCP ports on which these processes listen.
pub fn tcp_ports(pids: &[u32]) -> Vec<u16> {
    let inodes: HashSet<String> = pids.iter().flat_map(|&pid| socket_inodes(pid)).collect();
    let mut ports: Vec<u16> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .into_iter()
        .flat_map(|table| listening(&fs::read_to_string(table).unwrap_or_default(), &inodes))
        .collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

fn listening(table: &str, inodes: &HashSet<String>) -> Vec<u16> {
    const LISTEN: &str = "0A";
    let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row[3] == LISTEN && inodes.contains(row[9]))
        .map(|row| u16::from_str_radix(row[1].rsplit(':').next().unwrap(), 16).unwrap())
        .collect()
}

fn socket_inodes(pid: u32) -> Vec<String> {
    let links = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    links
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect()
}

fn all_processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A field of /proc/PID/stat, counted from the state: the name before it may contain any character.
fn field(pid: u32, index: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(index).map(str::to_owned)
}
