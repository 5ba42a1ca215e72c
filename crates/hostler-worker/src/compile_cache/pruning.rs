//! Removes compile caches that have become old or large. Knows only the files.
//!
//! Node never removes anything: files of modules that are gone, and subfolders of earlier versions of Node, would stay for
//! ever. A removed cache costs one slower boot.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A cache that no worker has used for this time is removed.
const OLD: Duration = Duration::from_secs(30 * 24 * 3600);
/// The cache of an app that is larger than this is emptied. That of a new Next.js app has 2 MB.
const MOST: u64 = 256 << 20;

/// Marks the cache of one app as used now: the time of the folder is that of its last use.
pub(crate) fn mark_used(app: &Path) {
    mark_used_at(app, SystemTime::now());
}

fn mark_used_at(app: &Path, now: SystemTime) {
    // If this fails, the cache may be removed too early.
    let _ = fs::File::open(app).and_then(|folder| folder.set_modified(now));
}

/// Removes from the folder of an app, and from those of other apps beside it, what is old or too large.
pub(crate) fn prune(app: &Path) {
    prune_at(app, SystemTime::now());
}

fn prune_at(app: &Path, now: SystemTime) {
    let others = app.parent().into_iter().flat_map(folders).filter(|other| other.path() != app);
    // Node writes only modules that are new. So the cache of an app that does not change is used, and looks old.
    let newest = folders(app).max_by_key(modified).map(|version| version.path());
    let versions = folders(app).filter(|version| Some(version.path()) != newest);
    for old in versions.chain(others).filter(|folder| is_old(folder, now)) {
        let _ = fs::remove_dir_all(old.path());
    }
    if size(app) > MOST {
        // The folders stay, because workers that run already write into them.
        files(app).for_each(|file| drop(fs::remove_file(file.path())));
    }
}

/// The folders in this folder, without symbolic links.
fn folders(path: &Path) -> impl Iterator<Item = fs::DirEntry> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
}

fn is_old(entry: &fs::DirEntry, now: SystemTime) -> bool {
    let age = |at: SystemTime| now.duration_since(at).unwrap_or_default();
    modified(entry).is_some_and(|at| age(at) > OLD)
}

fn modified(entry: &fs::DirEntry) -> Option<SystemTime> {
    entry.metadata().and_then(|facts| facts.modified()).ok()
}

/// The files in the folders of all versions.
fn files(app: &Path) -> impl Iterator<Item = fs::DirEntry> {
    folders(app).filter_map(|version| fs::read_dir(version.path()).ok()).flatten().flatten()
}

fn size(app: &Path) -> u64 {
    files(app).filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn cache(base: &Path, app: &str, version: &str, at: SystemTime) {
        let folder = base.join(app).join(version);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("module"), "code").unwrap();
        for path in [folder, base.join(app)] {
            fs::File::open(path).unwrap().set_modified(at).unwrap();
        }
    }

    #[test]
    fn caches_of_old_apps_and_of_old_versions_of_node_are_removed() {
        let base = tempfile::tempdir().unwrap();
        let (base, now) = (base.path(), SystemTime::now());
        cache(base, "web", "v20", now - 31 * DAY);
        cache(base, "web", "v22", now - 29 * DAY);
        cache(base, "web", "v24", now);
        cache(base, "old", "v24", now - 31 * DAY);
        cache(base, "other", "v24", now - 29 * DAY);
        mark_used_at(&base.join("web"), now);
        prune_at(&base.join("web"), now);
        let is_left = |path: &str| base.join(path).exists();
        assert!(is_left("web/v24/module") && is_left("web/v22/module") && is_left("other/v24"));
        assert!(!is_left("web/v20") && !is_left("old"));
        let used = fs::metadata(base.join("web")).unwrap().modified().unwrap();
        assert!(used + DAY > now, "{used:?}");
    }

    #[test]
    fn the_cache_of_an_app_that_has_not_changed_for_long_stays() {
        let base = tempfile::tempdir().unwrap();
        let (base, now) = (base.path(), SystemTime::now());
        cache(base, "web", "v22", now - 90 * DAY);
        cache(base, "web", "v24", now - 60 * DAY);
        mark_used_at(&base.join("web"), now);
        prune_at(&base.join("web"), now);
        assert!(base.join("web/v24/module").exists() && !base.join("web/v22").exists());
    }

    #[test]
    fn a_cache_that_has_become_too_large_is_emptied() {
        let base = tempfile::tempdir().unwrap();
        let (base, now) = (base.path(), SystemTime::now());
        cache(base, "web", "v24", now);
        let module = fs::OpenOptions::new().write(true).open(base.join("web/v24/module")).unwrap();
        module.set_len(MOST).unwrap();
        prune_at(&base.join("web"), now);
        assert!(base.join("web/v24/module").exists());
        module.set_len(MOST + 1).unwrap();
        prune_at(&base.join("web"), now);
        assert!(!base.join("web/v24/module").exists() && base.join("web/v24").exists());
    }
}
