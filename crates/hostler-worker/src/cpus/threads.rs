//! On which CPUs the threads of a process may run: reads and sets it in the kernel. Decides nothing.
//!
//! Threads and programs that a thread starts inherit its CPUs. Only the main thread of a worker is bound; its helpers (V8's garbage
//! collector, libuv's pool, worker threads) and the programs that it starts keep all CPUs, so that they run beside it.

use std::time::Duration;

use super::disturbance::CpuWork;
use super::list::CpuList;
use crate::main_thread::times;
use crate::process_files::threads;

pub(super) use self::kernel::{of, own, set};

/// Gives all CPUs to the threads and programs that have inherited those of the main thread. Returns whether a program was among them.
pub(super) fn free_others(process: u32, bound: &CpuList, all: &CpuList) -> bool {
    free(process, Some(process), bound, all);
    let programs = programs(process);
    let mut has_inherited = false;
    for program in programs {
        has_inherited |= free(program, None, bound, all);
    }
    has_inherited
}

fn free(process: u32, except: Option<u32>, bound: &CpuList, all: &CpuList) -> bool {
    let inherited = threads(process)
        .filter(|thread| Some(*thread) != except && of(*thread).as_ref() == Some(bound))
        .filter(|thread| set(*thread, all).is_ok());
    inherited.count() > 0
}

/// Sets the CPUs of all threads of a process.
pub(super) fn set_all(process: u32, cpus: &CpuList) {
    for thread in threads(process) {
        // It may have ended.
        let _ = set(thread, cpus);
    }
}

/// What the main thread of a process has done since it began.
pub(super) fn work(process: u32) -> Option<CpuWork> {
    let text = std::fs::read(format!("/proc/{process}/task/{process}/schedstat")).ok()?;
    let (cpu, wait): (Duration, Duration) = times(&text)?;
    Some(CpuWork { cpu, wait })
}

/// The programs that the main thread of a process has started and that still run.
fn programs(process: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    children.unwrap_or_default().split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::io;

    use rustix::process::Pid;
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::super::list::MAX_CPU;
    use super::CpuList;

    /// The CPUs that the calling thread may use.
    pub fn own() -> Option<CpuList> {
        sched_getaffinity(None).ok().map(|set| list(&set))
    }

    /// The CPUs that a thread may use.
    pub fn of(thread: u32) -> Option<CpuList> {
        sched_getaffinity(Some(pid(thread)?)).ok().map(|set| list(&set))
    }

    /// Sets the CPUs of a thread.
    pub fn set(thread: u32, cpus: &CpuList) -> io::Result<()> {
        let mut set = CpuSet::new();
        cpus.iter().filter(|cpu| *cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(cpu));
        let pid = pid(thread).ok_or(rustix::io::Errno::SRCH)?;
        Ok(sched_setaffinity(Some(pid), &set)?)
    }

    fn pid(thread: u32) -> Option<Pid> {
        i32::try_from(thread).ok().and_then(Pid::from_raw)
    }

    fn list(set: &CpuSet) -> CpuList {
        (0..CpuSet::MAX_CPU.min(MAX_CPU)).filter(|cpu| set.is_set(*cpu)).collect()
    }
}

/// Other systems bind no thread to a CPU.
#[cfg(not(target_os = "linux"))]
mod kernel {
    use std::io;

    use super::CpuList;

    pub fn own() -> Option<CpuList> {
        None
    }

    pub fn of(_: u32) -> Option<CpuList> {
        None
    }

    pub fn set(_: u32, _: &CpuList) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_has_inherited_the_cpu_of_a_bound_one_is_freed() {
        std::thread::spawn(|| {
            let all = own().unwrap();
            let first: CpuList = all.iter().take(1).collect();
            let thread = || rustix::thread::gettid().as_raw_pid().cast_unsigned();
            set(thread(), &first).unwrap();
            assert_eq!(of(thread()), Some(first.clone()));
            let (tell, told) = std::sync::mpsc::channel();
            let (end, ended) = std::sync::mpsc::channel::<()>();
            let inner = std::thread::spawn(move || {
                tell.send(thread()).unwrap();
                let _ = ended.recv();
            });
            let inner_thread = told.recv().unwrap();
            assert_eq!(of(inner_thread), Some(first.clone()), "inherited");
            assert!(!free_others(std::process::id(), &first, &all), "no program");
            assert_eq!((of(inner_thread), of(thread())), (Some(all.clone()), Some(all)));
            drop(end);
            inner.join().unwrap();
        })
        .join()
        .unwrap();
    }

    #[test]
    fn the_work_of_this_process_is_read_and_that_of_no_process_is_not() {
        assert!(work(std::process::id()).is_some());
        assert_eq!(work(u32::MAX), None);
        assert!(set(u32::MAX, &CpuList::from_iter([0])).is_err());
    }
}
