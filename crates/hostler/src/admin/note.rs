//! Where a running Hostler notes its admin address, so that a command without an address finds it. Knows no commands.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hostler_config::{ListenAddress, Surroundings};

/// The file in the private runtime directory, which ends with its Hostler.
const FILE: &str = "admin";
/// The beginning of the names of runtime directories.
const DIRECTORY: &str = "hostler-";

/// A running Hostler of this user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NotedHostler {
    /// Its admin address.
    pub admin: ListenAddress,
    /// The folder in which it was started.
    pub folder: PathBuf,
    /// The file with its admin token.
    pub token_file: Option<PathBuf>,
}

/// Notes the address. A note that cannot be written is missing: commands then need `--admin`.
pub fn write(directory: &Path, noted: &NotedHostler) {
    let token_file = noted.token_file.as_ref().map_or(String::new(), |file| format!("\n{}", file.display()));
    let text = format!("{}\n{}{token_file}", noted.admin, noted.folder.display());
    let _ = std::fs::write(directory.join(FILE), text);
}

/// The Hostlers of this user that have workers. During an upgrade two of them have the same address and count once.
pub fn read(surroundings: &Surroundings) -> Vec<NotedHostler> {
    let runtime = surroundings.environment.get("XDG_RUNTIME_DIR").map(PathBuf::from);
    let parents = runtime.into_iter().chain([surroundings.temp_dir.clone()]);
    let entries = parents.filter_map(|parent| std::fs::read_dir(parent).ok()).flatten().flatten();
    let own = rustix::process::geteuid().as_raw();
    let directories = entries.filter(|entry| {
        let is_own = entry.metadata().is_ok_and(|about| about.is_dir() && about.uid() == own);
        is_own && entry.file_name().to_string_lossy().starts_with(DIRECTORY)
    });
    let notes = directories.filter_map(|entry| {
        let text = std::fs::read_to_string(entry.path().join(FILE)).ok()?;
        let mut lines = text.lines();
        let admin = lines.next()?.parse().ok()?;
        Some(NotedHostler {
            admin,
            folder: lines.next()?.into(),
            token_file: lines.next().map(PathBuf::from),
        })
    });
    let mut notes: Vec<_> = notes.collect();
    notes.sort();
    notes.dedup();
    notes
}
