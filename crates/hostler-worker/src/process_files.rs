//! The files of `/proc` about processes, as more than one part of this crate reads them. Decides nothing.
//!
//! Of a process that has ended, and on a system without these files, nothing is known.

use std::fs;

/// All processes.
pub(super) fn processes() -> impl Iterator<Item = u32> {
    numbers("/proc")
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
