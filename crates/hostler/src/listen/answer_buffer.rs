//! Buffers the answer of a slow client in memory and in a file, and decides whether the client is too slow. Knows no protocol.

#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hostler_engine::exchange::{Deadline, MemoryAccount, Reservation, Slow, SpoolAccount, TransferRate};

use super::settings::SendLimits;
use super::spill::Spill;

/// How many bytes of its answers each connection may hold in any case.
pub const LEAST_ANSWER_MEMORY: u64 = 16 * 1024;
/// The same, as a size.
pub(super) const LEAST: usize = LEAST_ANSWER_MEMORY as usize;
/// How many bytes are taken from a member at a time.
pub(super) const PIECE: usize = 64 * 1024;
/// How many bytes are taken without memory of an answer that is not stored and of which nothing waits. HTTP/2 takes as many without a grant.
const LITTLE: usize = 4 * 1024;
/// The member waits for a client that takes `FAST` bytes in `MOMENT`: writing to a disk and reading again would cost more than the wait.
const FAST: u64 = 1 << 20;
const MOMENT: Duration = Duration::from_millis(200);
/// The client's kernel acknowledges bytes in steps, on loopback of 64 KB and more. A step makes `send_timeout` longer by the time that the step
/// takes at this rate, in bytes per second, but by one and a half `send_timeout` at most.
const STEP_RATE: u64 = 1024;
/// A client that holds up a worker, or holds memory of the cache, is too slow if it takes nothing for this many milliseconds.
const MOST_HELD: u64 = 10_000;

/// The part of an answer that a slow client has not taken. A client that keeps up has none.
pub(super) struct AnswerBuffer {
    memory: Reservation,
    /// How many bytes TLS holds of the answer, beside those in memory here.
    held_back: usize,
    spill: Option<Box<Spill>>,
    /// Whether there was room for more bytes neither in memory nor in the spool.
    is_crowded: bool,
    pace: TransferRate,
    /// How fast the client takes bytes while it holds a [`HeldResource`], and since when it has taken none then.
    slot_pace: TransferRate,
    idle_since: Option<u64>,
    /// The bytes that were taken at the last check: on the whole connection, and of this answer.
    seen: u64,
    seen_own: u64,
    /// How many bytes of this response the client had taken when that last counted as progress.
    mark: u64,
    /// By how much the last step makes `send_timeout` longer. See [`STEP_RATE`].
    step: Duration,
    /// When the memory became full, and how many bytes were taken by then.
    full_since: Option<(u64, u64)>,
}

/// Where the next bytes may go, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BufferPlace {
    Memory(usize),
    File(usize),
    /// There is no room: the source of the answer must wait.
    Full,
}

/// How bytes are buffered that the client does not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BufferKind {
    /// The bytes may go to a file.
    Stored,
    /// The bytes stay at their source, which holds no slot.
    Ready,
    /// The bytes must not be buffered in a file: the member waits for the client.
    Straight,
}

/// What a client that reads slowly keeps from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeldResource {
    /// A worker, which waits because there is no room for its answer.
    Worker,
    /// The same, and all bytes of this answer have left, so what the client takes of all answers of the connection counts.
    WorkerByAll,
    /// Memory of the cache.
    Cache,
    /// The same, by several answers of one connection that delay each other: what the client takes of all of them counts.
    CacheByAll,
}

/// How much a client has taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    /// Bytes taken on the whole connection.
    pub all: u64,
    /// Bytes taken of this answer; the same as `all` in HTTP/1.1.
    pub own: u64,
    /// How many bytes of this answer count as progress.
    pub least: u64,
    /// The time of the thread's clock, in milliseconds.
    pub now: u64,
}

impl AnswerBuffer {
    /// An empty buffer.
    pub fn new(account: &Arc<MemoryAccount>, progress: &Progress) -> Box<Self> {
        Box::new(Self {
            memory: account.reservation(),
            held_back: 0,
            spill: None,
            is_crowded: false,
            pace: TransferRate::default(),
            slot_pace: TransferRate::default(),
            idle_since: None,
            seen: progress.all,
            seen_own: progress.own,
            mark: progress.own,
            step: Duration::ZERO,
            full_since: None,
        })
    }

    /// The client's share of the memory for answers.
    pub fn memory(&mut self) -> &mut Reservation {
        &mut self.memory
    }

    /// Notes how many bytes TLS holds. They take memory, too.
    pub fn note_held_back(&mut self, bytes: usize) {
        self.held_back = bytes;
    }

    /// Whether a part of the answer is in a file, or on its way there or back.
    pub fn is_spilling(&self) -> bool {
        self.spill.is_some()
    }

    /// How many bytes of the answer are in a file, or on their way there or back.
    pub fn in_file(&self) -> u64 {
        self.spill.as_ref().map_or(0, |spill| spill.waiting())
    }

    /// Where the next bytes may go, while `unsent` bytes of at most `limit` are in memory.
    pub fn place(
        &mut self,
        (unsent, limit): (usize, usize),
        kind: BufferKind,
        progress: &Progress,
        account: impl FnOnce() -> SpoolAccount,
    ) -> BufferPlace {
        if let Some(spill) = &mut self.spill {
            return room_of(spill, kind);
        }
        let (left, held) = (limit.saturating_sub(unsent).min(PIECE), unsent + self.held_back);
        for left in [left, left.min(LEAST.saturating_sub(held))] {
            if left > 0 && self.memory.resize((held + left) as u64) {
                (self.full_since, self.is_crowded) = (None, false);
                return BufferPlace::Memory(left);
            }
        }
        if kind != BufferKind::Stored {
            // If nothing of it waits, no event would wake its task: that memory comes free is none, and its source is not asked for more.
            return if held == 0 { BufferPlace::Memory(left.min(LITTLE)) } else { BufferPlace::Full };
        }
        let (since, before) = *self.full_since.get_or_insert((progress.now, progress.own));
        if progress.now - since < MOMENT.as_millis() as u64 {
            return BufferPlace::Full;
        }
        if progress.own - before >= FAST {
            self.full_since = Some((progress.now, progress.own));
            return BufferPlace::Full;
        }
        self.begin_file(kind, progress, &account())
    }

    /// Begins the file, but only if the spool has room: an empty file would be dropped at the next look, and with it the fact that there is no room.
    fn begin_file(&mut self, kind: BufferKind, progress: &Progress, account: &SpoolAccount) -> BufferPlace {
        let mut spill = Box::new(Spill::new(account));
        let place = room_of(&mut spill, kind);
        self.is_crowded = place == BufferPlace::Full;
        if self.is_crowded {
            self.full_since = Some((progress.now, progress.own));
        } else {
            account.count_answer();
            self.spill = Some(spill);
        }
        place
    }

    /// The buffer for bytes that go to the file. The caller then calls [`Self::took`].
    pub fn file_place(&mut self) -> Option<&mut Vec<u8>> {
        self.spill.as_mut().map(|spill| spill.place())
    }

    /// Notes that this many bytes were put into the buffer for the file.
    pub fn took(&mut self, bytes: usize) {
        if let Some(spill) = &mut self.spill {
            spill.took(bytes);
        }
    }

    /// Counts the bytes of the outbox, which wait in memory, and those that TLS holds. If there is no memory for them, all but the first `keep`
    /// bytes of the outbox go to a file, unless they are stored elsewhere too.
    pub fn wait(
        &mut self,
        outbox: &mut Vec<u8>,
        keep: usize,
        kind: BufferKind,
        account: impl FnOnce() -> SpoolAccount,
    ) {
        if self.memory.resize((outbox.len() + self.held_back) as u64) {
            return;
        }
        if kind == BufferKind::Stored && self.spill.is_none() && !self.is_crowded && outbox.len() > keep {
            let account = account();
            let mut spill = Spill::new(&account);
            let rest = if keep == 0 { std::mem::take(outbox) } else { outbox.split_off(keep) };
            match spill.take(rest) {
                Ok(()) => {
                    account.count_answer();
                    self.spill = Some(Box::new(spill));
                }
                Err(rest) => {
                    outbox.extend(rest);
                    self.is_crowded = true;
                }
            }
        }
        self.memory.set((outbox.len() + self.held_back) as u64);
    }

    /// Moves bytes into the file, and from the file into an empty `outbox`, up to `wanted` bytes. `ended`: no more bytes will come.
    pub fn poll_file(
        &mut self,
        cx: &mut Context<'_>,
        outbox: &mut Vec<u8>,
        wanted: usize,
        ended: bool,
    ) -> io::Result<()> {
        let Some(spill) = &mut self.spill else { return Ok(()) };
        spill.poll(cx, outbox, wanted, ended)?;
        if spill.is_empty() {
            self.spill = None;
            self.full_since = None;
        }
        Ok(())
    }

    /// How many bytes may be read from the file for a client that has taken all bytes in memory.
    pub fn wanted(&mut self) -> usize {
        if self.spill.is_none() {
            let _shrinks = self.memory.resize(0);
            return 0;
        }
        // The minimum is always available, except for what other answers of the connection use of it.
        if self.memory.resize(PIECE as u64) { PIECE } else { LEAST }
    }

    /// Notes that the client has taken all waiting bytes.
    pub fn rest(&mut self, progress: &Progress, settings: &SendLimits, stall: &Deadline) {
        let moved = progress.all - std::mem::replace(&mut self.seen, progress.all);
        let own = progress.own - std::mem::replace(&mut self.seen_own, progress.own);
        let _ = self.pace.has_moved(moved, progress.now, settings.min_send_rate);
        let _ = self.slot_pace.has_moved(own, progress.now, settings.min_slot_rate);
        (self.mark, self.idle_since) = (progress.own, None);
        stall.clear();
    }

    /// Checks a client for which bytes wait. Ready when the client is too slow.
    pub fn poll_slow(
        &mut self,
        cx: &mut Context<'_>,
        progress: &Progress,
        held: Option<HeldResource>,
        settings: &SendLimits,
        stall: &Deadline,
    ) -> Poll<Slow> {
        let Progress { all, own, least, now } = *progress;
        let moved_all = all - std::mem::replace(&mut self.seen, all);
        if moved_all > 0 && !self.pace.has_moved(moved_all, now, settings.min_send_rate) {
            return Poll::Ready(Slow::TooSlow);
        }
        self.pace.wait(now);
        let moved_own = own - std::mem::replace(&mut self.seen_own, own);
        let by_all = matches!(held, Some(HeldResource::CacheByAll | HeldResource::WorkerByAll));
        let moved = if by_all { moved_all } else { moved_own };
        let is_slow = moved > 0 && !self.slot_pace.has_moved(moved, now, settings.min_slot_rate);
        if moved > 0 || held.is_none() {
            self.idle_since = None;
        }
        if let Some(held) = held.filter(|_| settings.min_slot_rate > 0) {
            let idle = now - *self.idle_since.get_or_insert(now);
            if is_slow || idle >= MOST_HELD {
                return Poll::Ready(match held {
                    HeldResource::Worker | HeldResource::WorkerByAll => Slow::HoldsWorker,
                    HeldResource::Cache | HeldResource::CacheByAll => Slow::HoldsCache,
                });
            }
            self.slot_pace.wait(now);
        }
        if own - self.mark >= least {
            let step = Duration::from_millis((own - self.mark) * 1000 / STEP_RATE);
            self.step = step.min(settings.send_timeout * 3 / 2);
            self.mark = own;
            stall.clear();
        }
        stall.poll_stalled(cx, settings.send_timeout + self.step).map(|()| Slow::Stalled)
    }

    /// Whether there is no more room in the spool.
    pub fn is_full(&self) -> bool {
        self.is_crowded || self.spill.as_ref().is_some_and(|spill| spill.is_full())
    }
}

/// Sets `alarm` so that a waiting task checks the client again after `MOMENT`.
pub(super) fn look_again(alarm: &Deadline, cx: &mut Context<'_>) {
    if !alarm.is_set() || alarm.is_due() {
        alarm.set_after(MOMENT);
    }
    let _ = alarm.poll_due(cx);
}

fn room_of(spill: &mut Spill, kind: BufferKind) -> BufferPlace {
    match kind {
        BufferKind::Stored => match spill.room() {
            0 => BufferPlace::Full,
            room => BufferPlace::File(room),
        },
        // Only bytes that had no room in memory are in the file.
        BufferKind::Ready | BufferKind::Straight => BufferPlace::Full,
    }
}
