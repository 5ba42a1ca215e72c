//! The part of an answer that does not fit into memory: a file that is written at its end and read from its start. Knows no client and no
//! member.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::task::{JoinHandle, spawn};

use hostler_engine::exchange::{SpoolAccount, SpoolFile};

/// How many bytes are taken at a time.
const PIECE: usize = 64 * 1024;
/// How many bytes are claimed of the spool at a time, if it has them.
const CLAIM: u64 = 256 * 1024;
/// After this many bytes were read, their disk space is freed.
const FREED: u64 = 1 << 20;

/// A queue of bytes on the disk, except those on their way there or back.
pub(super) struct Spill {
    disk: Disk,
    /// Bytes to be appended to the file.
    staged: Vec<u8>,
    /// Bytes claimed of the spool for what will arrive.
    claimed: u64,
    /// Bytes that were taken and have not been given back.
    waiting: u64,
    /// The length of the file, and how much of it was read.
    end: u64,
    read: u64,
    freed: u64,
    /// The value of `freed` when the spool was full; none while it has room.
    full_at: Option<u64>,
    /// Whether a write has failed.
    has_failed: bool,
}

/// The file, or the one operation on it that runs on a blocking thread.
enum Disk {
    Idle(SpoolFile),
    Busy(JoinHandle<io::Result<Done>>),
    Lost,
}

/// A finished operation.
struct Done {
    file: SpoolFile,
    /// The bytes that were read, or that were to be written.
    bytes: Vec<u8>,
    outcome: io::Result<()>,
    is_read: bool,
}

impl Spill {
    /// An empty queue.
    pub fn new(account: &SpoolAccount) -> Self {
        Self {
            disk: Disk::Idle(account.file()),
            staged: Vec::new(),
            claimed: 0,
            waiting: 0,
            end: 0,
            read: 0,
            freed: 0,
            full_at: None,
            has_failed: false,
        }
    }

    /// How many bytes can be taken now.
    pub fn room(&mut self) -> usize {
        if self.staged.len() >= PIECE || self.has_failed {
            return 0;
        }
        if self.claimed < PIECE as u64 {
            self.claim(CLAIM);
        }
        match self.claimed >= PIECE as u64 {
            true => PIECE,
            false => 0,
        }
    }

    fn claim(&mut self, wanted: u64) {
        let Disk::Idle(file) = &mut self.disk else { return };
        // After a refusal, the spool is asked again only when this file has freed some space.
        if self.full_at.is_some_and(|at| self.freed == at) {
            return;
        }
        for bytes in [wanted, PIECE as u64] {
            if file.claim(bytes).is_ok() {
                self.claimed += bytes;
                self.full_at = None;
                return;
            }
        }
        self.full_at = Some(self.freed);
    }

    /// Whether the spool or the disk has no room for more.
    pub fn is_full(&self) -> bool {
        self.full_at.is_some() || self.has_failed
    }

    /// The buffer for new bytes. The caller then calls [`Self::took`].
    pub fn place(&mut self) -> &mut Vec<u8> {
        &mut self.staged
    }

    /// Notes that this many bytes were put into the buffer.
    pub fn took(&mut self, bytes: usize) {
        self.waiting += bytes as u64;
        self.claimed = self.claimed.saturating_sub(bytes as u64);
    }

    /// Takes the first bytes from memory. Returns them if the spool has no room for them.
    pub fn take(&mut self, bytes: Vec<u8>) -> Result<(), Vec<u8>> {
        let has_room = match &mut self.disk {
            Disk::Idle(file) => file.claim(bytes.len() as u64).is_ok(),
            Disk::Busy(_) | Disk::Lost => false,
        };
        if !has_room {
            return Err(bytes);
        }
        self.waiting += bytes.len() as u64;
        self.staged = bytes;
        Ok(())
    }

    /// How many bytes are left, also on their way to the disk or back.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Whether no bytes are left.
    pub fn is_empty(&self) -> bool {
        self.staged.is_empty() && self.read == self.end && matches!(self.disk, Disk::Idle(_))
    }

    /// Makes progress: writes the waiting bytes, and reads up to `wanted` bytes into an empty `into`. If no more bytes will come (`ended`),
    /// gives claimed space back.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<u8>,
        wanted: usize,
        ended: bool,
    ) -> io::Result<()> {
        loop {
            match std::mem::replace(&mut self.disk, Disk::Lost) {
                Disk::Busy(mut doing) => match Pin::new(&mut doing).poll(cx) {
                    Poll::Pending => {
                        self.disk = Disk::Busy(doing);
                        return Ok(());
                    }
                    Poll::Ready(done) => self.settle(done.map_err(io::Error::other)??, into)?,
                },
                Disk::Idle(mut file) => {
                    if ended {
                        file.unclaim(std::mem::take(&mut self.claimed));
                    }
                    let wants = wanted > 0 && into.is_empty();
                    if wants && self.read < self.end {
                        self.disk = Disk::Busy(self.reading(file, wanted));
                    } else if wants && !self.staged.is_empty() {
                        // These bytes need not go to the disk and back.
                        file.unclaim(self.staged.len().min(wanted) as u64);
                        self.disk = Disk::Idle(file);
                        match self.staged.len() <= wanted {
                            true => *into = std::mem::take(&mut self.staged),
                            false => into.extend(self.staged.drain(..wanted)),
                        }
                        self.waiting -= into.len() as u64;
                        return Ok(());
                    } else if !self.staged.is_empty() && !self.has_failed {
                        self.disk = Disk::Busy(writing(file, std::mem::take(&mut self.staged)));
                    } else {
                        self.disk = Disk::Idle(file);
                        return Ok(());
                    }
                }
                Disk::Lost => return Err(io::Error::other("its temporary file is lost")),
            }
        }
    }

    fn reading(&mut self, mut file: SpoolFile, wanted: usize) -> JoinHandle<io::Result<Done>> {
        let at = self.read;
        let length = (self.end - at).min(wanted as u64) as usize;
        let after = at + length as u64;
        let frees = after - self.freed >= FREED || after == self.end;
        if frees {
            self.freed = after;
        }
        spawn(file.threads().run(move || {
            let mut bytes = vec![0; length];
            let outcome = file.read_at(&mut bytes, at);
            if frees {
                file.free(after);
            }
            Ok(Done { file, bytes, outcome, is_read: true })
        }))
    }

    fn settle(&mut self, done: Done, into: &mut Vec<u8>) -> io::Result<()> {
        let Done { file, mut bytes, outcome, is_read } = done;
        self.disk = Disk::Idle(file);
        if is_read {
            outcome?;
            self.read += bytes.len() as u64;
            self.waiting -= bytes.len() as u64;
            *into = bytes;
        } else if outcome.is_ok() {
            self.end += bytes.len() as u64;
        } else {
            // The disk is full: these bytes go to the client from memory, and no others are accepted before that.
            self.has_failed = true;
            bytes.append(&mut self.staged);
            self.staged = bytes;
        }
        Ok(())
    }
}

fn writing(mut file: SpoolFile, bytes: Vec<u8>) -> JoinHandle<io::Result<Done>> {
    spawn(file.threads().run(move || {
        let outcome = file.append(&bytes);
        Ok(Done { file, bytes, outcome, is_read: false })
    }))
}
