//! The part of an answer for which memory has no room: a file, behind which the answer goes on, and before which its client reads. Knows
//! no client and no member.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::task::{JoinHandle, spawn_blocking};

use hostler_engine::exchange::{SpoolAccount, SpoolFile};

/// What is taken in at a time.
const PIECE: usize = 64 * 1024;
/// What is claimed of the spool at a time, where it has so much.
const CLAIM: u64 = 256 * 1024;
/// After so many bytes that were read their room is given back.
const FREED: u64 = 1 << 20;

/// First in, first out. Its bytes are on the disk, but for those on their way there or back.
pub(super) struct Spill {
    disk: Disk,
    /// To be written behind what the file holds.
    staged: Vec<u8>,
    /// Claimed for what is still to come.
    claimed: u64,
    /// What the file holds, and how much of it has been read.
    end: u64,
    read: u64,
    freed: u64,
    /// How far it had been read when there was no more room.
    full_at: Option<u64>,
    /// The disk takes no more.
    has_failed: bool,
}

/// One thing at a time, each on a thread that may block.
enum Disk {
    Idle(SpoolFile),
    Busy(JoinHandle<Done>),
    Lost,
}

/// What has been done.
struct Done {
    file: SpoolFile,
    /// What was read; or what was to be written.
    bytes: Vec<u8>,
    outcome: io::Result<()>,
    is_read: bool,
}

impl Spill {
    /// Nothing yet.
    pub fn new(account: &SpoolAccount) -> Self {
        account.count_answer();
        Self {
            disk: Disk::Idle(account.file()),
            staged: Vec::new(),
            claimed: 0,
            end: 0,
            read: 0,
            freed: 0,
            full_at: None,
            has_failed: false,
        }
    }

    /// How many bytes may come in now.
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
        // What was refused once is asked for again when something was given back.
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

    /// The spool has no room for more of it.
    pub fn is_full(&self) -> bool {
        self.full_at.is_some() || self.has_failed
    }

    /// Where to put what comes in; [`Self::took`] follows.
    pub fn place(&mut self) -> &mut Vec<u8> {
        &mut self.staged
    }

    /// So many bytes have come in.
    pub fn took(&mut self, bytes: usize) {
        self.claimed = self.claimed.saturating_sub(bytes as u64);
    }

    /// Takes the first bytes, which lie in memory already. They come back where the spool has no room for them.
    pub fn take(&mut self, bytes: Vec<u8>) -> Result<(), Vec<u8>> {
        let has_room = match &mut self.disk {
            Disk::Idle(file) => file.claim(bytes.len() as u64).is_ok(),
            Disk::Busy(_) | Disk::Lost => false,
        };
        if !has_room {
            return Err(bytes);
        }
        self.staged = bytes;
        Ok(())
    }

    /// Nothing is left here.
    pub fn is_empty(&self) -> bool {
        self.staged.is_empty() && self.read == self.end && matches!(self.disk, Disk::Idle(_))
    }

    /// Goes on. What waits to be written is; where `into` is empty, up to `wanted` of the first bytes come there. When no more is to come
    /// (`ended`), room that is not needed is given back.
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
                    Poll::Ready(done) => self.settle(done.map_err(io::Error::other)?, into)?,
                },
                Disk::Idle(mut file) => {
                    if ended {
                        file.unclaim(std::mem::take(&mut self.claimed));
                    }
                    let wants = wanted > 0 && into.is_empty();
                    if wants && self.read < self.end {
                        self.disk = Disk::Busy(self.reading(file, wanted));
                    } else if wants && !self.staged.is_empty() {
                        // It need not go to the disk and back.
                        file.unclaim(self.staged.len().min(wanted) as u64);
                        self.disk = Disk::Idle(file);
                        match self.staged.len() <= wanted {
                            true => *into = std::mem::take(&mut self.staged),
                            false => into.extend(self.staged.drain(..wanted)),
                        }
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

    fn reading(&mut self, mut file: SpoolFile, wanted: usize) -> JoinHandle<Done> {
        let at = self.read;
        let length = (self.end - at).min(wanted as u64) as usize;
        let after = at + length as u64;
        let frees = after - self.freed >= FREED || after == self.end;
        if frees {
            self.freed = after;
        }
        spawn_blocking(move || {
            let mut bytes = vec![0; length];
            let outcome = file.read_at(&mut bytes, at);
            if frees {
                file.free(after);
            }
            Done { file, bytes, outcome, is_read: true }
        })
    }

    fn settle(&mut self, done: Done, into: &mut Vec<u8>) -> io::Result<()> {
        let Done { file, mut bytes, outcome, is_read } = done;
        self.disk = Disk::Idle(file);
        if is_read {
            outcome?;
            self.read += bytes.len() as u64;
            *into = bytes;
        } else if outcome.is_ok() {
            self.end += bytes.len() as u64;
        } else {
            // The disk is full: what was to go there goes to the client from here, and no more is taken in before.
            self.has_failed = true;
            bytes.append(&mut self.staged);
            self.staged = bytes;
        }
        Ok(())
    }
}

fn writing(mut file: SpoolFile, bytes: Vec<u8>) -> JoinHandle<Done> {
    spawn_blocking(move || {
        let outcome = file.append(&bytes);
        Done { file, bytes, outcome, is_read: false }
    })
}
