//! Keeps files open between requests, and asks for each request whether the path still leads to them. Knows no HTTP.
//!
//! Opening a file below a folder takes two calls of `openat2`, and each needs a `close`. One `stat` of the path tells whether a file that is
//! still open is the one that would be opened.

use std::fs::{File, Metadata, metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use foldhash::HashMap;
use tokio::time::sleep;

/// How often files that were not asked for are looked for.
const SWEEP: Duration = Duration::from_secs(1);
/// So many looks at the most does a file stay open that no request asks for. Until it is closed, a file that was removed takes space on the
/// disk, and its file system cannot be unmounted.
const MOST_IDLE: u8 = 3;
/// How many files are kept open by all routes together.
const MOST: usize = 512;

/// The room of this process, which all routes share.
static ROOM: LazyLock<Arc<DescriptorRoom>> = LazyLock::new(Arc::default);

/// How many files are kept, and how many may be.
#[derive(Debug)]
struct DescriptorRoom {
    taken: AtomicUsize,
    most: AtomicUsize,
}

impl Default for DescriptorRoom {
    fn default() -> Self {
        Self { taken: AtomicUsize::new(0), most: AtomicUsize::new(MOST) }
    }
}

/// Keeps at most an eighth of the files that may be open.
pub(super) fn limit_by(most_open: usize) {
    ROOM.most.store((most_open / 8).min(MOST), Ordering::Relaxed);
}

/// The files of one folder that were asked for lately. Each was opened without a wait for the disk, so it is on a local file system.
#[derive(Debug)]
pub(super) struct FilesKeptOpen {
    now: Mutex<FilesByPath>,
    room: Arc<DescriptorRoom>,
}

#[derive(Debug, Default)]
struct FilesByPath {
    /// By the path below the folder.
    files: HashMap<PathBuf, Arc<KeptFile>>,
    /// A task closes files that no request asks for.
    is_swept: bool,
}

#[derive(Debug)]
struct KeptFile {
    file: Arc<File>,
    about: Metadata,
    /// The path with its folder.
    whole: PathBuf,
    /// How often the sweep has seen it since the last request.
    idle: AtomicU8,
    room: Arc<DescriptorRoom>,
}

impl Default for FilesKeptOpen {
    fn default() -> Self {
        Self::within(&ROOM)
    }
}

impl FilesKeptOpen {
    fn within(room: &Arc<DescriptorRoom>) -> Self {
        Self { now: Mutex::default(), room: room.clone() }
    }

    /// The file, if the path leads to it and it was not changed. The file was found below the folder, so where the path leads through now
    /// is no matter: it is the same file.
    pub fn find(&self, path: &Path) -> Option<(Arc<File>, Metadata)> {
        let kept = self.lock().files.get(path)?.clone();
        match metadata(&kept.whole) {
            Ok(about) if is_same(&kept.about, &about) => {
                kept.idle.store(0, Ordering::Relaxed);
                Some((kept.file.clone(), about))
            }
            _ => {
                self.forget(path, &kept);
                None
            }
        }
    }

    /// Keeps a file that was opened without a wait, if there is room.
    pub fn keep(self: &Arc<Self>, folder: &Path, path: &Path, file: &Arc<File>, about: &Metadata) {
        let room = &self.room;
        if room.taken.load(Ordering::Relaxed) >= room.most.load(Ordering::Relaxed) {
            return;
        }
        room.taken.fetch_add(1, Ordering::Relaxed);
        let kept = KeptFile {
            file: file.clone(),
            about: about.clone(),
            whole: folder.join(path),
            idle: AtomicU8::new(0),
            room: room.clone(),
        };
        let mut all = self.lock();
        let before = all.files.insert(path.into(), Arc::new(kept));
        if !all.is_swept {
            all.is_swept = true;
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
        drop(all);
        drop(before);
    }

    fn forget(&self, path: &Path, kept: &Arc<KeptFile>) {
        let mut all = self.lock();
        // Another request may have kept the new file in the meantime.
        let removed = all.files.get(path).is_some_and(|now| Arc::ptr_eq(now, kept));
        let removed = removed.then(|| all.files.remove(path));
        drop(all);
        drop(removed);
    }

    /// Forgets files that no request has asked for. Returns whether none is left.
    fn sweep(&self) -> bool {
        let mut idle = Vec::new();
        let mut all = self.lock();
        all.files.retain(|_, kept| {
            let stays = kept.idle.fetch_add(1, Ordering::Relaxed) < MOST_IDLE;
            if !stays {
                idle.push(kept.clone());
            }
            stays
        });
        let is_empty = all.files.is_empty();
        all.is_swept = !is_empty;
        drop(all);
        is_empty
    }

    fn lock(&self) -> MutexGuard<'_, FilesByPath> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for KeptFile {
    fn drop(&mut self) {
        self.room.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs until no file is kept.
async fn sweep(kept: Weak<FilesKeptOpen>) {
    loop {
        sleep(SWEEP).await;
        if kept.upgrade().is_none_or(|kept| kept.sweep()) {
            return;
        }
    }
}

/// Whether both tell of the same file with the same content and the same rights.
fn is_same(before: &Metadata, now: &Metadata) -> bool {
    let of = |about: &Metadata| {
        let changed = (about.mtime(), about.mtime_nsec(), about.ctime(), about.ctime_nsec());
        (about.dev(), about.ino(), about.len(), changed)
    };
    of(before) == of(now)
}

#[cfg(test)]
mod tests {
    use std::fs::{rename, set_permissions, write};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use hostler_testkit::eventually;

    use super::*;

    struct Site {
        folder: tempfile::TempDir,
        kept: Arc<FilesKeptOpen>,
    }

    impl Site {
        fn with(content: &str) -> Self {
            let site = Self { folder: tempfile::tempdir().unwrap(), kept: Arc::default() };
            write(site.at("page"), content).unwrap();
            site.keep();
            site
        }

        fn at(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn keep(&self) {
            let file = Arc::new(File::open(self.at("page")).unwrap());
            self.kept.keep(self.folder.path(), Path::new("page"), &file, &file.metadata().unwrap());
        }

        fn finds(&self) -> bool {
            self.kept.find(Path::new("page")).is_some()
        }
    }

    #[tokio::test]
    async fn a_file_is_found_as_long_as_its_path_leads_to_it_and_it_is_unchanged() {
        let site = Site::with("old");
        assert!(site.finds());
        assert!(site.kept.find(Path::new("other")).is_none());

        write(site.at("new"), "new").unwrap();
        rename(site.at("new"), site.at("page")).unwrap();
        assert!(!site.finds(), "another file has its name");
        assert!(!site.finds(), "and it is forgotten");

        site.keep();
        write(site.at("page"), "newer").unwrap();
        assert!(!site.finds(), "it was written to");

        site.keep();
        set_permissions(site.at("page"), PermissionsExt::from_mode(0o600)).unwrap();
        assert!(!site.finds(), "its rights were changed");

        site.keep();
        std::fs::remove_file(site.at("page")).unwrap();
        assert!(!site.finds(), "it was removed");
    }

    #[tokio::test]
    async fn a_link_that_leads_elsewhere_is_another_file() {
        let site = Site::with("first");
        write(site.at("second"), "other").unwrap();
        rename(site.at("page"), site.at("first")).unwrap();
        symlink("first", site.at("page")).unwrap();
        site.keep();
        assert!(site.finds());
        std::fs::remove_file(site.at("page")).unwrap();
        symlink("second", site.at("page")).unwrap();
        assert!(!site.finds());
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_no_request_asks_for_is_closed() {
        let site = Site::with("page");
        let file = Arc::downgrade(&site.kept.find(Path::new("page")).unwrap().0);
        for _ in 0..10 {
            tokio::time::advance(SWEEP).await;
            assert!(site.finds(), "requests ask for it");
        }
        eventually("it is closed", async || (file.strong_count() == 0).then_some(())).await;
        assert!(!site.kept.lock().is_swept, "the task has ended");

        site.keep();
        assert!(site.kept.lock().is_swept, "another one has begun");
    }

    #[tokio::test]
    async fn only_so_many_files_are_kept() {
        let site = Site::with("page");
        let room = Arc::new(DescriptorRoom { most: AtomicUsize::new(1), ..DescriptorRoom::default() });
        let other = Site { kept: Arc::new(FilesKeptOpen::within(&room)), folder: site.folder };
        let (file, folder) = (Arc::new(File::open(other.at("page")).unwrap()), other.folder.path());
        let about = file.metadata().unwrap();
        for name in ["page", "second"] {
            other.kept.keep(folder, Path::new(name), &file, &about);
        }
        assert_eq!(other.kept.lock().files.len(), 1);
        assert!(other.finds());
        other.kept.lock().files.clear();
        assert_eq!(room.taken.load(Ordering::Relaxed), 0);
    }
}
