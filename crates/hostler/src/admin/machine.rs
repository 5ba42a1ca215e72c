//! What the kernel says about the CPUs and the memory that Hostler and its workers share. Knows no pools.

use std::fs::read_to_string;
use std::path::PathBuf;

use hostler_worker::{ControlGroups, MemoryGroups};
use serde::Serialize;

/// The machine, or the control group that limits Hostler. Times are counters that only grow.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MachineStatus {
    /// CPUs that Hostler and its workers may use: those of the machine, or the limit of the control group.
    pub cpus: Option<f64>,
    /// Time in which these CPUs were busy since the machine started, with the work of other programs.
    pub busy_ms: Option<u64>,
    /// CPU time of the control group, if it has a limit of CPU below the number of CPUs.
    pub group_cpu_ms: Option<u64>,
    /// Bytes in use of the machine or, if it has a limit, of the control group, without what the kernel can free at once.
    pub memory_used: Option<u64>,
    /// How many bytes there are.
    pub memory_limit: Option<u64>,
    /// Free bytes of the disk of `server.temp_dir`.
    pub temp_free: Option<u64>,
}

/// Where the kernel's files are.
struct MachineFiles {
    proc: PathBuf,
    cgroups: PathBuf,
}

impl MachineStatus {
    /// The figures of this moment, and that of the disk.
    pub fn now(temp_free: Option<u64>) -> Self {
        let files = MachineFiles { proc: "/proc".into(), cgroups: "/sys/fs/cgroup".into() };
        Self { temp_free, ..files.read() }
    }
}

impl MachineFiles {
    fn read(&self) -> MachineStatus {
        let (cpus, busy_ms) = self.cpus().unzip();
        let groups = ControlGroups::read(&self.proc, &self.cgroups);
        // A limit that is not below the number of CPUs limits nothing, so it does not count.
        let limited = groups.limited().filter(|group| cpus.is_none_or(|cpus| group.limit < cpus));
        let lowest = limited.reduce(|a, b| if b.limit < a.limit { b } else { a });
        let (limit, group_cpu_ms) = lowest.map(|group| (group.limit, group.used.as_millis() as u64)).unzip();
        let (memory_used, memory_limit) = self.memory().unzip();
        let cpus = limit.into_iter().chain(cpus).reduce(f64::min);
        MachineStatus { cpus, busy_ms, group_cpu_ms, memory_used, memory_limit, temp_free: None }
    }

    /// The number of usable CPUs, and the time in which they were busy.
    fn cpus(&self) -> Option<(f64, u64)> {
        let stat = read_to_string(self.proc.join("stat")).ok()?;
        let cpus = hostler_worker::usable_cpus(&stat);
        let busy: u64 = cpus.iter().map(|cpu| cpu.busy).sum();
        let ticks_per_second = rustix::param::clock_ticks_per_second();
        (!cpus.is_empty()).then(|| (cpus.len() as f64, busy * 1000 / ticks_per_second.max(1)))
    }

    /// Used bytes and the limit: of the machine or of the control group, whichever has less left.
    fn memory(&self) -> Option<(u64, u64)> {
        let meminfo = read_to_string(self.proc.join("meminfo")).unwrap_or_default();
        let total = kibibytes(&meminfo, "MemTotal:");
        let of_machine = total
            .zip(kibibytes(&meminfo, "MemAvailable:"))
            .map(|(total, available)| (total.saturating_sub(available), total));
        let groups = MemoryGroups::read(&self.proc, &self.cgroups);
        let of_groups = groups.limited().map(|group| (group.used, group.limit));
        of_machine.into_iter().chain(of_groups).min_by_key(|(used, limit)| limit.saturating_sub(*used))
    }
}

fn kibibytes(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_ascii_whitespace().next()?.parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use hostler_testkit::folder_of;

    use super::*;

    fn read(all: &[(&str, &str)]) -> MachineStatus {
        let folder = folder_of(all);
        MachineFiles { proc: folder.path().join("proc"), cgroups: folder.path().join("cgroups") }.read()
    }

    const MEMINFO: (&str, &str) =
        ("proc/meminfo", "MemTotal:       4096 kB\nMemFree: 1 kB\nMemAvailable: 1024 kB\n");

    #[test]
    fn the_lower_limit_counts_of_the_machine_and_its_control_groups() {
        let of_machine = read(&[MEMINFO]);
        assert_eq!((of_machine.memory_used, of_machine.memory_limit), (Some(3 << 20), Some(4 << 20)));
        let limited = read(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/a/b\n"),
            ("cgroups/a/b/memory.max", "max\n"),
            ("cgroups/a/memory.max", "1000000\n"),
            ("cgroups/a/memory.current", "900000\n"),
            ("cgroups/a/memory.stat", "anon 1\ninactive_file 300000\n"),
            ("cgroups/a/b/cpu.max", "50000 100000\n"),
            ("cgroups/a/b/cpu.stat", "usage_usec 7000000\nuser_usec 1\n"),
        ]);
        assert_eq!((limited.memory_used, limited.memory_limit), (Some(600_000), Some(1_000_000)));
        assert_eq!((limited.cpus, limited.group_cpu_ms), (Some(0.5), Some(7000)));
        let own = rustix::thread::sched_getaffinity(None).unwrap();
        let cpu = (0..1024).find(|&cpu| own.is_set(cpu)).unwrap();
        let stat = format!("cpu{cpu} 100 0 0 1 0 0 0 0\ncpu99999 1 0 0 1\n");
        let above = read(&[
            ("proc/stat", stat.as_str()),
            ("proc/self/cgroup", "0::/a\n"),
            ("cgroups/a/cpu.max", "200000 100000\n"),
            ("cgroups/a/cpu.stat", "usage_usec 7000000\n"),
        ]);
        let figures = (above.cpus, above.group_cpu_ms, above.busy_ms);
        assert_eq!(figures, (Some(1.0), None, Some(1000)), "no limit, with one CPU");
        let by_version_1 = read(&[
            MEMINFO,
            ("proc/self/cgroup", "4:memory:/a\n0::/\n"),
            ("cgroups/memory/a/memory.limit_in_bytes", "1000000\n"),
            ("cgroups/memory/a/memory.usage_in_bytes", "900000\n"),
        ]);
        assert_eq!((by_version_1.memory_used, by_version_1.memory_limit), (Some(900_000), Some(1_000_000)));
    }

    #[test]
    fn missing_files_give_no_figures() {
        assert_eq!(read(&[]), MachineStatus::default());
    }

    #[test]
    fn this_machine_has_cpus_and_memory() {
        let machine = MachineStatus::now(None);
        assert!(machine.cpus.unwrap() > 0.0 && machine.busy_ms.unwrap() > 0);
        assert!(machine.memory_used.unwrap() < machine.memory_limit.unwrap());
    }
}
