//! Whether this process may use a file, a folder or a program, in words for an operator. Knows no keys.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// The system refuses the file to the user of this process.
const DENIED: &str = "may not be read (permission denied)";
/// Where the system looks for programs without PATH.
const DEFAULT_PATH: &str = "/bin:/usr/bin";
/// What Node adds to the name of a file that does not exist.
const ENDINGS: [&str; 3] = ["js", "json", "node"];
/// What makes a folder a program for Node.
const ENTRIES: [&str; 4] = ["package.json", "index.js", "index.json", "index.node"];

/// A folder that may be entered.
pub fn folder(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Err(error) => Err(explain(path, &error)),
        Ok(about) if !about.is_dir() => Err(format!("{} is not a folder", path.display())),
        Ok(_) => may(path, Access::EXEC_OK, "read"),
    }
}

/// Whether a path is on a local file system. On a network file system, opening a file may wait for the network even if its name is cached.
#[cfg(target_os = "linux")]
pub fn is_on_local_disk(path: &Path) -> bool {
    const EXT: u32 = 0xEF53;
    const XFS: u32 = 0x5846_5342;
    const BTRFS: u32 = 0x9123_683E;
    const F2FS: u32 = 0xF2F5_2010;
    const TMPFS: u32 = 0x0102_1994;
    const OVERLAY: u32 = 0x794C_7630;
    let known = [EXT, XFS, BTRFS, F2FS, TMPFS, OVERLAY];
    // The number has 32 bits, but its type differs between platforms.
    rustix::fs::statfs(path).is_ok_and(|about| known.contains(&(about.f_type as u32)))
}

/// Only Linux can promise not to wait, so all others are treated as a network file system.
#[cfg(not(target_os = "linux"))]
pub fn is_on_local_disk(_: &Path) -> bool {
    false
}

/// A regular file that may be read. To open a named pipe would wait until another program writes to it.
pub fn file(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Ok(about) if !about.is_file() && !about.is_dir() => {
            Err(format!("{} is not a regular file", path.display()))
        }
        _ => readable(path),
    }
}

/// A file that another program may read, of any kind but a folder.
fn readable(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Err(error) => Err(explain(path, &error)),
        Ok(about) if about.is_dir() => Err(folder_for_file(path)),
        Ok(_) => may(path, Access::READ_OK, "read"),
    }
}

/// What is wrong with a folder where a file is expected.
pub fn folder_for_file(path: &Path) -> String {
    format!("{} is a folder, not a file", path.display())
}

/// A file that may be written, or made.
pub fn writable(path: &Path) -> Result<(), String> {
    match path.exists() {
        true => may(path, Access::WRITE_OK, "written"),
        false => makeable(path),
    }
}

/// A file that may be made.
pub fn makeable(path: &Path) -> Result<(), String> {
    let Some(parent) = path.parent() else { return Ok(()) };
    folder(parent)?;
    may(parent, Access::WRITE_OK | Access::EXEC_OK, "written")
}

/// A script, as `node` finds it: `dist/main` is also `dist/main.js`, or a folder with `index.js`.
pub fn script(path: &Path) -> Result<(), String> {
    if path.is_dir() {
        return match ENTRIES.iter().any(|entry| path.join(entry).exists()) {
            true => folder(path),
            false => Err(format!("{} is a folder without index.js and package.json", path.display())),
        };
    }
    let longer = ENDINGS.iter().map(|ending| PathBuf::from(format!("{}.{ending}", path.display())));
    let found = longer.filter(|_| !path.exists()).find(|longer| longer.is_file());
    readable(found.as_deref().unwrap_or(path)).map_err(|why| {
        let is_built = path.parent().is_some_and(|parent| !parent.exists());
        why + if is_built { "; if a build makes it, run the build first" } else { "" }
    })
}

/// A program, looked up as the system does for a process with this folder and this PATH.
pub fn program(name: &str, cwd: &Path, path: Option<&str>) -> Result<(), String> {
    let is_script = [".js", ".mjs", ".cjs", ".ts"].iter().any(|ending| name.ends_with(ending));
    find_program(name, cwd, path).map_err(|why| match is_script && !name.contains(' ') {
        true => format!("{why}; to run a script, write node {name}"),
        false => why,
    })
}

fn find_program(name: &str, cwd: &Path, path: Option<&str>) -> Result<(), String> {
    if name.contains('/') {
        let file = cwd.join(name);
        return executable(&file).map_err(|why| {
            let is_package = name.contains("node_modules/") && !file.exists();
            why + if is_package { "; npm install makes it" } else { "" }
        });
    }
    let folders = path.unwrap_or(DEFAULT_PATH);
    let files = std::env::split_paths(folders).map(|folder| cwd.join(folder).join(name));
    let mut refused = None;
    for file in files.filter(|file| file.is_file()) {
        match executable(&file) {
            Ok(()) => return Ok(()),
            Err(why) => refused = refused.or(Some(why)),
        }
    }
    let help = match name {
        "node" | "npm" | "npx" => {
            "; if only your shell has it in PATH, as with nvm: set PATH in env of the pool, or install it for the whole machine"
        }
        name if name.contains(' ') => "; in a list, the program and each argument are items of their own",
        _ => "",
    };
    Err(refused.unwrap_or_else(|| format!("there is no program {name:?} in PATH{help}")))
}

fn executable(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Err(error) => Err(explain(path, &error)),
        Ok(about) if about.is_dir() => Err(format!("{} is a folder, not a program", path.display())),
        Ok(_) => may(path, Access::EXEC_OK, "executed"),
    }
}

fn may(path: &Path, wanted: Access, what: &str) -> Result<(), String> {
    match access(path, wanted) {
        Ok(()) => Ok(()),
        Err(error) if error == rustix::io::Errno::ACCESS => {
            Err(format!("{} may not be {what} (permission denied)", path.display()))
        }
        Err(error) => Err(format!("{} may not be {what}: {error}", path.display())),
    }
}

/// Why a file cannot be read. The name of the file is before it.
pub fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => DENIED.into(),
        _ => format!("cannot be read: {error}"),
    }
}

/// Why a file is not there, as far as this process may know.
fn explain(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.kind() {
        ErrorKind::NotFound => format!("{path} does not exist"),
        ErrorKind::NotADirectory => format!("{path} does not exist: a part of the path is a file"),
        _ => format!("{path} {}", unreadable(error)),
    }
}
