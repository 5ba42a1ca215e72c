//! The files of `/proc` about processes, as more than one part of this crate reads them. Decides nothing.
//!
//! Of a process that has ended, and on a system without these files, nothing is known.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::process::{Pid, getpgrp};

/// All processes.
pub(super) fn processes() -> impl Iterator<Item = u32> {
    numbers("/proc")
}

/// Whether the program of a process is Node, by its name.
pub(super) fn runs_node(pid: u32) -> bool {
    fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| is_node(&program))
}

pub(super) fn is_node(program: &Path) -> bool {
    program.file_name().is_some_and(|name| name.as_bytes().starts_with(b"node"))
}

/// The threads of a process, the main thread included.
pub(super) fn threads(pid: u32) -> impl Iterator<Item = u32> {
    numbers(&format!("/proc/{pid}/task"))
}

/// The entries of a folder whose names are numbers.
fn numbers(folder: &str) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The processes that threads of this one have started and that have not ended. Empty on a kernel without these files.
fn children(pid: u32) -> Vec<u32> {
    let of = |thread| fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")).unwrap_or_default();
    let lists: Vec<_> = threads(pid).map(of).collect();
    lists.iter().flat_map(|list| list.split_ascii_whitespace()).filter_map(|pid| pid.parse().ok()).collect()
}

/// The process group: field 5 of the stat file.
pub(super) fn group_of(pid: u32) -> Option<u32> {
    stat_after_name(pid)?.split_ascii_whitespace().nth(2)?.parse().ok()
}

/// The number of a process in a PID namespace below the one of these files, if it is in one.
pub(super) fn number_below(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let mut numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_ascii_whitespace();
    numbers.next()?;
    numbers.next_back()?.parse().ok()
}

/// The other groups of the processes below the leader of this group: an app makes one by `detached`, as Puppeteer does for its browser. A
/// process whose parent has ended is below none.
pub(super) fn groups_below(leader: u32) -> Vec<Pid> {
    if group_of(leader) != Some(leader) {
        return vec![];
    }
    let (mut seen, mut groups, mut left) = (BTreeSet::new(), BTreeSet::new(), children(leader));
    while let Some(pid) = left.pop() {
        // A number that is used again meanwhile may be seen twice.
        if seen.insert(pid) {
            groups.extend(group_of(pid));
            left.extend(children(pid));
        }
    }
    groups.remove(&leader);
    let groups = groups.into_iter().filter_map(|group| Pid::from_raw(group.cast_signed()));
    groups.filter(|group| *group != getpgrp() && *group != Pid::INIT).collect()
}

/// Whether each process of this group has ended. The kernel counts one until its parent has asked for its status, and process 1 of a container
/// may never do that. `living`: a process of the group that lived at the last look. To find another one means to look at all processes.
pub(super) fn has_only_zombies(group: Pid, living: &mut Option<u32>) -> bool {
    let lives = |pid: &u32| is_living_member(*pid, group);
    *living = living.filter(lives).or_else(|| processes().find(lives));
    living.is_none() && has_own_numbers()
}

/// The state, the process group and the number of threads: fields 3, 5 and 20 of the stat file.
fn is_living_member(pid: u32, group: Pid) -> bool {
    let Some(stat) = stat_after_name(pid) else { return false };
    let mut fields = stat.split_ascii_whitespace();
    let main_has_ended = matches!(fields.next(), Some("Z" | "X"));
    let is_member = fields.nth(1).and_then(|field| field.parse::<i32>().ok()) == Some(group.as_raw_pid());
    // The other threads of a process may go on without the main thread.
    is_member && (!main_has_ended || fields.nth(14).is_some_and(|threads| !matches!(threads, "0" | "1")))
}

/// Whether there are these files, with the numbers of this PID namespace.
fn has_own_numbers() -> bool {
    let own = std::process::id().to_string();
    fs::read_link("/proc/self").is_ok_and(|link| link == Path::new(&own))
}

/// The stat file of a process from its third field, the state, on. The second field is the name of the program, which may
/// contain anything.
pub(super) fn stat_after_name(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned())
}

/// The resident memory of a living process in bytes.
pub fn resident_bytes(pid: u32) -> Option<u64> {
    memory(pid).map(|(resident, _)| resident)
}

/// The anonymous memory of a process in bytes: resident memory without files, such as the program itself, which all
/// processes share.
pub(super) fn own_bytes(pid: u32) -> Option<u64> {
    memory(pid).map(|(resident, shared)| resident.saturating_sub(shared))
}

/// The second and the third field of the statm file, which are in pages: the resident memory, and the part of it that is of files.
fn memory(pid: u32) -> Option<(u64, u64)> {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let mut pages = statm.split_ascii_whitespace().skip(1).map(str::parse::<u64>);
    let page = rustix::param::page_size() as u64;
    Some((pages.next()?.ok()? * page, pages.next()?.ok()? * page))
}
