//! Watches files on a thread of its own, and reports changes once they have settled. Does not know what follows from a change.
//!
//! Each folder is watched by itself. A watch of a whole tree would include `node_modules`, with thousands of folders.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use notify::event::{EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio::time::Instant;
use walkdir::WalkDir;

use super::file_filter::FileFilter;

/// Changes that follow each other within this time are one change.
const QUIET: Duration = Duration::from_millis(100);
/// A change is reported after this time, also while others follow.
const LIMIT: Duration = Duration::from_secs(1);

/// The changes, each as the files that have changed.
type FileChanges = mpsc::UnboundedReceiver<Vec<PathBuf>>;

/// Begins to watch. Returns the changes, and how many folders are watched. The thread runs as long as the process.
pub(super) fn begin(filters: Vec<FileFilter>) -> Result<(FileChanges, usize), String> {
    let (events, received) = channel();
    let watcher = RecommendedWatcher::new(FileEventSender(events), notify::Config::default());
    let watcher = watcher.map_err(|error| format!("cannot watch files: {error}"))?;
    let mut watch = FileWatch { watcher, filters, changed: BTreeSet::new(), folders: BTreeSet::new() };
    for root in watch.filters.iter().map(|filter| filter.root.clone()).collect::<Vec<_>>() {
        watch.enter(&root).map_err(|error| explain(&root, &error))?;
    }
    // What was there before is no change.
    watch.changed.clear();
    let folders = watch.folders.len();
    let (report, changes) = mpsc::unbounded_channel();
    let thread = std::thread::Builder::new().name("file-watch".into());
    thread
        .spawn(move || watch.run(&received, &report))
        .map_err(|error| format!("cannot watch files: {error}"))?;
    Ok((changes, folders))
}

fn explain(root: &Path, error: &notify::Error) -> String {
    let help = match error.kind {
        notify::ErrorKind::MaxFilesWatch => {
            "; the system allows no more watches: raise fs.inotify.max_user_watches, or watch less with --watch-path or --watch-ignore"
        }
        _ => "",
    };
    format!("cannot watch {}: {error}{help}", root.display())
}

/// Passes the watcher's events on.
struct FileEventSender(Sender<Event>);

impl notify::EventHandler for FileEventSender {
    fn handle_event(&mut self, event: notify::Result<Event>) {
        // Reading a file is no change, and happens often. An error concerns a folder that is gone.
        if let Ok(event) = event
            && !matches!(event.kind, EventKind::Access(_))
        {
            let _ = self.0.send(event);
        }
    }
}

struct FileWatch {
    watcher: RecommendedWatcher,
    filters: Vec<FileFilter>,
    /// What has changed since the last report.
    changed: BTreeSet<PathBuf>,
    /// What is watched.
    folders: BTreeSet<PathBuf>,
}

impl FileWatch {
    fn run(mut self, events: &Receiver<Event>, report: &mpsc::UnboundedSender<Vec<PathBuf>>) {
        while let Ok(event) = events.recv() {
            self.take(event);
            if self.changed.is_empty() {
                continue;
            }
            let until = Instant::now() + LIMIT;
            while let Some(wait) = until.checked_duration_since(Instant::now()) {
                match events.recv_timeout(QUIET.min(wait)) {
                    Ok(event) => self.take(event),
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
            if report.send(std::mem::take(&mut self.changed).into_iter().collect()).is_err() {
                return;
            }
        }
    }

    fn take(&mut self, event: Event) {
        if event.need_rescan() {
            // The kernel has dropped events. New folders may be among them, also such that have the names of others.
            for root in self.filters.iter().map(|filter| filter.root.clone()).collect::<Vec<_>>() {
                self.leave(&root);
                let _ = self.enter(&root);
                self.changed.insert(root);
            }
            return;
        }
        let may_be_new = matches!(
            event.kind,
            EventKind::Create(_) | EventKind::Modify(ModifyKind::Name(_)) | EventKind::Any
        );
        for path in event.paths {
            if may_be_new && path.is_dir() {
                if self.folders.contains(&path) {
                    // Another folder may have its name by now, and the watch belongs to the folder. The event may be that of the old one, which
                    // was moved away, and that of the new one may follow.
                    self.leave(&path);
                }
                // If it cannot be watched any more, it is gone again, or its parent has been reported.
                let _ = self.enter(&path);
            } else if self.folders.contains(&path) {
                self.leave(&path);
                self.changed.insert(path);
            } else if self.filters.iter().any(|filter| filter.counts(&path)) {
                self.changed.insert(path);
            }
        }
    }

    /// A folder is gone, or has another name now.
    fn leave(&mut self, root: &Path) {
        for folder in self.folders.extract_if(.., |folder| folder.starts_with(root)) {
            // The system ends the watch of a folder that is deleted.
            let _ = self.watcher.unwatch(&folder);
        }
    }

    /// Watches a folder and all below it. The files in new folders count as changed.
    fn enter(&mut self, root: &Path) -> notify::Result<()> {
        for filter in &self.filters {
            if !root.starts_with(&filter.root) || !filter.enters(root) {
                continue;
            }
            // Links are followed, and loops are found. Entries that cannot be read are left out.
            let mut below = WalkDir::new(root).follow_links(true).into_iter();
            while let Some(entry) = below.next() {
                let Ok(entry) = entry else { continue };
                let path = entry.path();
                if !entry.file_type().is_dir() {
                    if filter.counts(path) {
                        self.changed.insert(path.to_owned());
                    }
                } else if !filter.enters(path) {
                    below.skip_current_dir();
                } else if self.folders.insert(path.to_owned()) {
                    self.watcher.watch(path, RecursiveMode::NonRecursive)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use notify::event::RenameMode;

    use super::*;
    use crate::server::run_options::WatchOptions;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_that_gets_the_name_of_another_one_is_watched() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["dist/deep", "next/deep"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        let (events, received) = channel();
        let watcher = RecommendedWatcher::new(FileEventSender(events), notify::Config::default()).unwrap();
        let filters = vec![FileFilter::new(&root, &WatchOptions::default(), &[]).unwrap()];
        let mut watch = FileWatch { watcher, filters, changed: BTreeSet::new(), folders: BTreeSet::new() };
        watch.enter(&root).unwrap();
        // As build tools swap their output. The first event is taken when both names are in place.
        std::fs::rename(root.join("dist"), root.join("old")).unwrap();
        std::fs::rename(root.join("next"), root.join("dist")).unwrap();
        let limit = Duration::from_secs(30);
        loop {
            let event = received.recv_timeout(limit).unwrap();
            let is_last = event.kind == EventKind::Modify(ModifyKind::Name(RenameMode::Both))
                && event.paths.last() == Some(&root.join("dist"));
            watch.take(event);
            if is_last {
                break;
            }
        }
        for name in ["dist/app.js", "dist/deep/app.js", "old/deep/app.js"] {
            std::fs::write(root.join(name), "").unwrap();
            while !watch.changed.contains(&root.join(name)) {
                let event = received.recv_timeout(limit);
                watch.take(event.unwrap_or_else(|_| panic!("no event of {name}")));
            }
        }
    }
}
