//! The priority of each line for the journal of systemd: `<N>` in front of it, as sd-daemon(3) describes. Knows no formats.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::fstat;

use super::line::Level;

/// Whether the lines go to the journal.
pub(super) struct Priorities {
    /// Standard output is the journal.
    is_journal: bool,
    /// The lines go to standard output now, and not to a file.
    is_stdout: AtomicBool,
}

impl Priorities {
    /// `stream` is `JOURNAL_STREAM`: the device and the inode of the journal's socket. systemd sets it, and a child may have another
    /// standard output.
    pub fn new(stream: Option<&str>, is_stdout: bool) -> Self {
        let is_journal = stream.is_some_and(|stream| is_this(stream, std::io::stdout()));
        Self { is_journal, is_stdout: AtomicBool::new(is_stdout) }
    }

    /// Returns whether the lines went to standard output before.
    pub fn to_stdout(&self, is_stdout: bool) -> bool {
        self.is_stdout.swap(is_stdout, Ordering::Relaxed)
    }

    /// Takes the priorities off lines that have them and go to a file now.
    pub fn unmark(&self, lines: &mut Vec<u8>) {
        if !self.is_journal {
            return;
        }
        for line in std::mem::take(lines).split_inclusive(|&byte| byte == b'\n') {
            let is_marked = matches!(line, [b'<', b'0'..=b'7', b'>', ..]);
            lines.extend_from_slice(if is_marked { &line[3..] } else { line });
        }
    }

    /// Puts the priority before each line from `start` on.
    pub fn mark(&self, out: &mut Vec<u8>, start: usize, level: Level) {
        if !self.is_journal || !self.is_stdout.load(Ordering::Relaxed) {
            return;
        }
        let lines = out.split_off(start);
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            out.extend_from_slice(&[b'<', number(level), b'>']);
            out.extend_from_slice(line);
        }
    }
}

fn is_this(stream: &str, output: impl AsFd) -> bool {
    fstat(output).is_ok_and(|stat| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
}

/// The number in syslog(3).
fn number(level: Level) -> u8 {
    match level {
        Level::Fatal => b'2',
        Level::Error => b'3',
        Level::Warn => b'4',
        Level::Info => b'6',
        Level::Trace | Level::Debug => b'7',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_gets_the_priority_and_earlier_ones_stay() {
        let priorities = Priorities { is_journal: true, is_stdout: AtomicBool::new(true) };
        let mut out = b"<6>before\nerror: one\ntwo\n".to_vec();
        priorities.mark(&mut out, 10, Level::Error);
        assert_eq!(out, b"<6>before\n<3>error: one\n<3>two\n");
        assert!(priorities.to_stdout(false));
        priorities.unmark(&mut out);
        assert_eq!(out, b"before\nerror: one\ntwo\n");
        let mut out = b"in a file\n".to_vec();
        priorities.mark(&mut out, 0, Level::Info);
        assert_eq!(out, b"in a file\n");
    }

    #[test]
    fn another_output_than_the_named_one_is_not_the_journal() {
        let file = tempfile::tempfile().unwrap();
        let stat = fstat(&file).unwrap();
        assert!(is_this(&format!("{}:{}", stat.st_dev, stat.st_ino), &file));
        assert!(!is_this(&format!("{}:{}", stat.st_dev, stat.st_ino + 1), &file));
        assert!(!is_this("", &file));
        assert!(!Priorities::new(None, true).is_journal);
    }
}
