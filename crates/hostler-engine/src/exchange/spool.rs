//! Request bodies and answers that do not fit into memory, in unnamed files with one common limit. Does not know what the bytes are.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use serde::Serialize;

use super::disk::DiskThreads;
use super::memory::{MemoryAccount, MemoryBudget, Reservation};

/// How many threads of the process may wait for the folder at once. With those for served files, they are fewer than a thread of the data
/// plane has.
const MOST_THREADS: usize = 128;

/// The folder and the limits. Connections share the limits as they share memory: one alone can hold half of each.
#[derive(Debug)]
pub struct Spool {
    space: Arc<MemoryBudget>,
    /// How many files may exist: each takes a file descriptor.
    files: Arc<MemoryBudget>,
    threads: DiskThreads,
    /// Answers of which a part was stored here.
    answers: AtomicU64,
    folder: ArcSwap<PathBuf>,
}

/// The spool, for the Status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SpoolView {
    pub limit: u64,
    pub used: u64,
    /// How many files there may be, by the limit of open files.
    pub files_limit: u64,
    pub files: u64,
    /// How often a connection asked for more than its share, of bytes or of files.
    pub full: u64,
    /// Answers of which a part was stored here, because the client took them more slowly than they came.
    pub answers: u64,
}

/// The connection has used its share of the spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the temporary files are full (server.spool_size, or the limit of open files)")]
pub struct SpoolFull;

impl Spool {
    pub fn new(limit: u64, files: u64, folder: PathBuf) -> Arc<Self> {
        Self::with_threads(DiskThreads::new(MOST_THREADS), limit, files, folder)
    }

    /// A spool with these threads, for what may block.
    pub fn with_threads(threads: DiskThreads, limit: u64, files: u64, folder: PathBuf) -> Arc<Self> {
        let (space, files) = (MemoryBudget::new(limit), MemoryBudget::new(files));
        let (answers, folder) = (AtomicU64::new(0), ArcSwap::from_pointee(folder));
        Arc::new(Self { space, files, threads, answers, folder })
    }

    /// The folder of new files.
    pub fn folder(&self) -> Arc<PathBuf> {
        self.folder.load_full()
    }

    /// Changes limits and folder. Existing files stay.
    pub fn update(&self, limit: u64, files: u64, folder: PathBuf) {
        self.space.resize(limit);
        self.files.resize(files);
        self.folder.store(Arc::new(folder));
    }

    /// The account of one connection.
    pub fn account(self: &Arc<Self>) -> SpoolAccount {
        SpoolAccount { spool: self.clone(), space: self.space.account(), files: self.files.account() }
    }

    pub fn view(&self) -> SpoolView {
        let (space, files) = (self.space.view(), self.files.view());
        SpoolView {
            limit: space.limit,
            used: space.used,
            files_limit: files.limit,
            files: files.used,
            full: space.refused + files.refused,
            answers: self.answers.load(Ordering::Relaxed),
        }
    }
}

/// What one connection holds of the spool, over all its requests and answers.
#[derive(Debug, Clone)]
pub struct SpoolAccount {
    spool: Arc<Spool>,
    space: Arc<MemoryAccount>,
    files: Arc<MemoryAccount>,
}

impl SpoolAccount {
    /// The most that one connection could hold if it was alone.
    pub fn most(&self) -> u64 {
        self.spool.space.view().limit / 2
    }

    /// Counts an answer of which a part is stored.
    pub fn count_answer(&self) {
        self.spool.answers.fetch_add(1, Ordering::Relaxed);
    }

    /// A new file. It takes no disk space before the first write.
    pub fn file(&self) -> SpoolFile {
        SpoolFile {
            folder: self.spool.folder.load_full(),
            threads: self.spool.threads.clone(),
            space: self.space.reservation(),
            place: self.files.reservation(),
            file: None,
            end: 0,
            freed: 0,
        }
    }
}

/// An unnamed file: no other program can open it, and the system deletes it when it is closed. Its methods may block, unless their
/// comment says otherwise.
#[derive(Debug)]
pub struct SpoolFile {
    folder: Arc<PathBuf>,
    threads: DiskThreads,
    space: Reservation,
    /// One of the files that may exist, from the first claim on.
    place: Reservation,
    file: Option<File>,
    end: u64,
    /// Bytes at the start whose disk space was freed.
    freed: u64,
}

impl SpoolFile {
    /// The threads on which the methods that may block are called.
    pub fn threads(&self) -> DiskThreads {
        self.threads.clone()
    }

    /// Reserves room for further bytes. Never blocks.
    pub fn claim(&mut self, bytes: u64) -> Result<(), SpoolFull> {
        match self.place.resize(1) && self.space.resize(self.space.bytes() + bytes) {
            true => Ok(()),
            false => Err(SpoolFull),
        }
    }

    /// Returns reserved room that is not needed. Never blocks.
    pub fn unclaim(&mut self, bytes: u64) {
        let _ = self.space.resize(self.space.bytes().saturating_sub(bytes));
    }

    /// Appends bytes. Room for them must have been reserved.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => tempfile::tempfile_in(&**self.folder)?,
        };
        let written = file.write_all_at(bytes, self.end);
        self.file = Some(file);
        written?;
        self.end += bytes.len() as u64;
        Ok(())
    }

    pub fn len(&self) -> u64 {
        self.end
    }

    pub fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// Reads from this position. A file that ends too early is an error.
    pub fn read_at(&self, place: &mut [u8], at: u64) -> io::Result<()> {
        self.file()?.read_exact_at(place, at)
    }

    /// The file itself.
    pub fn file(&self) -> io::Result<&File> {
        self.file.as_ref().ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Frees the disk space before position `read`. Some file systems cannot; there the space is freed with the file.
    pub fn free(&mut self, read: u64) {
        let Some(file) = &self.file else { return };
        let more = read.min(self.end).saturating_sub(self.freed);
        if more > 0 && punch_hole(file, self.freed, more) {
            self.freed += more;
            let _shrinks = self.space.resize(self.space.bytes().saturating_sub(more));
        }
    }
}

/// Frees the disk space of a part of the file. Returns whether the file system could.
#[cfg(target_os = "linux")]
fn punch_hole(file: &File, at: u64, length: u64) -> bool {
    use rustix::fs::{FallocateFlags, fallocate};
    fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, length).is_ok()
}

/// Other systems free the space with the file.
#[cfg(not(target_os = "linux"))]
fn punch_hole(_: &File, _: u64, _: u64) -> bool {
    false
}

impl Drop for SpoolFile {
    /// Closing a large file takes the kernel long, so a blocking thread does it. The room is free only then.
    fn drop(&mut self) {
        let Some(file) = self.file.take() else { return };
        let (space, place) = (self.space.take(), self.place.take());
        self.threads.release((file, space, place));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn spool(limit: u64) -> Arc<Spool> {
        Spool::new(limit, 100, std::env::temp_dir())
    }

    #[test]
    fn a_spool_file_is_read_back_and_frees_its_space_as_it_is_read() {
        let spool = spool(1 << 20);
        let mut file = spool.account().file();
        let bytes: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
        for piece in bytes.chunks(70_000) {
            file.claim(piece.len() as u64).unwrap();
            file.append(piece).unwrap();
        }
        assert_eq!((file.len(), spool.view().used), (200_000, 200_000));
        let mut part = vec![0; 100_000];
        file.read_at(&mut part, 50_000).unwrap();
        assert!(part == bytes[50_000..150_000]);
        file.free(150_000);
        assert!(matches!(spool.view().used, 50_000 | 200_000), "{:?}", spool.view());
        drop(file);
        assert_eq!(spool.view().used, 0);
    }

    #[test]
    fn one_connection_can_fill_half_of_the_spool_and_others_find_room() {
        let spool = spool(1000);
        let greedy = spool.account();
        let (mut one, mut other) = (greedy.file(), greedy.file());
        one.claim(400).unwrap();
        assert_eq!(other.claim(200), Err(SpoolFull));
        assert_eq!(
            spool.view(),
            SpoolView { limit: 1000, used: 400, files_limit: 100, files: 2, full: 1, answers: 0 }
        );
        assert_eq!(spool.account().file().claim(200), Ok(()));
    }

    #[test]
    fn one_connection_can_have_half_of_the_files_and_others_find_room() {
        let spool = Spool::new(1000, 8, std::env::temp_dir());
        let greedy = spool.account();
        let mut files: Vec<_> = (0..6).map(|_| greedy.file()).collect();
        let claimed: Vec<_> = files.iter_mut().map(|file| file.claim(1).is_ok()).collect();
        assert_eq!(claimed, [true, true, true, true, false, false]);
        assert_eq!((spool.view().files, spool.view().used), (4, 4));
        assert_eq!(spool.account().file().claim(1), Ok(()));
        drop(files);
        assert_eq!(spool.view().files, 0);
    }

    #[tokio::test]
    async fn a_file_dropped_on_a_data_plane_thread_is_closed_on_a_blocking_thread() {
        let threads = DiskThreads::new(1);
        let spool = Spool::with_threads(threads.clone(), 1000, 100, std::env::temp_dir());
        let mut file = spool.account().file();
        file.claim(10).unwrap();
        file.append(&[1; 10]).unwrap();
        // The only blocking thread that it may use is busy.
        let (end, ended) = mpsc::channel::<()>();
        let _busy = tokio::spawn(threads.run(move || {
            let _ = ended.recv();
            Ok(())
        }));
        tokio::task::yield_now().await;
        drop(file);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(spool.view().used, 10, "this thread has not closed it");
        drop(end);
        while spool.view().used > 0 {
            tokio::task::yield_now().await;
        }
    }
}
