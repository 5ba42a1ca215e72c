//! A buffer for lines, and a thread that writes it to a file. Does not know what is written.

mod output;
mod thread;
mod waiting;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;

use output::identity_of;
use thread::GATHERED;
use waiting::{WriterInner, WriterState};

/// The most bytes that may wait, with those that the thread has still to write. Further lines are dropped.
const MAX_WAITING: usize = 8 * 1024 * 1024;
/// So many bytes of these are not for lines that may come without end.
const ROOM_FOR_OTHERS: usize = 1024 * 1024;
/// The lines of one such source may take so many times the bytes that are left for all of them, so that there is always room for another source.
/// One takes 6 of 7 MiB, two take 3.2 MiB each. Switches share the memory for their queues so (dynamic thresholds).
const SHARE: usize = 6;
/// So many bytes more may wait, for lines that must not be lost because others come too fast.
const RESERVED: usize = 1024 * 1024;

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
        self.append_within(MAX_WAITING, None, line);
    }

    /// The same for a line of a source that may print without end: such lines leave room for the others, and for those of other sources.
    pub fn append_modest(&self, source: &str, line: impl FnOnce(&mut Vec<u8>)) {
        self.append_within(MAX_WAITING - ROOM_FOR_OTHERS, Some(source), line);
    }

    /// The same for a line that also has the reserved room.
    pub fn append_reserved(&self, line: impl FnOnce(&mut Vec<u8>)) {
        self.append_within(MAX_WAITING + RESERVED, None, line);
    }

    fn append_within(&self, most: usize, source: Option<&str>, line: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.shared.lock();
        self.shared.hand_over_if_stuck(&mut state);
        let left = most.checked_sub(state.waiting.len() + state.writing);
        let own = source.map_or(0, |source| state.sources.of(source, state.writing));
        if left.is_none_or(|left| own > SHARE * left) || state.ended {
            state.drop_lines(1);
            state.last_error = None;
            return;
        }
        let before = state.waiting.len();
        line(&mut state.waiting);
        if let Some(source) = source {
            let added = state.waiting.len() - before;
            state.sources.add(source, added);
        }
        let wakes = match state.is_gathering {
            true => before < GATHERED && state.waiting.len() >= GATHERED,
            false => before == 0,
        };
        drop(state);
        if wakes {
            self.shared.changed.notify_all();
        }
    }

    /// Writes further lines to this file. The old file is closed at once: it may have been removed, and would keep its disk space until
    /// then. If the thread is stuck in a write to it (its reader reads nothing), another thread goes on. `change` adapts the lines that
    /// wait.
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
            stuck_ms: state.stuck_ms(),
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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::pipe::{PipeFlags, pipe_with};
    use tokio::time::Instant;

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
        assert!(dropped > 0 && waiting_bytes <= MAX_WAITING + 2048, "{dropped} {waiting_bytes}");
        let reading = std::thread::spawn(move || {
            let mut read = String::new();
            reader.read_to_string(&mut read).unwrap();
            read
        });
        assert!(writer.end(Duration::from_secs(60)));
        assert_eq!(writer.usage().waiting_bytes, 0);
        drop(writer);
        let read = reading.join().unwrap();
        // On a busy machine, lines are dropped before the thread has taken the first ones, too. Then there are two reports, or one in the middle.
        let told = |line: &str| line.strip_suffix(" dropped").map(|count| count.parse::<u64>().unwrap());
        let reports: Vec<_> = read.lines().filter_map(told).collect();
        assert_eq!(reports.iter().sum::<u64>(), dropped, "{reports:?}");
        assert_eq!(read.lines().count() - reports.len(), 20_000 - dropped as usize);
    }

    #[test]
    fn lines_that_come_fast_are_written_many_at_a_time() {
        // Each read gets what one write wrote.
        let (mut reader, writer) = piped(PipeFlags::CLOEXEC | PipeFlags::DIRECT);
        let reading = std::thread::spawn(move || {
            let mut writes = vec![];
            let mut buffer = [0; 8192];
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                writes.push(read);
            }
            writes
        });
        let (line, began) = ([&[b'x'; 99][..], b"\n"].concat(), Instant::now());
        for number in 1..=2_000 {
            writer.append(|out| out.extend_from_slice(&line));
            while began.elapsed() < Duration::from_micros(20) * number {}
        }
        assert!(writer.end(Duration::from_secs(60)));
        let took = began.elapsed();
        drop(writer);
        let writes = reading.join().unwrap();
        assert_eq!(writes.iter().sum::<usize>(), 200_000);
        // Lines are taken once in a millisecond at most, as long as they come fast. A full write has 40 lines.
        let most = took.as_millis() as usize + 200_000 / 4000 + 4;
        assert!(writes.len() <= most, "{} writes in {took:?}", writes.len());
    }

    #[test]
    fn a_source_that_prints_without_end_leaves_room_for_other_lines() {
        let (_reader, writer) = piped(PipeFlags::CLOEXEC);
        let line = [vec![b'x'; 1023], vec![b'\n']].concat();
        (0..20_000).for_each(|_| writer.append_modest("app", |out| out.extend_from_slice(&line)));
        let dropped = writer.usage().dropped;
        assert!(dropped > 0);
        (0..500).for_each(|_| writer.append_modest("other", |out| out.extend_from_slice(&line)));
        assert_eq!(writer.usage().dropped, dropped, "lines of another such source");
        fill(&writer, 500);
        assert_eq!(writer.usage().dropped, dropped);
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
        let most = MAX_WAITING + RESERVED + 2048;
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
