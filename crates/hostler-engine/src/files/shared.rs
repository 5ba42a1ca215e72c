//! The open files of answers: each file is open once, however many clients wait for it, and only so many files are open. Knows no HTTP.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use foldhash::HashMap;

use super::open::{Blocking, Folder, Opened};
use super::{disk, kept};
use crate::exchange::DiskThreads;

/// The files of this process.
static OPEN: LazyLock<Arc<OpenFiles>> = LazyLock::new(|| OpenFiles::new(usize::MAX));

/// Limits the files that are open at the same time. A file beyond them is opened again for each piece that is read.
pub fn limit_open_files(most: usize) {
    OPEN.most.store(most, Ordering::Relaxed);
    kept::limit_by(most);
}

/// The device and the inode. While a file is open, no other one on a disk of this machine has these numbers. On a network disk, a new file may get
/// those of one that another machine has removed.
type FileId = (u64, u64);

fn id_of(about: &Metadata) -> FileId {
    (about.dev(), about.ino())
}

/// Tells a file from one that had its inode before: a new file often gets the inode of a file that was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileAge {
    /// When it was made, since 1970.
    Made(Duration),
    /// When it was last changed, in seconds and nanoseconds: for a file system that does not tell when a file was made.
    Changed(i64, i64),
}

fn age_of(about: &Metadata) -> FileAge {
    let made = about.created().ok().and_then(|made| made.duration_since(SystemTime::UNIX_EPOCH).ok());
    made.map_or_else(|| FileAge::Changed(about.ctime(), about.ctime_nsec()), FileAge::Made)
}

pub(super) struct OpenFiles {
    files: Mutex<HashMap<FileId, Weak<OpenFile>>>,
    most: AtomicUsize,
    /// They close files whose close may wait.
    threads: DiskThreads,
}

impl OpenFiles {
    fn new(most: usize) -> Arc<Self> {
        Self::with_threads(most, disk::threads())
    }

    fn with_threads(most: usize, threads: DiskThreads) -> Arc<Self> {
        Arc::new(Self { files: Mutex::default(), most: most.into(), threads })
    }

    /// Keeps a file open, or takes the descriptor that others have of it. None if too many others are open.
    fn keep(
        self: &Arc<Self>,
        file: Arc<File>,
        id: FileId,
        age: FileAge,
        blocking: Blocking,
    ) -> Option<Arc<OpenFile>> {
        // Declared before the lock, because it may be the last one of its file, and its drop takes the lock.
        let known;
        let mut files = self.lock();
        known = files.get(&id).and_then(Weak::upgrade);
        if let Some(open) = known.as_ref().filter(|open| open.age == age) {
            return Some(open.clone());
        }
        if files.len() >= self.most.load(Ordering::Relaxed) {
            return None;
        }
        let open = Arc::new(OpenFile { file: Some(file), id, age, blocking, among: self.clone() });
        files.insert(id, Arc::downgrade(&open));
        Some(open)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<FileId, Weak<OpenFile>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file that is open for one or more answers.
pub(super) struct OpenFile {
    /// None while it is dropped.
    file: Option<Arc<File>>,
    id: FileId,
    age: FileAge,
    /// How it was opened. A file that was opened without a wait is on a local disk.
    blocking: Blocking,
    among: Arc<OpenFiles>,
}

impl Drop for OpenFile {
    /// On some network file systems (FUSE, SMB) a close waits for the server, so a blocking thread does it.
    fn drop(&mut self) {
        let mut files = self.among.lock();
        // In the meantime another answer may have opened it again.
        if files.get(&self.id).is_some_and(|open| open.strong_count() == 0) {
            files.remove(&self.id);
        }
        drop(files);
        if self.blocking == Blocking::Any
            && let Some(file) = self.file.take()
        {
            self.among.threads.release(file);
        }
    }
}

/// A file that answers are read from.
#[derive(Clone)]
pub(super) enum FileHandle {
    Open(Arc<OpenFile>),
    /// Too many others are open.
    Closed(Arc<ClosedFile>),
}

/// Where a file is found again.
pub(super) struct ClosedFile {
    folder: PathBuf,
    path: PathBuf,
    id: FileId,
    age: FileAge,
}

impl FileHandle {
    /// Takes a file that was opened below `folder` as `path`. `blocking`: how it was opened.
    pub fn new(file: Arc<File>, about: &Metadata, folder: &Path, path: PathBuf, blocking: Blocking) -> Self {
        Self::among(&OPEN, file, about, folder, path, blocking)
    }

    fn among(
        open: &Arc<OpenFiles>,
        file: Arc<File>,
        about: &Metadata,
        folder: &Path,
        path: PathBuf,
        blocking: Blocking,
    ) -> Self {
        let (id, age) = (id_of(about), age_of(about));
        match open.keep(file, id, age, blocking) {
            Some(file) => Self::Open(file),
            None => Self::Closed(Arc::new(ClosedFile { folder: folder.into(), path, id, age })),
        }
    }

    /// The file, if it is open.
    pub fn file(&self) -> Option<&File> {
        match self {
            Self::Open(open) => open.file.as_deref(),
            Self::Closed(_) => None,
        }
    }

    /// Reads from this position. May block. A file that ends too early is an error.
    pub fn read_exact_at(&self, place: &mut [u8], at: u64) -> io::Result<()> {
        match self {
            Self::Open(open) => open.file.as_ref().ok_or(io::ErrorKind::NotFound)?.read_exact_at(place, at),
            Self::Closed(closed) => closed.open()?.read_exact_at(place, at),
        }
    }
}

impl ClosedFile {
    fn open(&self) -> io::Result<Arc<File>> {
        match Folder::at(&self.folder, Blocking::Any).open(&self.path)? {
            Opened::File(file, about) if id_of(&about) == self.id && age_of(&about) == self.age => Ok(file),
            _ => Err(io::Error::other(
                "it was replaced while it was sent, and too many files are open to keep it",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::OwnedFd;
    use std::sync::mpsc;

    use hostler_testkit::eventually;
    use tokio::task::yield_now;

    use super::*;

    fn handle(open: &Arc<OpenFiles>, folder: &Path, name: &str) -> FileHandle {
        let file = Arc::new(File::open(folder.join(name)).unwrap());
        let about = file.metadata().unwrap();
        FileHandle::among(open, file, &about, folder, name.into(), Blocking::None)
    }

    #[test]
    fn a_file_is_open_once_and_beyond_the_limit_only_while_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        let open = OpenFiles::new(1);
        let first = handle(&open, folder.path(), "a");
        let (FileHandle::Open(one), FileHandle::Open(other)) = (&first, handle(&open, folder.path(), "a"))
        else {
            panic!("there is room for one")
        };
        assert!(Arc::ptr_eq(one, &other));
        let second = handle(&open, folder.path(), "b");
        assert!(second.file().is_none());
        let mut byte = [0];
        second.read_exact_at(&mut byte, 0).unwrap();
        assert_eq!(byte, *b"b");
        drop((first, other));
        assert!(open.lock().is_empty());
        assert!(handle(&open, folder.path(), "b").file().is_some(), "there is room again");
    }

    #[tokio::test]
    async fn a_file_that_was_not_opened_at_once_is_closed_on_a_blocking_thread() {
        let threads = DiskThreads::new(1);
        let open = OpenFiles::with_threads(9, threads.clone());
        // A pipe shows when its other end is closed.
        let (file, mut other_end) = std::io::pipe().unwrap();
        let file = File::from(OwnedFd::from(file));
        let file = open.keep(file.into(), (0, 0), FileAge::Changed(0, 0), Blocking::Any).unwrap();
        // The only blocking thread that it may use is busy.
        let (end, ended) = mpsc::channel::<()>();
        let _busy = tokio::spawn(threads.run(move || {
            let _ = ended.recv();
            Ok(())
        }));
        yield_now().await;
        drop(file);
        assert!(open.lock().is_empty());
        for _ in 0..100 {
            yield_now().await;
        }
        assert!(other_end.write_all(b"x").is_ok(), "this thread has not closed it");
        drop(end);
        eventually("its close", async || other_end.write_all(b"x").is_err().then_some(())).await;
    }

    #[test]
    fn a_file_with_the_inode_of_one_that_is_open_is_another_if_it_has_another_age() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "a").unwrap();
        let (open, a) = (OpenFiles::new(9), || File::open(folder.path().join("a")).unwrap());
        let id = id_of(&a().metadata().unwrap());
        let keep = |second| open.keep(a().into(), id, FileAge::Changed(second, 0), Blocking::None).unwrap();
        let old = keep(1);
        let new = keep(2);
        assert!(!Arc::ptr_eq(&old, &new));
        assert!(Arc::ptr_eq(&new, &keep(2)));
        drop(old);
        assert!(Arc::ptr_eq(&new, &keep(2)), "the old one has gone alone");
        drop(new);
        assert!(open.lock().is_empty());
    }

    #[test]
    fn a_closed_file_that_was_replaced_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "old").unwrap();
        let old = handle(&OpenFiles::new(0), folder.path(), "a");
        std::fs::write(folder.path().join("new"), "new").unwrap();
        std::fs::rename(folder.path().join("new"), folder.path().join("a")).unwrap();
        assert!(old.read_exact_at(&mut [0; 3], 0).is_err());
    }

    #[test]
    fn a_file_that_got_the_inode_of_a_removed_one_is_another() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "new").unwrap();
        let about = std::fs::metadata(folder.path().join("a")).unwrap();
        let closed =
            |age| ClosedFile { folder: folder.path().into(), path: "a".into(), id: id_of(&about), age };
        assert!(closed(age_of(&about)).open().is_ok());
        for age in [FileAge::Made(Duration::from_secs(1)), FileAge::Changed(1, 0)] {
            assert!(closed(age).open().is_err());
        }
    }
}
