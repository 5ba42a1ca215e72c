//! Where a running Hostler notes its admin address, so that a command without an address finds it. Knows no commands.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hostler_config::{ListenAddress, LoadContext};

/// The file in the private runtime directory, which ends with its Hostler.
pub const FILE: &str = "admin";
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

/// The text of the file. If it cannot be written, commands need `--admin`.
impl fmt::Display for NotedHostler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.admin, self.folder.display())?;
        self.token_file.as_ref().map_or(Ok(()), |file| write!(f, "\n{}", file.display()))
    }
}

/// The user's folder for sockets. A path that is not absolute counts as missing, as its specification says: an empty one would be the folder in
/// which Hostler was started.
pub fn runtime_dir(environment: &BTreeMap<String, String>) -> Option<PathBuf> {
    let folder = environment.get("XDG_RUNTIME_DIR").map(Path::new);
    folder.filter(|folder| folder.is_absolute()).map(Path::to_owned)
}

/// The Hostlers of this user that have workers. During an upgrade two of them have the same address and count once.
pub fn read(load_context: &LoadContext) -> Vec<NotedHostler> {
    let parents = runtime_dir(&load_context.environment).into_iter().chain([load_context.temp_dir.clone()]);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_folder_that_is_not_absolute_counts_as_missing() {
        let of = |value: &str| runtime_dir(&[("XDG_RUNTIME_DIR".into(), value.into())].into());
        assert_eq!(of("/run/user/1000"), Some("/run/user/1000".into()));
        assert_eq!((of(""), of("run"), runtime_dir(&BTreeMap::new())), (None, None, None));
    }
}
