//! Where a running Hostler notes its admin address, so that a command without an address finds it. Knows no commands.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hostler_config::{ListenAddress, LoadContext};
use hostler_worker::is_abandoned;

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

/// The Hostlers of this user that have workers. Of those with the same address, the one that has noted it last: during an upgrade there are two,
/// and the older one may have had another token.
pub fn read(load_context: &LoadContext) -> Vec<NotedHostler> {
    let parents = runtime_dir(&load_context.environment).into_iter().chain([load_context.temp_dir.clone()]);
    let entries = parents.filter_map(|parent| std::fs::read_dir(parent).ok()).flatten().flatten();
    let own = rustix::process::geteuid().as_raw();
    let directories = entries.filter(|entry| {
        let is_own = entry.metadata().is_ok_and(|about| about.is_dir() && about.uid() == own);
        // The next Hostler removes what a killed one has left.
        is_own && entry.file_name().to_string_lossy().starts_with(DIRECTORY) && !is_abandoned(&entry.path())
    });
    let mut all: Vec<_> = directories.filter_map(|entry| note_in(&entry.path().join(FILE))).collect();
    all.sort_by_key(|(noted, _)| std::cmp::Reverse(*noted));
    let mut notes: Vec<NotedHostler> = Vec::new();
    for (_, note) in all {
        if notes.iter().all(|newer| newer.admin != note.admin) {
            notes.push(note);
        }
    }
    notes.sort();
    notes
}

/// A note, and when it was written.
fn note_in(file: &Path) -> Option<(SystemTime, NotedHostler)> {
    let written = std::fs::metadata(file).and_then(|about| about.modified()).ok()?;
    let text = std::fs::read_to_string(file).ok()?;
    let mut lines = text.lines();
    let admin = lines.next()?.parse().ok()?;
    let (folder, token_file) = (lines.next()?.into(), lines.next().map(PathBuf::from));
    Some((written, NotedHostler { admin, folder, token_file }))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_runtime_folder_that_is_not_absolute_counts_as_missing() {
        let of = |value: &str| runtime_dir(&[("XDG_RUNTIME_DIR".into(), value.into())].into());
        assert_eq!(of("/run/user/1000"), Some("/run/user/1000".into()));
        assert_eq!((of(""), of("run"), runtime_dir(&BTreeMap::new())), (None, None, None));
    }

    #[test]
    fn of_two_hostlers_at_one_address_the_newer_note_counts_and_none_of_a_killed_one() {
        let parent = tempfile::tempdir().unwrap();
        let note = |name: &str, second: u64, admin: &str, token: &str| {
            let folder = parent.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            let token_file = Some(token.into());
            let note = NotedHostler { admin: admin.parse().unwrap(), folder: "/srv".into(), token_file };
            std::fs::write(folder.join(FILE), note.to_string()).unwrap();
            let file = std::fs::File::options().write(true).open(folder.join(FILE)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(second)).unwrap();
            note
        };
        note("hostler-1", 1, "127.0.0.1:8081", "older");
        let newer = note("hostler-2", 2, "127.0.0.1:8081", "newer");
        let other = note("hostler-3", 0, "127.0.0.1:9091", "other");
        note("another-4", 3, "127.0.0.1:7071", "not ours");
        // As SIGKILL leaves it: private, with the mark of a lock, and without the lock.
        note("hostler-5", 4, "127.0.0.1:6061", "killed");
        let killed = parent.path().join("hostler-5");
        std::fs::write(killed.join("locked"), "").unwrap();
        std::fs::set_permissions(killed, std::fs::Permissions::from_mode(0o700)).unwrap();
        let load_context = LoadContext {
            environment: BTreeMap::new(),
            temp_dir: parent.path().to_owned(),
            ..LoadContext::of_process()
        };
        assert_eq!(read(&load_context), [newer, other]);
    }
}
