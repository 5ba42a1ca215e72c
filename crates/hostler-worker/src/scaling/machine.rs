//! The CPU and the memory of the machine, or of the control group that limits this process. Knows no pool.
//!
//! Control groups of version 2 are read as the kernel mounts them, of version 1 only the memory. Where a file is
//! missing, the figures of the whole machine count.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

use crate::memory_group::MemoryGroups;

/// Processes wait for memory if they have waited for this many percent of the last ten seconds.
const SHORT_OF_MEMORY: f64 = 10.0;
/// Looks in a shorter time share their figures.
const LOOK_LASTS: Duration = Duration::from_millis(200);
/// The averages forget within about this many seconds.
const MEMORY_SECONDS: f64 = 1.0;

const CGROUPS: &str = "/sys/fs/cgroup";
/// `USER_HZ`: the unit of the kernel's text files is a hundredth of a second on every platform of Linux that Node supports.
const TICK: f64 = 0.01;

/// What is free on the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineLook {
    /// In cores.
    pub free_cpu: f64,
    /// Processes wait for memory.
    pub memory_is_short: bool,
}

/// Looks at the machine, at most a few times a second.
#[derive(Debug)]
pub struct Machine {
    /// The control group of this process, if there is one.
    group: Option<PathBuf>,
    last: Option<MachineSample>,
    free: Option<f64>,
    look: Option<(Instant, MachineLook)>,
}

#[derive(Clone, Copy, Debug)]
struct MachineSample {
    at: Instant,
    /// Seconds of all cores without work.
    idle: f64,
    /// Seconds of CPU that the control group has used.
    group: Option<f64>,
}

impl Machine {
    pub fn new() -> Self {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = groups.lines().find_map(|line| line.strip_prefix("0::"));
        let group = own.map(|path| Path::new(CGROUPS).join(path.trim_start_matches('/')));
        Self { group, last: None, free: None, look: None }
    }

    /// What is free now.
    pub fn look(&mut self, now: Instant) -> MachineLook {
        if let Some((at, look)) = self.look
            && now - at < LOOK_LASTS
        {
            return look;
        }
        let look = MachineLook { free_cpu: self.free_cpu(now), memory_is_short: self.memory_is_short() };
        self.look = Some((now, look));
        look
    }

    /// The memory that this process and its children may use: that of the machine, or of a control group if that is less.
    pub fn memory(&self) -> Option<u64> {
        let of_machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| memory_total(&text));
        of_machine.into_iter().chain(MemoryGroups::own().least_limit()).min()
    }

    /// The control group, and those that hold it. Each of them may have limits.
    fn groups(&self) -> impl Iterator<Item = &Path> {
        let all = self.group.iter().flat_map(|group| group.ancestors());
        all.take_while(|group| group.starts_with(CGROUPS))
    }

    fn memory_is_short(&self) -> bool {
        let of_group = self.group.as_ref().map(|group| group.join("memory.pressure"));
        let files = of_group.into_iter().chain([PathBuf::from("/proc/pressure/memory")]);
        let texts = files.filter_map(|file| fs::read_to_string(file).ok());
        texts.filter_map(|text| pressure(&text)).any(|percent| percent >= SHORT_OF_MEMORY)
    }

    /// The free cores, as an average of about a second. Before the first span is over, all are free.
    fn free_cpu(&mut self, now: Instant) -> f64 {
        let idle = fs::read_to_string("/proc/stat").ok().and_then(|text| idle_seconds(&text));
        let Some(idle) = idle else { return f64::INFINITY };
        let new = MachineSample { at: now, idle, group: self.group_seconds() };
        let Some(last) = self.last.replace(new) else { return f64::INFINITY };
        let span = (now - last.at).as_secs_f64();
        let of_machine = (new.idle - last.idle) / span;
        let of_group = self
            .quota()
            .zip(new.group.zip(last.group))
            .map(|(quota, (new, last))| quota - (new - last) / span);
        let free = of_group.map_or(of_machine, |of_group| of_group.min(of_machine)).max(0.0);
        let weight = 1.0 - (-span / MEMORY_SECONDS).exp();
        let average = self.free.map_or(free, |before| before + weight * (free - before));
        *self.free.insert(average)
    }

    /// The CPU limit of the control groups, in cores.
    fn quota(&self) -> Option<f64> {
        let read = |group: &Path| fs::read_to_string(group.join("cpu.max")).ok();
        self.groups().filter_map(read).filter_map(|text| cpu_quota(&text)).reduce(f64::min)
    }

    fn group_seconds(&self) -> Option<f64> {
        let text = fs::read_to_string(self.group.as_ref()?.join("cpu.stat")).ok()?;
        let micros: f64 =
            text.lines().find_map(|line| line.strip_prefix("usage_usec "))?.trim().parse().ok()?;
        Some(micros / 1e6)
    }
}

/// The anonymous memory of a process in bytes: resident memory without files, such as the program itself, which all
/// processes share.
pub fn own_bytes(pid: u32) -> Option<u64> {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let mut pages = statm.split_ascii_whitespace().skip(1).map(str::parse::<u64>);
    let (resident, shared) = (pages.next()?.ok()?, pages.next()?.ok()?);
    Some(resident.saturating_sub(shared) * rustix::param::page_size() as u64)
}

/// `MemTotal` of `/proc/meminfo`.
fn memory_total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.split_ascii_whitespace().next()?.parse::<u64>().ok()? << 10)
}

/// The share of the last ten seconds in which some process waited, in percent.
fn pressure(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split(' ').find_map(|field| field.strip_prefix("avg10="))?.parse().ok()
}

/// The fourth number of the first line of `/proc/stat`. Time in which a core waits for a disk is busy here.
fn idle_seconds(stat: &str) -> Option<f64> {
    let ticks: f64 = stat.lines().next()?.split_ascii_whitespace().nth(4)?.parse().ok()?;
    Some(ticks * TICK)
}

/// Microseconds of CPU in a period of microseconds, as in `200000 100000`. `max` is none.
fn cpu_quota(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    Some(quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_kernel_are_understood() {
        assert_eq!(memory_total("MemTotal:       24576 kB\nMemFree: 1 kB\n"), Some(24 << 20));
        let text =
            "some avg10=12.50 avg60=0.00 avg300=0.00 total=0\nfull avg10=99.00 avg60=0 avg300=0 total=0\n";
        assert_eq!(pressure(text), Some(12.5));
        assert_eq!(idle_seconds("cpu  10 0 20 3000 40 0 0 0 0 0\ncpu0 1 2\n"), Some(30.0));
        assert_eq!(cpu_quota("150000 100000\n"), Some(1.5));
        assert_eq!(cpu_quota("max 100000\n"), None);
        for broken in ["", "some", "max", "cpu", "MemTotal:", "some avg10=x"] {
            let all = (memory_total(broken), pressure(broken), idle_seconds(broken), cpu_quota(broken));
            assert_eq!(all, (None, None, None, None), "{broken}");
        }
    }

    #[test]
    fn this_machine_has_memory_and_this_process_uses_some() {
        let mut machine = Machine::new();
        let memory = machine.memory().unwrap();
        let own = own_bytes(std::process::id()).unwrap();
        assert!(own > 100_000 && own < memory, "{own} of {memory}");
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        assert!(machine.look(now).free_cpu.is_infinite(), "not known yet");
        assert!(machine.look(now + second).free_cpu >= 0.0);
    }
}
