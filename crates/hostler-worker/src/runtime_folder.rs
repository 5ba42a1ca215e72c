//! The private folder of one Hostler: the sockets of its workers, and files that it keeps there. Knows no workers.
//!
//! A shared lock is held on the folder as long as it is used. systemd-tmpfiles removes nothing from a folder with a lock (tmpfiles.d(5)), and
//! another Hostler of the same user removes a folder when no process holds its lock any more.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, Stat, flock, fstat, lstat, open};
use rustix::process::geteuid;

use super::guard::DIRECTORY_PREFIX;

/// `sun_path` has 108 bytes on Linux and 104 elsewhere, and the last one is 0.
const SOCKET_PATH_LIMIT: usize = if cfg!(target_os = "linux") { 107 } else { 103 };
/// The longest file name made here: pool, worker number, serial number and ending.
const FILE_NAME_LIMIT: usize = 48;
/// The letters at the end of the name of the folder.
const RANDOM_LETTERS: usize = 6;
/// The script that every worker preloads.
pub(super) const PRELOAD: &str = "preload.cjs";
/// A folder with this file had a lock. An older Hostler locks nothing, so a folder without this file may be in use.
const MARK: &str = "locked";
/// What others than the owner may do.
const OTHERS: Mode = Mode::RWXG.union(Mode::RWXO);

/// Files that the folder must have: name and text.
pub(super) type KeptFiles = BTreeMap<&'static str, Vec<u8>>;

/// The folder. Dropping it removes it, unless it is another one by now.
#[derive(Debug)]
pub(super) struct RuntimeFolder {
    path: PathBuf,
    /// The folder itself, even if another one is at its path now. Holds the lock.
    handle: OwnedFd,
    is_locked: bool,
}

impl RuntimeFolder {
    /// Makes it in the first of these folders where that is possible, with a path short enough for the names of sockets in it. `Err`: one
    /// reason for each that was tried.
    pub fn make_in(parents: &[PathBuf]) -> Result<Self, Vec<String>> {
        let mut refusals = Vec::new();
        for parent in parents {
            match Self::make_new(parent) {
                Ok(folder) if is_short_enough(&folder.path) => return Ok(folder),
                Ok(_) => refusals.push(format!("{}: too long for a socket's path", parent.display())),
                Err(error) => refusals.push(format!("{}: {error}", parent.display())),
            }
        }
        Err(refusals)
    }

    fn make_new(parent: &Path) -> io::Result<Self> {
        let mut named = tempfile::Builder::new();
        let made = named.prefix(DIRECTORY_PREFIX).rand_bytes(RANDOM_LETTERS).tempdir_in(parent)?;
        let folder = Self::claim(made.path())?;
        // From now on it is removed with the value returned.
        drop(made.keep());
        Ok(folder)
    }

    /// Makes it at this path. What is there already is never used, because it may belong to another user.
    pub fn make_at(path: &Path) -> io::Result<Self> {
        DirBuilder::new().mode(0o700).create(path)?;
        Self::claim(path)
    }

    /// Absolute, because workers run in other directories. Mode 0700 with any umask.
    fn claim(path: &Path) -> io::Result<Self> {
        if !path.is_absolute() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not an absolute path"));
        }
        rustix::fs::chmod(path, Mode::RWXU)?;
        let handle = open_folder(path)?;
        // It is new and private, so no other process holds its lock for longer than a glance. Some network file systems have no locks.
        let is_locked = flock(&handle, FlockOperation::LockShared).is_ok();
        let folder = Self { path: path.to_owned(), handle, is_locked };
        if !folder.is_there() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "it was removed at once"));
        }
        Ok(folder)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn preload(&self) -> PathBuf {
        self.path.join(PRELOAD)
    }

    /// Whether this folder is still at its path, and not another one of that name.
    pub fn is_there(&self) -> bool {
        let id = |about: Stat| (about.st_dev, about.st_ino);
        match (lstat(&self.path), fstat(&self.handle)) {
            (Ok(found), Ok(own)) => id(found) == id(own),
            _ => false,
        }
    }

    /// Writes the files that are missing or cut off. Fails only without the preload: workers need no other file, and a disk that is full would stop
    /// all their starts.
    pub fn restore(&self, files: &KeptFiles) -> io::Result<()> {
        let mark = self.is_locked.then_some((MARK, &[][..]));
        let files = files.iter().map(|(name, text)| (*name, text.as_slice()));
        for (name, text) in mark.into_iter().chain(files) {
            let about = self.path.join(name).symlink_metadata();
            if !about.is_ok_and(|about| about.is_file() && about.len() == text.len() as u64) {
                self.write(name, text).or_else(|error| if name == PRELOAD { Err(error) } else { Ok(()) })?;
            }
        }
        Ok(())
    }

    /// Writes a file. A program that reads it meanwhile finds the old text or the new one.
    pub fn write(&self, name: &str, text: &[u8]) -> io::Result<()> {
        let (path, new) = (self.path.join(name), self.path.join(format!("{name}.new")));
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &path));
        written.map_err(|error| at(&path, "write", &error))
    }
}

impl Drop for RuntimeFolder {
    fn drop(&mut self) {
        if self.is_there() {
            // What cannot be removed stays.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes the folders of this user in these parents whose Hostler is gone, and whose guard could not remove them.
pub(super) fn remove_abandoned(parents: &[PathBuf]) {
    for entry in parents.iter().filter_map(|parent| fs::read_dir(parent).ok()).flatten().flatten() {
        let is_named_so = entry.file_name().as_encoded_bytes().starts_with(DIRECTORY_PREFIX.as_bytes());
        if is_named_so && let Some(_lock) = lock_of_abandoned(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether SIGKILL has ended the Hostler of this folder, and its guard, so that neither has removed it.
pub fn is_abandoned(folder: &Path) -> bool {
    lock_of_abandoned(folder).is_some()
}

/// The lock of a private folder of this user that had one and has none any more.
fn lock_of_abandoned(path: &Path) -> Option<OwnedFd> {
    let handle = open_folder(path).ok()?;
    let about = fstat(&handle).ok()?;
    let is_private =
        about.st_uid == geteuid().as_raw() && !Mode::from_raw_mode(about.st_mode).intersects(OTHERS);
    let had_lock = path.join(MARK).symlink_metadata().is_ok_and(|mark| mark.is_file());
    let is_free = || flock(&handle, FlockOperation::NonBlockingLockExclusive).is_ok();
    (is_private && had_lock && is_free()).then_some(handle)
}

/// Whether the paths of sockets are short enough if the folder for them is made in this one.
pub fn can_hold_sockets(parent: &Path) -> bool {
    is_short_enough(&parent.join(format!("{DIRECTORY_PREFIX}{}", "x".repeat(RANDOM_LETTERS))))
}

fn is_short_enough(folder: &Path) -> bool {
    folder.as_os_str().len() + 1 + FILE_NAME_LIMIT <= SOCKET_PATH_LIMIT
}

fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(open(path, flags, Mode::empty())?)
}

/// The error of the system does not name the path.
pub(super) fn at(path: &Path, what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;

    fn files() -> KeptFiles {
        [(PRELOAD, b"text".to_vec())].into()
    }

    fn made(parent: &tempfile::TempDir) -> RuntimeFolder {
        let folder = RuntimeFolder::make_in(&[parent.path().to_owned()]).unwrap();
        folder.restore(&files()).unwrap();
        folder
    }

    #[test]
    fn a_folder_is_made_only_where_the_paths_of_its_sockets_are_short_enough() {
        let parent = tempfile::tempdir().unwrap();
        // One letter too long, if the folder around it is shorter.
        let room = SOCKET_PATH_LIMIT - FILE_NAME_LIMIT - 1 - RANDOM_LETTERS - DIRECTORY_PREFIX.len() - 1;
        let letters = (room + 1).saturating_sub(parent.path().as_os_str().len() + 1).max(1);
        let long = parent.path().join("x".repeat(letters));
        fs::create_dir(&long).unwrap();
        for folder in [parent.path(), &long] {
            let made = RuntimeFolder::make_in(&[folder.to_owned()]);
            assert_eq!(made.is_ok(), can_hold_sockets(folder), "{}", folder.display());
        }
        assert!(!can_hold_sockets(&long));
    }

    #[test]
    fn what_was_removed_or_cut_off_is_written_again() {
        let parent = tempfile::tempdir().unwrap();
        let folder = made(&parent);
        for break_it in [|path: &Path| fs::remove_file(path), |path: &Path| fs::write(path, "t")] {
            break_it(&folder.preload()).unwrap();
            folder.restore(&files()).unwrap();
            assert_eq!(fs::read(folder.preload()).unwrap(), b"text");
        }
        assert_eq!(fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn only_without_the_preload_can_no_worker_start() {
        let parent = tempfile::tempdir().unwrap();
        let folder = made(&parent);
        // As on a full disk, the second one cannot be written.
        let files: KeptFiles = [(PRELOAD, b"text".to_vec()), ("nowhere/note", b"text".to_vec())].into();
        fs::remove_file(folder.preload()).unwrap();
        folder.restore(&files).unwrap();
        assert!(folder.preload().is_file());
        fs::remove_file(folder.preload()).unwrap();
        fs::create_dir(folder.preload()).unwrap();
        let why = folder.restore(&files).unwrap_err().to_string();
        assert!(why.contains(&format!("cannot write {}", folder.preload().display())), "{why}");
    }

    #[test]
    fn a_folder_of_the_same_name_is_another_one_and_stays() {
        let parent = tempfile::tempdir().unwrap();
        let folder = made(&parent);
        let path = folder.path().to_owned();
        fs::rename(&path, parent.path().join("moved")).unwrap();
        assert!(!folder.is_there());
        fs::create_dir(&path).unwrap();
        assert!(!folder.is_there() && RuntimeFolder::make_at(&path).is_err());
        drop(folder);
        assert!(path.exists());
    }

    #[test]
    fn only_a_private_folder_whose_lock_was_lost_is_abandoned() {
        let parent = tempfile::tempdir().unwrap();
        let parents = [parent.path().to_owned()];
        let used = made(&parent);
        // An older Hostler holds no lock and leaves no mark.
        let unmarked = made(&parent);
        fs::remove_file(unmarked.path().join(MARK)).unwrap();
        let (unmarked, foreign, dead) =
            (forgotten(unmarked), forgotten(made(&parent)), forgotten(made(&parent)));
        fs::set_permissions(&foreign, fs::Permissions::from_mode(0o750)).unwrap();
        assert!([used.path(), &unmarked, &foreign].into_iter().all(|folder| !is_abandoned(folder)));
        // A child that another test has just started holds a copy of the lock until it runs its program.
        let end = Instant::now() + Duration::from_secs(30);
        while dead.exists() {
            assert!(Instant::now() < end, "it stays");
            remove_abandoned(&parents);
        }
        let is_there = [used.path(), &unmarked, &foreign, &dead].map(Path::exists);
        assert_eq!(is_there, [true, true, true, false]);
    }

    /// The folder as SIGKILL leaves it: without its lock.
    fn forgotten(folder: RuntimeFolder) -> PathBuf {
        let path = folder.path().to_owned();
        let aside = path.with_file_name("aside");
        fs::rename(&path, &aside).unwrap();
        drop(folder);
        fs::rename(&aside, &path).unwrap();
        path
    }
}
