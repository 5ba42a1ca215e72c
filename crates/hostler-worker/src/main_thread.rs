//! Observes the main thread of a process through `/proc`: does its event loop wait for events, or does it compute? Knows
//! no pool. A server in a thread of its own has its event loop there, so that thread is observed in its place.
//!
//! Node, Bun and Deno run JavaScript on the main thread. Between events it sleeps in `epoll_wait`, and the kernel names
//! that place in `/proc/PID/wchan`. While it computes the file says `0`; while it is blocked by anything else (a lock,
//! a synchronous read) or is stopped (SIGSTOP, a debugger) it names another place. `execSync` and `spawnSync` are an
//! exception: they wait in an event loop of their own, so here the thread seems to wait for events.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use hostler_dispatch::{CpuClock, CpuReading, EventLoop};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

/// A thread that serves requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServingThread {
    pub pid: u32,
    /// The kernel's number of it. None: the main thread of the process.
    pub tid: Option<u32>,
}

/// A main thread, or another thread that serves requests.
#[derive(Debug)]
pub(super) struct MainThread {
    /// Kept open, so that an observation is one system call. After the end of the process, reading fails.
    wchan: File,
    schedstat: File,
    stat: File,
    /// The CPU time of all threads of the process. None: the system has no such clock for it.
    process: Option<ClockId>,
}

/// What the kernel tells about a thread at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It sleeps until an event arrives.
    Epoll,
    /// It runs, or is ready to run; or the kernel does not tell.
    Unknown,
    /// It sleeps elsewhere.
    Elsewhere,
}

impl ServingThread {
    pub fn main_of(pid: u32) -> Self {
        Self { pid, tid: None }
    }
}

impl MainThread {
    /// # Errors
    /// The thread has ended, or `/proc` is not there or hides it.
    pub fn of(ServingThread { pid, tid }: ServingThread) -> io::Result<Self> {
        let folder = tid.map_or_else(|| format!("/proc/{pid}"), |tid| format!("/proc/{pid}/task/{tid}"));
        let open = |name: &str| File::open(format!("{folder}/{name}"));
        Ok(Self {
            wchan: open("wchan")?,
            schedstat: open("schedstat")?,
            stat: open("stat")?,
            process: clock_of(pid),
        })
    }

    /// Whether the kernel shows that the thread waits for events. `None`: the thread runs, so this look cannot tell. The kernel does not show
    /// it if Hostler may not trace the process, or if it was built without symbols. Since Linux 6.12 it also does not show it for some
    /// milliseconds on a busy machine: a thread that has used more than its share of a CPU stays in the run queue after it has fallen asleep.
    /// In a program whose other threads serve the requests, such as one in Java, the main thread sleeps elsewhere.
    pub fn shows_wait(&self) -> Option<bool> {
        // The thread may fall asleep between two reads.
        let (slept, place) = (self.sleeps(), self.place());
        match place {
            Place::Epoll => Some(true),
            Place::Elsewhere | Place::Unknown => (slept && self.sleeps()).then_some(false),
        }
    }

    /// The CPU time that the thread has used.
    pub fn cpu_time(&self) -> Option<Duration> {
        let mut text = [0; 64];
        times(read(&self.schedstat, &mut text)?).map(|(cpu, _)| cpu)
    }

    /// How long the thread has run, or was ready to run while other threads had the CPUs. On a busy machine a loop that computes all the
    /// time gets little CPU time, and is not idle.
    pub fn busy_time(&self) -> Option<Duration> {
        let mut text = [0; 64];
        times(read(&self.schedstat, &mut text)?).map(|(cpu, delayed)| cpu + delayed)
    }

    /// The CPU time of all threads of the process.
    fn process_time(&self) -> Option<Duration> {
        let time = clock_gettime(self.process?).ok()?;
        u64::try_from(time.num_nanoseconds()).ok().map(Duration::from_nanos)
    }

    fn place(&self) -> Place {
        let mut text = [0; 64];
        match read(&self.wchan, &mut text) {
            Some(b"0" | b"") | None => Place::Unknown,
            // `do_epoll_wait`, or `ep_poll` in older kernels.
            Some(symbol) if contains(symbol, b"epoll") || contains(symbol, b"ep_poll") => Place::Epoll,
            Some(_) => Place::Elsewhere,
        }
    }

    /// Whether the process is stopped, by SIGSTOP or a debugger. Only the first read is made of one that waits for events.
    pub fn is_stopped(&self) -> bool {
        self.place() == Place::Elsewhere && matches!(self.state(), Some(b'T' | b't'))
    }

    fn sleeps(&self) -> bool {
        self.state() == Some(b'S')
    }

    /// The state of the thread, such as S: it sleeps. Every process may read this.
    fn state(&self) -> Option<u8> {
        let mut text = [0; 256];
        let text = read(&self.stat, &mut text)?;
        // The name of the program, in brackets, may contain anything.
        let name_ends = memchr::memrchr(b')', text)?;
        text.get(name_ends + 2).copied()
    }
}

/// The clock of the CPU time of a process.
#[cfg(target_os = "linux")]
fn clock_of(pid: u32) -> Option<ClockId> {
    ClockId::pid_cpu_clock_id(nix::unistd::Pid::from_raw(pid.cast_signed())).ok()
}

/// Other systems have no clock of another process.
#[cfg(not(target_os = "linux"))]
fn clock_of(_: u32) -> Option<ClockId> {
    None
}

impl EventLoop for MainThread {
    fn cpu_if_waiting(&self) -> Option<Duration> {
        if self.place() == Place::Epoll { self.cpu_time() } else { None }
    }
}

impl CpuClock for MainThread {
    fn read(&self) -> Option<CpuReading> {
        let mut text = [0; 64];
        // After the main thread, because its process must not seem to have used less.
        let (main, delayed, turns) = sched(read(&self.schedstat, &mut text)?)?;
        Some(CpuReading { all: self.process_time()?, main, delayed, turns })
    }

    fn waits(&self) -> bool {
        self.place() == Place::Epoll
    }
}

fn read<'a>(file: &File, into: &'a mut [u8]) -> Option<&'a [u8]> {
    let length = file.read_at(into, 0).ok()?;
    Some(&into[..length])
}

/// The first two numbers of a `schedstat` file, in nanoseconds.
pub(super) fn times(schedstat: &[u8]) -> Option<(Duration, Duration)> {
    sched(schedstat).map(|(cpu, delayed, _)| (cpu, delayed))
}

/// The numbers of a `schedstat` file: the time on a CPU and the time of waiting for one, and how often the thread got one.
fn sched(schedstat: &[u8]) -> Option<(Duration, Duration, u64)> {
    let mut numbers = schedstat.split(u8::is_ascii_whitespace);
    let mut next = || std::str::from_utf8(numbers.next()?).ok()?.parse::<u64>().ok();
    Some((Duration::from_nanos(next()?), Duration::from_nanos(next()?), next()?))
}

fn contains(symbol: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(symbol, part).is_some()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, Command, Stdio};

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    /// A Node process that computes or blocks for a time when it is told so.
    struct Node(Child, BufReader<std::process::ChildStdout>);

    impl Node {
        fn start() -> Self {
            Self::with(Command::new("env"))
        }

        /// `command` runs the program in its arguments.
        fn with(mut command: Command) -> Self {
            let script = "
                process.stdin.on('data', (line) => {
                    console.log('begins');
                    eval(String(line));
                    console.log('done');
                });
                console.log('started');";
            let mut child = command
                .args(["node", "-e", script])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let output = BufReader::new(child.stdout.take().unwrap());
            let mut node = Self(child, output);
            node.expect("started");
            node
        }

        fn tell(&mut self, script: &str) {
            writeln!(self.0.stdin.as_mut().unwrap(), "{script}").unwrap();
            self.expect("begins");
        }

        fn expect(&mut self, line: &str) {
            let mut read = String::new();
            self.1.read_line(&mut read).unwrap();
            assert_eq!(read.trim(), line);
        }
    }

    impl Drop for Node {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_loop_that_other_programs_keep_from_its_cpu_is_busy() {
        let on_one_cpu = || {
            let mut command = Command::new("taskset");
            command.args(["-c", &allowed_cpu()]);
            command
        };
        let mut node = Node::with(on_one_cpu());
        let mut spins = on_one_cpu();
        spins.args(["sh", "-c", "while :; do :; done"]);
        let mut others: Vec<Child> = (0..3).map(|_| spins.spawn().unwrap()).collect();
        let main_thread = MainThread::of(ServingThread::main_of(node.0.id())).unwrap();
        let (began, before) = (tokio::time::Instant::now(), main_thread.busy_time().unwrap());
        node.tell("for (const end = Date.now() + 500; Date.now() < end;);");
        node.expect("done");
        let (took, after) = (began.elapsed(), main_thread.busy_time().unwrap());
        for other in &mut others {
            other.kill().unwrap();
            other.wait().unwrap();
        }
        let share = (after - before).as_secs_f64() / took.as_secs_f64();
        assert!(share > 0.7, "{share}");
    }

    /// The first CPU on which this process may run.
    fn allowed_cpu() -> String {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
        list.trim().split([',', '-']).next().unwrap().to_owned()
    }

    #[test]
    fn a_process_that_is_stopped_does_not_wait_for_events() {
        let node = Node::start();
        let main_thread = MainThread::of(ServingThread::main_of(node.0.id())).unwrap();
        let process = Pid::from_raw(node.0.id().cast_signed()).unwrap();
        let waits = || main_thread.cpu_if_waiting().is_some();
        assert!((0..1_000_000).any(|_| waits()));
        kill_process(process, Signal::STOP).unwrap();
        // The signal ends its wait first.
        assert!((0..1_000_000).any(|_| !waits()));
        assert!((0..1000).all(|_| !waits()), "a pool would give it requests");
        assert!((0..1_000_000).any(|_| main_thread.is_stopped()));
        assert_eq!(main_thread.shows_wait(), None, "it may wait for events again later");
        kill_process(process, Signal::CONT).unwrap();
        assert!((0..1_000_000).any(|_| waits()));
        assert!(!main_thread.is_stopped());
    }

    #[test]
    fn a_main_thread_waits_between_events_and_does_not_while_it_computes_or_blocks() {
        let mut node = Node::start();
        let main_thread = MainThread::of(ServingThread::main_of(node.0.id())).unwrap();
        let waits = || (0..1_000_000).any(|_| main_thread.cpu_if_waiting().is_some());
        assert!(waits());
        assert!((0..1_000_000).any(|_| main_thread.shows_wait() == Some(true)));
        for busy in [
            "for (const end = Date.now() + 1000; Date.now() < end;);",
            "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000)",
        ] {
            node.tell(busy);
            let seen = (0..100).filter(|_| main_thread.cpu_if_waiting().is_some()).count();
            assert_eq!(seen, 0, "{busy}");
            let mut looks = std::iter::from_fn(|| Some(main_thread.shows_wait()));
            // A busy machine takes a while to let the thread block. It blocks for a second.
            let until = tokio::time::Instant::now() + Duration::from_millis(800);
            match busy.starts_with("Atomics") {
                true => {
                    let mut looks = looks.take_while(|_| tokio::time::Instant::now() < until);
                    assert!(looks.any(|waits| waits == Some(false)), "{busy}");
                }
                false => assert!(!looks.by_ref().take(100).any(|waits| waits == Some(true)), "{busy}"),
            }
            node.expect("done");
            assert!(waits(), "after {busy}");
        }
        let id = node.0.id();
        drop(node);
        assert_eq!(main_thread.cpu_if_waiting(), None);
        assert!(MainThread::of(ServingThread::main_of(id)).is_err());
    }
}
