//! Detects that a file has changed, by its metadata. Does not know its content.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// None if the file does not exist.
pub(super) type FileStamp = Option<(u64, u64, u64, [i64; 4])>;

/// Follows symbolic links: certbot and Kubernetes change the target of a link and not the file. Has the time at which owner or mode have
/// changed, too: a file that could not be read is read again when its mode is corrected.
pub(super) fn file_stamp(file: &Path) -> FileStamp {
    let about = std::fs::metadata(file).ok()?;
    let times = [about.mtime(), about.mtime_nsec(), about.ctime(), about.ctime_nsec()];
    Some((about.dev(), about.ino(), about.size(), times))
}

/// The stamp of each file.
pub(super) fn stamps(files: &[PathBuf]) -> Vec<FileStamp> {
    files.iter().map(|file| file_stamp(file)).collect()
}

/// The files at the time when they were last read, also if that failed.
#[derive(Clone, Default)]
pub(super) struct Read(Arc<Mutex<Vec<FileStamp>>>);

impl Read {
    /// Must be called before the read, so that a later change of a file is noticed.
    pub fn begin(files: &[PathBuf]) -> Self {
        Self(Arc::new(Mutex::new(stamps(files))))
    }

    /// Whether the files had these stamps at that time.
    pub fn knows(&self, stamps: &[FileStamp]) -> bool {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) == stamps
    }

    /// Records the stamps of the last read. True if they differ from those of the read before.
    pub fn note(&self, stamps: &[FileStamp]) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = *known != stamps;
        stamps.clone_into(&mut known);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;

    #[test]
    fn another_mode_of_a_file_is_a_change() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (first, begun) = (file_stamp(file.path()), Instant::now());
        // The clock of the file system is coarse.
        for mode in [0o600, 0o640].into_iter().cycle() {
            set_permissions(file.path(), Permissions::from_mode(mode)).unwrap();
            if file_stamp(file.path()) != first {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "no change is seen");
        }
    }
}
