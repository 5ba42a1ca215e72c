//! The threads of libuv's thread pool in a Node process, and which of them work or are blocked. Knows no requests.
//!
//! Since libuv 1.50 (Node 22.14) these threads have a name. In older versions all threads of Node have the name of the program; the first
//! ones belong to V8 and the inspector, and those of the pool come after them. The threads of V8 are not counted: on a busy machine they
//! wait for a CPU for long, and say nothing about requests.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use crate::process_files::threads;

const NAME: &str = "libuv-worker";
/// The threads that Node starts before those of the pool: one for delayed tasks, four for V8, one for signals.
const OTHERS: usize = 6;

/// The threads at one moment. Those that start later are not among them.
#[derive(Debug, Default)]
pub(super) struct PoolThreads {
    wchans: Vec<File>,
    /// They have their name, so these are all of them and no others.
    named: bool,
}

impl PoolThreads {
    /// The threads of this process. Empty if it has no thread pool yet, or is another program than Node.
    pub fn of(pid: u32) -> Self {
        let mut threads: Vec<u32> = threads(pid).filter(|thread| *thread != pid).collect();
        threads.sort_unstable();
        let name =
            |thread: u32| fs::read_to_string(format!("/proc/{pid}/task/{thread}/comm")).unwrap_or_default();
        let named: Vec<(u32, String)> = threads.into_iter().map(|thread| (thread, name(thread))).collect();
        let of_program = name(pid);
        let mut chosen: Vec<u32> =
            named.iter().filter(|(_, name)| name.trim_end() == NAME).map(|(thread, _)| *thread).collect();
        let has_names = !chosen.is_empty();
        if !has_names {
            let nameless = named.iter().filter(|(_, name)| *name == of_program);
            chosen = nameless.skip(OTHERS).map(|(thread, _)| *thread).collect();
        }
        let wchan = |thread| File::open(format!("/proc/{pid}/task/{thread}/wchan")).ok();
        Self { wchans: chosen.into_iter().filter_map(wchan).collect(), named: has_names }
    }

    /// How many there are, if that is known for sure. An app may set the number itself, in a way that its environment does not show.
    pub fn number(&self) -> Option<usize> {
        Some(self.wchans.len()).filter(|number| self.named && *number > 0)
    }

    /// How many of them have work: they compute, wait for a CPU, or are blocked, for example by a disk.
    pub fn busy(&self) -> usize {
        self.wchans.iter().filter(|wchan| is_busy(wchan)).count()
    }
}

/// Without work a thread of the pool waits for a condition variable, in a futex.
fn is_busy(wchan: &File) -> bool {
    let mut text = [0; 64];
    let Ok(length) = wchan.read_at(&mut text, 0) else { return false };
    let waits = |place: &[u8]| memchr::memmem::find(&text[..length], place).is_some();
    !waits(b"futex") && !waits(b"epoll") && !waits(b"ep_poll")
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_number_of_threads_is_that_of_the_process_and_not_of_its_environment() {
        let script = "process.env.UV_THREADPOOL_SIZE = 7; require('crypto').pbkdf2('', '', 1, 8, 'sha1', () => console.log('done'));
            setInterval(() => {}, 1000);";
        let mut node = Command::new("node").args(["-e", script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(node.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "done");
        let number = PoolThreads::of(node.id()).number();
        node.kill().unwrap();
        node.wait().unwrap();
        // In Node before 22.14 the threads have no name.
        assert!(matches!(number, Some(7) | None), "{number:?}");
        assert_eq!(PoolThreads::of(node.id()).number(), None);
    }

    #[test]
    fn the_threads_of_the_pool_are_found_and_those_of_v8_are_not() {
        let script = "
            const { pbkdf2 } = require('crypto');
            console.log('started');
            process.stdin.once('data', () => {
                for (let i = 0; i < 4; i += 1) pbkdf2('', '', 1, 8, 'sha1', () => pbkdf2('', '', 1e9, 8, 'sha1', () => {}));
                console.log('works');
            });";
        let mut node = Command::new("node")
            .args(["-e", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(node.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "started");
        let threads = PoolThreads::of(node.id());
        assert_eq!((threads.wchans.len(), threads.busy()), (0, 0), "before the pool is there");
        node.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), "works");
        let work = || {
            let threads = PoolThreads::of(node.id());
            (threads.wchans.len(), threads.busy()) == (4, 4)
        };
        assert!((0..100_000).any(|_| work()), "four threads that work");
        let threads = PoolThreads::of(node.id());
        node.kill().unwrap();
        node.wait().unwrap();
        assert_eq!(threads.busy(), 0);
    }
}
