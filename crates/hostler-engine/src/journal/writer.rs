//! A buffer and the thread that writes it to a file. Does not know what is written.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use serde::Serialize;
use tokio::time::Instant;

/// PIPE_BUF: a pipe takes this much at once. A predecessor and a successor write to the same pipe, and their lines must not mix.
const PIECE: usize = 4096;
/// The most bytes that may wait. Further lines are dropped.
const MAX_WAITING: usize = 8 * 1024 * 1024;
/// So many bytes more may wait, for lines that must not be lost because others come too fast.
const RESERVED: usize = 1024 * 1024;
/// The capacity that an empty buffer keeps.
const KEPT_CAPACITY: usize = 1024 * 1024;

/// A writer in the background.
pub struct Writer {
    shared: Arc<WriterInner>,
}

/// The state of the writer at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct WriterUsage {
    pub waiting_bytes: usize,
    /// Lines that were dropped since the start.
    pub dropped: u64,
    /// How long the reader of the output has read nothing. None while it keeps up.
    pub stuck_ms: Option<u64>,
    /// The error with which the last dropped lines were lost, such as that of a full disk. None: the reader was too slow.
    pub last_error: Option<Arc<str>>,
}

/// Appends the line that reports how many lines were dropped, and with which error.
type TellDropped = dyn Fn(&mut Vec<u8>, u64, Option<&str>) + Send + Sync;

struct WriterInner {
    state: Mutex<WriterState>,
    changed: Condvar,
    tell: Box<TellDropped>,
    complain: Box<dyn Fn(&str) + Send + Sync>,
}

#[derive(Default)]
struct WriterState {
    waiting: Vec<u8>,
    /// The number of the thread that writes. One before it is stuck, and ends if it ever goes on.
    thread: u64,
    /// The bytes and the lines that the thread has still to write, and since when it has written nothing.
    writing: usize,
    writing_lines: u64,
    since: Option<Instant>,
    /// Dropped lines that no log line has reported yet, and those that the thread is about to report.
    dropped: u64,
    telling: u64,
    dropped_in_all: u64,
    /// Why the last lines were dropped, if it was an error.
    last_error: Option<Arc<str>>,
    /// Which file the thread writes to.
    at: FileIdentity,
    /// What the thread writes to from its next lines on.
    replacement: Option<(FileIdentity, File)>,
    /// No further line is taken.
    ended: bool,
    /// The thread has written everything and ended.
    finished: bool,
}

/// The device and the inode of a file.
type FileIdentity = Option<(u64, u64)>;

impl Writer {
    /// Writes to `out` until [`end`](Self::end). `tell` makes the line that reports how many lines were dropped, and with which error.
    /// `complain` says elsewhere that a file cannot be written, once for each file. Fails if the system refuses the thread.
    pub fn new(
        out: File,
        tell: impl Fn(&mut Vec<u8>, u64, Option<&str>) + Send + Sync + 'static,
        complain: impl Fn(&str) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let state = WriterState { replacement: Some((identity_of(&out), out)), ..WriterState::default() };
        let shared = Arc::new(WriterInner {
            state: Mutex::new(state),
            changed: Condvar::new(),
            tell: Box::new(tell),
            complain: Box::new(complain),
        });
        shared.begin(0)?;
        Ok(Self { shared })
    }

    /// The same file without the buffer and the lock of the standard library.
    pub fn file(of: impl AsFd) -> io::Result<File> {
        Ok(File::from(of.as_fd().try_clone_to_owned()?))
    }

    /// Appends a line, or drops it if too much waits.
    pub fn append(&self, line: impl FnOnce(&mut Vec<u8>)) {
        self.append_within(MAX_WAITING, line);
    }

    /// The same for a line that also has the reserved room.
    pub fn append_reserved(&self, line: impl FnOnce(&mut Vec<u8>)) {
        self.append_within(MAX_WAITING + RESERVED, line);
    }

    fn append_within(&self, most: usize, line: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.shared.lock();
        self.shared.hand_over_if_stuck(&mut state);
        if state.waiting.len() > most || state.ended {
            state.drop_lines(1);
            state.last_error = None;
            return;
        }
        let was_empty = state.waiting.is_empty();
        line(&mut state.waiting);
        drop(state);
        if was_empty {
            self.shared.changed.notify_all();
        }
    }

    /// Further lines go to this file. The one before is closed at once: it may be removed, and keep its room on the disk until then. If the
    /// thread is stuck in that, such as at a reader that reads nothing, another one goes on. `change` adapts the lines that wait.
    pub fn replace(&self, out: File, change: impl FnOnce(&mut Vec<u8>)) {
        let replacement = (identity_of(&out), out);
        let mut state = self.shared.lock();
        change(&mut state.waiting);
        let unused = state.replacement.replace(replacement);
        self.shared.hand_over_if_stuck(&mut state);
        drop(state);
        self.shared.changed.notify_all();
        // Not under the lock: to close a file may take long.
        drop(unused);
    }

    pub fn usage(&self) -> WriterUsage {
        let state = self.shared.lock();
        WriterUsage {
            waiting_bytes: state.waiting.len() + state.writing,
            dropped: state.dropped_in_all,
            stuck_ms: state.since.map(|since| since.elapsed()).and_then(stuck),
            last_error: state.last_error.clone(),
        }
    }

    /// Takes no more lines and waits until all are written, but at most `time_limit`: a reader that does not read must not keep the
    /// process alive. False if lines were lost.
    pub fn end(&self, time_limit: Duration) -> bool {
        let mut state = self.shared.lock();
        state.ended = true;
        self.shared.changed.notify_all();
        let waited = self.shared.changed.wait_timeout_while(state, time_limit, |state| !state.finished);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.finished
    }
}

fn identity_of(file: &File) -> FileIdentity {
    file.metadata().ok().map(|found| (found.dev(), found.ino()))
}

/// A short write is normal. Only a long one is reported.
fn stuck(since: Duration) -> Option<u64> {
    (since >= Duration::from_secs(1)).then_some(since.as_millis() as u64)
}

impl WriterState {
    fn drop_lines(&mut self, lines: u64) {
        self.dropped += lines;
        self.dropped_in_all += lines;
    }

    /// The next thread writes from now on. What this one has in hand counts as dropped, although its reader may still get it.
    fn hand_over(&mut self) {
        self.thread += 1;
        let lines = std::mem::take(&mut self.writing_lines);
        self.drop_lines(lines);
        self.dropped += std::mem::take(&mut self.telling);
        (self.writing, self.since, self.last_error) = (0, None, None);
    }
}

/// Groups whole lines into writes of [`PIECE`] bytes at most. A longer line is written alone.
fn pieces(mut lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let fits = &lines[..lines.len().min(PIECE)];
        let end = memchr::memrchr(b'\n', fits).or_else(|| memchr::memchr(b'\n', lines));
        let (piece, rest) = lines.split_at(end.map_or(lines.len(), |end| end + 1));
        lines = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// The file, and what has become of its last line.
struct LogOutput {
    file: File,
    /// The last line has no end, because its write failed in the middle.
    is_broken: bool,
    /// It was said that the file cannot be written.
    has_complained: bool,
}

/// A write that failed.
struct Lost {
    lines: usize,
    error: io::Error,
}

impl LogOutput {
    /// Goes on in this file. If it is the same as before, its last line may have no end.
    fn after(before: Option<Self>, file: File) -> Self {
        let is_same = |before: &Self| identity_of(&before.file) == identity_of(&file);
        let is_broken = before.is_some_and(|before| before.is_broken && is_same(&before));
        Self { file, is_broken, has_complained: false }
    }

    /// Writes whole lines. If the line before has no end, it ends first.
    fn write(&mut self, piece: &[u8]) -> Result<(), Lost> {
        if self.is_broken && !piece.is_empty() {
            let ended = self.write_bytes(b"\n").map_err(|(error, _)| error);
            ended.map_err(|error| Lost { lines: count(piece), error })?;
            self.is_broken = false;
        }
        self.write_bytes(piece).map_err(|(error, rest)| {
            let written = &piece[..piece.len() - rest];
            self.is_broken = written.last().is_some_and(|last| *last != b'\n');
            Lost { lines: count(&piece[written.len()..]), error }
        })
    }

    /// With an error comes the number of bytes that were not written. The pipe may be non-blocking because another process made it so. Then
    /// this thread waits for room.
    fn write_bytes(&self, mut bytes: &[u8]) -> Result<(), (io::Error, usize)> {
        let mut out = &self.file;
        while !bytes.is_empty() {
            match out.write(bytes) {
                Ok(0) => return Err((io::ErrorKind::WriteZero.into(), bytes.len())),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // If the wait fails, the next write reports the error.
                    let _ = poll(&mut [PollFd::new(out, PollFlags::OUT)], None);
                }
                Err(error) => return Err((error, bytes.len())),
            }
        }
        Ok(())
    }
}

fn count(lines: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', lines).count()
}

impl WriterInner {
    /// Starts the thread with this number.
    fn begin(self: &Arc<Self>, number: u64) -> io::Result<()> {
        let inner = self.clone();
        std::thread::Builder::new().name("journal".into()).spawn(move || inner.run(number)).map(drop)
    }

    /// Lets another thread go on with another file. With the same one it would be stuck, too.
    fn hand_over_if_stuck(self: &Arc<Self>, state: &mut WriterState) {
        let has_other = state.replacement.as_ref().is_some_and(|(identity, _)| *identity != state.at);
        let is_stuck = has_other && state.since.is_some_and(|since| stuck(since.elapsed()).is_some());
        // The new thread waits for the lock.
        if is_stuck && self.begin(state.thread + 1).is_ok() {
            state.hand_over();
        }
    }

    fn run(&self, number: u64) {
        let (mut writing, mut output) = (Vec::new(), None);
        loop {
            writing.clear();
            writing.shrink_to(KEPT_CAPACITY);
            let (dropped, ended, replacement, error) = self.wait(&mut writing);
            output = match replacement {
                Some(file) => Some(LogOutput::after(output, file)),
                None => output,
            };
            let Some(out) = &mut output else { return };
            let lines = writing.len();
            if dropped > 0 {
                (self.tell)(&mut writing, dropped, error.as_deref());
            }
            let (lines, told) = writing.split_at(lines);
            let (mut lost, mut error) = (0, None);
            for piece in pieces(lines) {
                if let Err(failed) = out.write(piece) {
                    lost += failed.lines as u64;
                    error = Some(failed.error);
                }
                self.goes_on(number, piece);
            }
            let is_told = out.write(told).is_ok();
            let error: Option<Arc<str>> = error.map(|error| error.to_string().into());
            let mut state = self.lock();
            if state.thread != number {
                // Another thread goes on, and what was in hand here is counted.
                return;
            }
            let telling = std::mem::take(&mut state.telling);
            state.dropped += if is_told { 0 } else { telling };
            (state.writing, state.since) = (0, None);
            state.drop_lines(lost);
            state.last_error = error.clone().or(state.last_error.take());
            let is_over = ended && state.waiting.is_empty();
            drop(state);
            if let Some(error) = error.filter(|_| !out.has_complained) {
                (self.complain)(&error);
                out.has_complained = true;
            }
            if is_over {
                self.lock().finished = true;
                return self.changed.notify_all();
            }
        }
    }

    /// A piece is written or lost.
    fn goes_on(&self, number: u64, piece: &[u8]) {
        let lines = count(piece) as u64;
        let mut state = self.lock();
        if state.thread == number {
            state.writing -= piece.len();
            state.writing_lines -= lines;
            state.since = Some(Instant::now());
        }
    }

    fn wait(&self, writing: &mut Vec<u8>) -> (u64, bool, Option<File>, Option<Arc<str>>) {
        let mut state = self.lock();
        while state.waiting.is_empty() && !state.ended && state.replacement.is_none() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::swap(&mut state.waiting, writing);
        (state.writing, state.since) = (writing.len(), Some(Instant::now()));
        state.writing_lines = count(writing) as u64;
        state.telling = std::mem::take(&mut state.dropped);
        let replacement = state.replacement.take().map(|(identity, file)| {
            state.at = identity;
            file
        });
        (state.telling, state.ended, replacement, state.last_error.clone())
    }

    fn lock(&self) -> MutexGuard<'_, WriterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use rustix::event::Timespec;
    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    /// A real pipe of 64 KiB, and a writer to it.
    fn piped(flags: PipeFlags) -> (File, Writer) {
        let (read, write) = pipe_with(flags).unwrap();
        (File::from(read), writer(File::from(write)))
    }

    fn writer(out: File) -> Writer {
        let tell = |out: &mut Vec<u8>, dropped, _: Option<&str>| drop(writeln!(out, "{dropped} dropped"));
        Writer::new(out, tell, |_| ()).unwrap()
    }

    fn fill(writer: &Writer, lines: usize) {
        let line = [vec![b'x'; 1023], vec![b'\n']].concat();
        (0..lines).for_each(|_| writer.append(|out| out.extend_from_slice(&line)));
    }

    #[test]
    fn lines_are_written_whole_and_in_pieces_that_a_pipe_takes_at_once() {
        let line = |length: usize| [vec![b'x'; length - 1], vec![b'\n']].concat();
        let all = [line(4000), line(96), line(1), line(9000), line(4096), line(10)].concat();
        let lengths: Vec<_> = pieces(&all).map(<[u8]>::len).collect();
        assert_eq!(lengths, [4096, 1, 9000, 4096, 10]);
        assert_eq!(pieces(&all).collect::<Vec<_>>().concat(), all);
        assert_eq!(pieces(b"no end").collect::<Vec<_>>(), [b"no end"]);
    }

    #[test]
    fn shutdown_waits_for_a_reader_that_reads_and_not_for_a_stalled_one() {
        let (mut reader, writer) = piped(PipeFlags::CLOEXEC);
        fill(&writer, 10);
        assert!(writer.end(Duration::from_secs(60)));
        drop(writer);
        let mut read = String::new();
        reader.read_to_string(&mut read).unwrap();
        assert_eq!(read.lines().count(), 10);

        let (_reader, writer) = piped(PipeFlags::CLOEXEC);
        fill(&writer, 1000);
        assert!(!writer.end(Duration::from_millis(10)));
    }

    #[test]
    fn dropped_lines_are_counted_and_reported_when_the_reader_reads_on() {
        let (mut reader, writer) = piped(PipeFlags::CLOEXEC);
        fill(&writer, 20_000);
        let WriterUsage { waiting_bytes, dropped, .. } = writer.usage();
        assert!(dropped > 0 && waiting_bytes <= 2 * MAX_WAITING + 2048, "{dropped} {waiting_bytes}");
        let reading = std::thread::spawn(move || {
            let mut read = String::new();
            reader.read_to_string(&mut read).unwrap();
            read
        });
        assert!(writer.end(Duration::from_secs(60)));
        assert_eq!(writer.usage().waiting_bytes, 0);
        drop(writer);
        let read = reading.join().unwrap();
        // On a busy machine, lines are dropped before the thread has taken the first ones, too. Then there are two reports.
        let told = |line: &str| line.strip_suffix(" dropped").map(|count| count.parse::<u64>().unwrap());
        let reports: Vec<_> = read.lines().filter_map(told).collect();
        assert_eq!(reports.iter().sum::<u64>(), dropped, "{reports:?}");
        assert!(read.lines().last().and_then(told).is_some());
        assert_eq!(read.lines().count() - reports.len(), 20_000 - dropped as usize);
    }

    #[test]
    fn a_reserved_line_is_not_lost_because_others_come_too_fast() {
        let (mut reader, writer) = piped(PipeFlags::CLOEXEC);
        fill(&writer, 20_000);
        let dropped = writer.usage().dropped;
        assert!(dropped > 0);
        writer.append_reserved(|out| out.extend_from_slice(b"important\n"));
        assert_eq!(writer.usage().dropped, dropped);
        let line = [vec![b'r'; 1023], vec![b'\n']].concat();
        (0..20_000).for_each(|_| writer.append_reserved(|out| out.extend_from_slice(&line)));
        let WriterUsage { waiting_bytes, dropped: all, .. } = writer.usage();
        let most = 2 * (MAX_WAITING + RESERVED) + 2048;
        assert!(all > dropped && waiting_bytes <= most, "{all} {waiting_bytes}");
        let reading = std::thread::spawn(move || {
            let mut read = String::new();
            reader.read_to_string(&mut read).unwrap();
            read
        });
        assert!(writer.end(Duration::from_secs(60)));
        drop(writer);
        assert!(reading.join().unwrap().lines().any(|line| line == "important"));
    }

    #[test]
    fn a_file_is_closed_when_another_takes_its_place() {
        let (reader, writer) = piped(PipeFlags::CLOEXEC);
        writer.replace(tempfile::tempfile().unwrap(), |_| ());
        let minute = Timespec { tv_sec: 60, tv_nsec: 0 };
        let mut ended = [PollFd::new(&reader, PollFlags::IN)];
        assert_eq!(poll(&mut ended, Some(&minute)), Ok(1), "the pipe has no other end");
        drop(writer);
    }

    #[test]
    fn what_is_left_to_write_and_how_long_nothing_was_written_is_known_at_each_piece() {
        let (mut reader, writer) = piped(PipeFlags::CLOEXEC);
        fill(&writer, 1000);
        let mut read = |kib: usize| reader.read_exact(&mut vec![0; kib * 1024]).unwrap();
        read(500);
        while writer.usage().waiting_bytes > 500 * 1024 {
            std::thread::yield_now();
        }
        let since = writer.shared.lock().since;
        read(200);
        while writer.shared.lock().since == since {
            std::thread::yield_now();
        }
    }

    #[test]
    fn another_file_takes_the_place_of_a_reader_that_reads_nothing() {
        let (reader, writer) = piped(PipeFlags::CLOEXEC);
        // One line that is longer than the pipe.
        writer.append(|out| out.extend([vec![b'x'; 100_000], vec![b'\n']].concat()));
        while rustix::io::ioctl_fionread(&reader).unwrap() < 65_536 {
            std::thread::yield_now();
        }
        let (mut other, write) =
            pipe_with(PipeFlags::CLOEXEC).map(|(read, write)| (File::from(read), File::from(write))).unwrap();
        writer.append(|out| out.extend_from_slice(b"before\n"));
        // It has begun just now.
        writer.shared.lock().since = None;
        writer.replace(write, |waiting| waiting.make_ascii_uppercase());
        assert_eq!(writer.shared.lock().thread, 0, "a short wait is normal");
        writer.shared.lock().since = Instant::now().checked_sub(Duration::from_secs(2));
        writer.append(|out| out.extend_from_slice(b"after\n"));
        assert!(writer.end(Duration::from_secs(60)));
        assert_eq!(writer.usage(), WriterUsage { dropped: 1, ..WriterUsage::default() });
        drop(writer);
        let mut read = String::new();
        other.read_to_string(&mut read).unwrap();
        assert_eq!(read, "BEFORE\nafter\n1 dropped\n");
    }

    #[test]
    fn a_pipe_that_became_non_blocking_loses_nothing() {
        let (mut reader, writer) = piped(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK);
        rustix::io::ioctl_fionbio(&reader, false).unwrap();
        fill(&writer, 1000);
        let reading = std::thread::spawn(move || {
            let mut read = Vec::new();
            reader.read_to_end(&mut read).unwrap();
            read.len()
        });
        assert!(writer.end(Duration::from_secs(60)));
        assert_eq!(writer.usage().dropped, 0);
        drop(writer);
        assert_eq!(reading.join().unwrap(), 1000 * 1024);
    }

    #[test]
    fn lines_for_a_reader_that_is_gone_are_counted_as_dropped() {
        let (reader, writer) = piped(PipeFlags::CLOEXEC);
        drop(reader);
        fill(&writer, 10);
        assert!(writer.end(Duration::from_secs(60)));
        assert_eq!(writer.usage().dropped, 10);
    }

    #[test]
    fn the_error_of_a_write_is_kept_and_said_once() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (said, complaints) = std::sync::mpsc::channel();
        let tell = |out: &mut Vec<u8>, dropped, error: Option<&str>| {
            drop(writeln!(out, "{dropped} dropped: {}", error.unwrap_or("too slow")));
        };
        let writer = Writer::new(full, tell, move |error| said.send(error.to_owned()).unwrap()).unwrap();
        fill(&writer, 1);
        let error = "No space left on device (os error 28)";
        assert_eq!(complaints.recv().unwrap(), error);
        fill(&writer, 1);
        while writer.usage().dropped < 2 {
            std::thread::yield_now();
        }
        assert_eq!(writer.usage().last_error.as_deref(), Some(error));
        let (mut reader, write) =
            pipe_with(PipeFlags::CLOEXEC).map(|(read, write)| (File::from(read), write)).unwrap();
        writer.replace(File::from(write), |_| ());
        writer.append(|out| out.extend_from_slice(b"again\n"));
        assert!(writer.end(Duration::from_secs(60)));
        drop(writer);
        let mut read = String::new();
        reader.read_to_string(&mut read).unwrap();
        // The new file gets the count of dropped lines at once, or with the next line.
        let mut lines: Vec<_> = read.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, [&format!("2 dropped: {error}"), "again"]);
        assert!(complaints.recv().is_err(), "no second complaint");
    }

    #[test]
    fn after_half_a_line_the_next_one_begins_on_a_line_of_its_own() {
        after_half_a_line(false);
        after_half_a_line(true);
    }

    /// The file is opened again before the next line.
    fn after_half_a_line(opened_again: bool) {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("log");
        let (here, mode) = (rustix::fs::CWD, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(here, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let reader = || {
            let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK;
            File::from(rustix::fs::open(&fifo, flags, rustix::fs::Mode::empty()).unwrap())
        };
        let first = reader();
        let open = || std::fs::OpenOptions::new().write(true).open(&fifo).unwrap();
        let writer = writer(open());
        // More than the pipe takes.
        writer.append(|out| out.extend([vec![b'x'; 100_000], vec![b'\n']].concat()));
        while rustix::io::ioctl_fionread(&first).unwrap() < 65_536 {
            std::thread::yield_now();
        }
        drop(first);
        while writer.usage().dropped == 0 {
            std::thread::yield_now();
        }
        let mut second = reader();
        if opened_again {
            writer.replace(open(), |_| ());
        }
        rustix::io::ioctl_fionbio(&second, false).unwrap();
        let reading = std::thread::spawn(move || {
            let mut read = String::new();
            second.read_to_string(&mut read).unwrap();
            read
        });
        writer.append(|out| out.extend_from_slice(b"next\n"));
        assert!(writer.end(Duration::from_secs(60)));
        drop(writer);
        let read = reading.join().unwrap();
        let mut lines: Vec<_> = read.lines().collect();
        // The file that is opened again gets the count of dropped lines at once, or with the next line.
        lines[1..].sort_unstable();
        assert_eq!((lines[0].len(), &lines[1..]), (65_536, &["1 dropped", "next"][..]));
    }
}
