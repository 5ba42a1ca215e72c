//! Watches files on a thread of its own, and reports changes once they have settled. Does not know what follows from a change.
//!
//! Each folder is watched by itself. A watch of a whole tree would include `node_modules`, with thousands of folders.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use notify::event::{EventKind, ModifyKind};
use notify::{ErrorKind, Event, RecommendedWatcher, RecursiveMode, Watcher};
use rustix::io::Errno;
use tokio::sync::mpsc;
use tokio::time::Instant;
use walkdir::WalkDir;

use super::file_filter::FileFilter;

/// Changes that follow each other within this time are one change.
const QUIET: Duration = Duration::from_millis(100);
/// A change is reported after this time, also while others follow.
const LIMIT: Duration = Duration::from_secs(1);

/// How often a watched folder that is gone is looked for. No event tells when it is there again.
const GONE_INTERVAL: Duration = Duration::from_millis(250);

/// What the thread reports.
pub(super) enum FileReport {
    /// The files that have changed.
    Changed(Vec<PathBuf>),
    /// Why a new folder is not watched. Only once.
    Full(String),
}

/// Begins to watch. Returns the reports, and how many folders are watched. The thread runs as long as the process.
pub(super) fn begin(
    filters: Vec<FileFilter>,
) -> Result<(mpsc::UnboundedReceiver<FileReport>, usize), String> {
    let (events, received) = channel();
    let watcher = RecommendedWatcher::new(FileEventSender(events), notify::Config::default());
    let watcher = watcher.map_err(|error| explain("files", &error))?;
    let (report, reports) = mpsc::unbounded_channel();
    let mut watch = FileWatch::new(watcher, filters, report);
    for root in watch.roots() {
        watch.enter(&root).map_err(|error| explain(root.display(), &error))?;
    }
    // What was there before is no change.
    watch.changed.clear();
    let folders = watch.folders.len();
    let thread = std::thread::Builder::new().name("file-watch".into());
    thread.spawn(move || watch.run(&received)).map_err(|error| format!("cannot watch files: {error}"))?;
    Ok((reports, folders))
}

fn explain(what: impl Display, error: &notify::Error) -> String {
    let help = match &error.kind {
        ErrorKind::MaxFilesWatch => {
            "; the system allows no more watches: raise fs.inotify.max_user_watches, or watch less with --watch-path or --watch-ignore"
        }
        ErrorKind::Io(error) if error.raw_os_error() == Some(Errno::MFILE.raw_os_error()) => {
            "; the system lets no more programs of this user watch files: end one, or raise fs.inotify.max_user_instances"
        }
        _ => "",
    };
    format!("cannot watch {what}: {error}{help}")
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
    report: mpsc::UnboundedSender<FileReport>,
    /// The system allowed no more watches, and that was reported.
    is_full: bool,
}

impl FileWatch {
    fn new(
        watcher: RecommendedWatcher,
        filters: Vec<FileFilter>,
        report: mpsc::UnboundedSender<FileReport>,
    ) -> Self {
        let (changed, folders) = (BTreeSet::new(), BTreeSet::new());
        Self { watcher, filters, changed, folders, report, is_full: false }
    }

    fn roots(&self) -> Vec<PathBuf> {
        self.filters.iter().map(|filter| filter.root.clone()).collect()
    }

    fn run(mut self, events: &Receiver<Event>) {
        while self.wait(events) {
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
            let changed = std::mem::take(&mut self.changed).into_iter().collect();
            if self.report.send(FileReport::Changed(changed)).is_err() {
                return;
            }
        }
    }

    /// Takes the next event, or looks for watched folders that are gone, such as the output of a build that removes it first. False: there
    /// will be no more events.
    fn wait(&mut self, events: &Receiver<Event>) -> bool {
        let mut gone = self.roots();
        gone.retain(|root| !self.folders.contains(root));
        if gone.is_empty() {
            return events.recv().map(|event| self.take(event)).is_ok();
        }
        match events.recv_timeout(GONE_INTERVAL) {
            Ok(event) => self.take(event),
            Err(RecvTimeoutError::Timeout) => gone.iter().for_each(|root| self.enter_new(root)),
            Err(RecvTimeoutError::Disconnected) => return false,
        }
        true
    }

    fn take(&mut self, event: Event) {
        if event.need_rescan() {
            // The kernel has dropped events. They may have been about new folders, even about one that has the name of an old one.
            for root in self.roots() {
                self.leave(&root);
                self.enter_new(&root);
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
                    // A watch belongs to a folder and not to its name, and another folder may have this name by now. This event may be about the old
                    // folder, which was moved away. The event about the new one may follow.
                    self.leave(&path);
                }
                self.enter_new(&path);
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

    /// Watches a folder that was not there before. If that fails, it is gone again, may not be read, or the system allows no more watches.
    fn enter_new(&mut self, root: &Path) {
        let Err(error) = self.enter(root) else { return };
        if matches!(error.kind, ErrorKind::MaxFilesWatch) && !std::mem::replace(&mut self.is_full, true) {
            let _ = self.report.send(FileReport::Full(explain(root.display(), &error)));
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
                } else if !self.folders.contains(path) {
                    match self.watcher.watch(path, RecursiveMode::NonRecursive) {
                        Ok(()) => _ = self.folders.insert(path.to_owned()),
                        Err(error) if path == root || matches!(error.kind, ErrorKind::MaxFilesWatch) => {
                            return Err(error);
                        }
                        // It is gone again, or may not be read, such as the data of a database in a container.
                        Err(_) => below.skip_current_dir(),
                    }
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
        let mut watch = FileWatch::new(watcher, filters, mpsc::unbounded_channel().0);
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
