//! The time of each CPU that this process may use, in the text of `/proc/stat`. Knows no worker.

use super::list::CpuList;
use super::threads;

/// What one CPU has done since the machine started, in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTicks {
    /// Its number.
    pub cpu: usize,
    /// It worked. The time that other virtual machines have taken counts as well.
    pub busy: u64,
    /// It had nothing to do.
    pub idle: u64,
    /// It had nothing to do, and a program waited for a disk.
    pub disk: u64,
}

/// All CPUs in the text of `/proc/stat`.
pub(super) fn all_cpus(stat: &str) -> impl Iterator<Item = CpuTicks> {
    stat.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
        // user, nice, system, idle, iowait, irq, softirq, steal. What follows is in the first two already.
        let ticks: Vec<u64> = words.take(8).filter_map(|ticks| ticks.parse().ok()).collect();
        let nth = |nth: usize| ticks.get(nth).copied().unwrap_or(0);
        let (idle, disk) = (nth(3), nth(4));
        Some(CpuTicks { cpu, busy: ticks.iter().sum::<u64>() - idle - disk, idle, disk })
    })
}

/// Those that this process may use. Empty if the system does not count the time: some sandboxes show zeros only.
pub fn usable_cpus(stat: &str) -> Vec<CpuTicks> {
    usable(stat, threads::own().as_ref())
}

fn usable(stat: &str, own: Option<&CpuList>) -> Vec<CpuTicks> {
    let mut all: Vec<CpuTicks> = all_cpus(stat).collect();
    if all.iter().all(|one| one.busy + one.idle + one.disk == 0) {
        return Vec::new();
    }
    // LXCFS shows a container only the CPUs that it may use, and numbers them anew.
    let has_own_only = own.is_some_and(|own| all.iter().map(|one| one.cpu).eq(0..own.len()));
    all.retain(|one| has_own_only || own.is_none_or(|own| own.contains(one.cpu)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "cpu  9 9 9 9 9\ncpu0 1 2 3 1000 500 6 7 8 9 9\ncpu1 4 0 0 1 1 0 0 0 0 0\ncpu2 5 0 0 2 1\nintr 1\n";

    fn numbers(stat: &str, own: &str) -> Vec<usize> {
        usable(stat, Some(&own.parse().unwrap())).iter().map(|one| one.cpu).collect()
    }

    #[test]
    fn the_time_of_each_cpu_is_read() {
        let all: Vec<_> = all_cpus(STAT).map(|one| (one.cpu, one.busy, one.idle, one.disk)).collect();
        assert_eq!(all, [(0, 27, 1000, 500), (1, 4, 1, 1), (2, 5, 2, 1)]);
    }

    #[test]
    fn only_cpus_that_this_process_may_use_count_whatever_their_numbers_are() {
        assert_eq!(usable(STAT, None).len(), 3);
        assert_eq!(numbers(STAT, "1-2"), [1, 2], "a cpuset");
        assert_eq!(numbers(STAT, "0-2"), [0, 1, 2]);
        assert_eq!(numbers(STAT, "4-6"), [0, 1, 2], "LXCFS has numbered them anew");
        assert_eq!(numbers("cpu  0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\n", "0"), [0; 0], "nothing is counted");
    }
}
