//! Detects that a file has changed, by its metadata. Does not know its content.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// None if the file does not exist.
pub(super) type FileStamp = Option<(u64, u64, u64, i64, i64)>;

/// Follows symbolic links: certbot and Kubernetes change the target of a link and not the file.
pub(super) fn file_stamp(file: &Path) -> FileStamp {
    let about = std::fs::metadata(file).ok()?;
    Some((about.dev(), about.ino(), about.size(), about.mtime(), about.mtime_nsec()))
}
