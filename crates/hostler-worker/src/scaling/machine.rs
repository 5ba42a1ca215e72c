//! The CPU and the memory of the machine, or of the control group that limits this process. Knows no pool.
//!
//! Control groups of version 2 are read as the kernel mounts them, of version 1 only the memory. Where a file is
//! missing, the figures of the whole machine count.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

use crate::control_groups::{ControlGroups, GroupCpu};
use crate::cpus::usable_cpus;
use crate::memory_group::MemoryGroups;

/// Processes wait for memory if they have waited for this many percent of the last ten seconds.
const SHORT_OF_MEMORY: f64 = 10.0;
/// Looks in a shorter time share their figures.
const LOOK_LASTS: Duration = Duration::from_millis(200);
/// The averages forget within about this many seconds.
const MEMORY_SECONDS: f64 = 1.0;
/// A sample that is older than this says nothing about now. While all pools sleep, no pool looks.
const STALE: Duration = Duration::from_secs(2);

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
    proc: PathBuf,
    groups: ControlGroups,
    last: Option<MachineSample>,
    free: Option<f64>,
    look: Option<(Instant, MachineLook)>,
}

#[derive(Clone, Debug)]
struct MachineSample {
    at: Instant,
    /// Seconds without work of each CPU that this process may use.
    idle: BTreeMap<usize, f64>,
    /// The CPU of each control group. `None`: it has no limit.
    groups: Vec<Option<GroupCpu>>,
}

impl Machine {
    pub fn new() -> Self {
        Self::at(Path::new("/proc"), Path::new(CGROUPS))
    }

    /// The same, with other folders for the files of the kernel.
    fn at(proc: &Path, cgroups: &Path) -> Self {
        let groups = ControlGroups::read(proc, cgroups);
        Self { proc: proc.to_owned(), groups, last: None, free: None, look: None }
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
    pub fn memory() -> Option<u64> {
        let of_machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| memory_total(&text));
        of_machine.into_iter().chain(MemoryGroups::own().least_limit()).min()
    }

    fn memory_is_short(&self) -> bool {
        let of_group = self.groups.own().map(|group| group.join("memory.pressure"));
        let files = of_group.into_iter().chain([self.proc.join("pressure/memory")]);
        let texts = files.filter_map(|file| fs::read_to_string(file).ok());
        texts.filter_map(|text| pressure(&text)).any(|percent| percent >= SHORT_OF_MEMORY)
    }

    /// The free cores, as an average of about a second. Before the first span is over, all are free.
    fn free_cpu(&mut self, now: Instant) -> f64 {
        let Some(new) = self.sample(now) else { return f64::INFINITY };
        let Some(last) = self.last.replace(new.clone()).filter(|last| now - last.at <= STALE) else {
            self.free = None;
            return f64::INFINITY;
        };
        let span = (now - last.at).as_secs_f64();
        let free = new.free_since(&last, span).max(0.0);
        let weight = 1.0 - (-span / MEMORY_SECONDS).exp();
        let average = self.free.map_or(free, |before| before + weight * (free - before));
        *self.free.insert(average)
    }

    /// `None`: the system does not count the time of its CPUs.
    fn sample(&self, at: Instant) -> Option<MachineSample> {
        let stat = fs::read_to_string(self.proc.join("stat")).ok()?;
        // Time in which a core waits for a disk is busy here.
        let idle: BTreeMap<usize, f64> =
            usable_cpus(&stat).into_iter().map(|cpu| (cpu.cpu, cpu.idle as f64 * TICK)).collect();
        let groups = self.groups.cpus().collect();
        (!idle.is_empty()).then_some(MachineSample { at, idle, groups })
    }
}

impl MachineSample {
    /// The cores that were free since the sample before: of the CPUs, or of the control group that has the least left.
    fn free_since(&self, last: &Self, span: f64) -> f64 {
        // A CPU that has come since says nothing yet.
        let of_cpu = |(cpu, idle): (&usize, &f64)| Some(idle - last.idle.get(cpu)?);
        let of_machine = self.idle.iter().filter_map(of_cpu).sum::<f64>() / span;
        let groups = self.groups.iter().zip(&last.groups);
        let of_groups = groups.filter_map(|(new, last)| Some((*new)?.left_since((*last)?, span)));
        of_groups.fold(of_machine, f64::min)
    }
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

#[cfg(test)]
mod tests {
    use hostler_testkit::{folder_of, write_files};

    use super::*;
    use crate::process_files::own_bytes;

    #[test]
    fn the_files_of_the_kernel_are_understood() {
        assert_eq!(memory_total("MemTotal:       24576 kB\nMemFree: 1 kB\n"), Some(24 << 20));
        let text =
            "some avg10=12.50 avg60=0.00 avg300=0.00 total=0\nfull avg10=99.00 avg60=0 avg300=0 total=0\n";
        assert_eq!(pressure(text), Some(12.5));
        for broken in ["", "some", "max", "cpu", "MemTotal:", "some avg10=x"] {
            assert_eq!((memory_total(broken), pressure(broken)), (None, None), "{broken}");
        }
    }

    /// A machine with files of its own. Each look is a second after the one before.
    struct KernelFiles(tempfile::TempDir, Machine, Instant);

    impl KernelFiles {
        fn new(all: &[(&str, &str)]) -> Self {
            let folder = folder_of(all);
            let machine = Machine::at(&folder.path().join("proc"), &folder.path().join("cgroups"));
            Self(folder, machine, Instant::now())
        }

        fn free(&mut self, all: &[(&str, &str)]) -> f64 {
            write_files(self.0.path(), all);
            self.2 += Duration::from_secs(1);
            self.1.look(self.2).free_cpu
        }
    }

    /// The text of `/proc/stat`, with these idle ticks of a CPU that this process may use and of one that it may not.
    fn stat(own: u64, other: u64) -> String {
        let usable = rustix::thread::sched_getaffinity(None).unwrap();
        let cpu = (0..1024).find(|&cpu| usable.is_set(cpu)).unwrap();
        format!("cpu  1 0 0 1\ncpu{cpu} 7 0 0 {own} 0 0 0 0\ncpu99999 7 0 0 {other} 0 0 0 0\n")
    }

    #[test]
    fn only_cpus_that_this_process_may_use_are_free() {
        let mut files = KernelFiles::new(&[]);
        assert!(files.free(&[("proc/stat", stat(100, 100).as_str())]).is_infinite(), "not known yet");
        assert_eq!(
            files.free(&[("proc/stat", stat(150, 900).as_str())]),
            0.5,
            "others have the rest of the machine"
        );
        let mut files = KernelFiles::new(&[]);
        for _ in 0..3 {
            assert!(files.free(&[("proc/stat", "cpu  0 0 0 0\ncpu0 0 0 0 0\n")]).is_infinite(), "a sandbox");
        }
    }

    #[test]
    fn the_figures_of_an_hour_without_a_look_are_not_those_of_now() {
        let mut files = KernelFiles::new(&[("proc/stat", stat(0, 0).as_str())]);
        files.free(&[]);
        assert_eq!(files.free(&[("proc/stat", stat(100, 0).as_str())]), 1.0);
        files.2 += Duration::from_secs(3600);
        assert!(files.free(&[("proc/stat", stat(360_000, 0).as_str())]).is_infinite(), "not known yet");
        assert_eq!(files.free(&[]), 0.0, "now it computes");
    }

    #[test]
    fn each_control_group_has_its_own_limit_and_its_own_use() {
        let (top, usage) = ("cgroups/a/cpu.max", |micros: u64| format!("usage_usec {micros}\nuser_usec 1\n"));
        let mut files = KernelFiles::new(&[
            ("proc/self/cgroup", "0::/a/b\n"),
            (top, "150000 100000\n"),
            ("cgroups/a/b/cpu.max", "max 100000\n"),
        ]);
        files.free(&[("proc/stat", stat(0, 0).as_str()), ("cgroups/a/cpu.stat", usage(0).as_str())]);
        // Another group below it has used most. Hostler's own has used nothing.
        let free = files
            .free(&[("proc/stat", stat(100, 0).as_str()), ("cgroups/a/cpu.stat", usage(1_250_000).as_str())]);
        assert_eq!(free, 0.25);
    }

    #[test]
    fn this_machine_has_memory_and_this_process_uses_some() {
        let mut machine = Machine::new();
        let memory = Machine::memory().unwrap();
        let own = own_bytes(std::process::id()).unwrap();
        assert!(own > 100_000 && own < memory, "{own} of {memory}");
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        assert!(machine.look(now).free_cpu.is_infinite(), "not known yet");
        assert!(machine.look(now + second).free_cpu >= 0.0);
    }
}
