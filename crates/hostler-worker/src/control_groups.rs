//! The control groups of this process and their CPU, as the kernel's files show them. Knows no pools and no workers.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The mount point of the control groups (cgroups) with one controller, such as `memory`, and the path of this process's group below it.
pub(crate) struct Hierarchy {
    mount: PathBuf,
    /// The path of the own group.
    path: String,
    pub is_version_1: bool,
}

/// The control groups of a process, for its CPU: its own group first, then the parents of the group. Each may have a limit.
#[derive(Clone, Debug)]
pub struct ControlGroups(Vec<CpuGroup>);

#[derive(Clone, Debug)]
struct CpuGroup {
    folder: PathBuf,
    /// The folder with the CPU time. In version 1 it may be another one.
    accounting: PathBuf,
}

/// The CPU of a control group that has a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupCpu {
    /// The CPU time that it has used so far.
    pub used: Duration,
    /// How many CPUs it may use.
    pub limit: f64,
}

impl Hierarchy {
    /// In cgroup v1 a controller has a hierarchy of its own, or shares one with a few others. In v2 all controllers share one hierarchy. A
    /// machine may have both versions; then each controller is in one of them.
    pub fn of(controller: &str, proc: &Path, cgroups: &Path) -> Self {
        let text = read_to_string(proc.join("self/cgroup")).unwrap_or_default();
        // `4:cpu,cpuacct:/path` in version 1, and `0::/path` in version 2.
        let lines = || text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
        let old = lines().find(|(names, _)| names.split(',').any(|name| name == controller));
        if let Some((names, path)) = old {
            // Controllers that are together have a folder with all names, and mostly a link for each name.
            let (alone, together) = (cgroups.join(controller), cgroups.join(names));
            let mount = if alone.is_dir() { alone } else { together };
            return Self { mount, path: path.to_owned(), is_version_1: true };
        }
        let path = lines().find(|(names, _)| names.is_empty()).map_or("/", |(_, path)| path);
        // If v1 is mounted as well, v2 is mounted here.
        let unified = cgroups.join("unified");
        let is_beside = lines().any(|(names, _)| !names.is_empty()) && unified.is_dir();
        let mount = if is_beside { unified } else { cgroups.to_owned() };
        Self { mount, path: path.to_owned(), is_version_1: false }
    }

    /// The folders of the own group and of its parents, in this order. In a container the path is often the one outside of the container; then
    /// only the mount point exists.
    pub fn folders(&self) -> Vec<PathBuf> {
        let own = self.mount.join(self.path.trim_start_matches('/'));
        let all = own.ancestors().take_while(|folder| folder.starts_with(&self.mount));
        all.filter(|folder| folder.is_dir()).map(Path::to_owned).collect()
    }
}

impl ControlGroups {
    /// Those of this process. `proc` and `cgroups`: the folders with the files of the kernel.
    pub fn read(proc: &Path, cgroups: &Path) -> Self {
        let (cpu, time) = (Hierarchy::of("cpu", proc, cgroups), Hierarchy::of("cpuacct", proc, cgroups));
        let group = |folder: PathBuf| {
            let below = folder.strip_prefix(&cpu.mount).unwrap_or(&folder);
            CpuGroup { accounting: time.mount.join(below), folder }
        };
        Self(cpu.folders().into_iter().map(group).collect())
    }

    /// The folder of its own group. `None`: the kernel shows none.
    pub(crate) fn own(&self) -> Option<&Path> {
        self.0.first().map(|group| group.folder.as_path())
    }

    /// The CPU of each group. `None`: it has no limit.
    pub(crate) fn cpus(&self) -> impl Iterator<Item = Option<GroupCpu>> {
        self.0.iter().map(GroupCpu::of)
    }

    /// The groups that have a limit.
    pub fn limited(&self) -> impl Iterator<Item = GroupCpu> {
        self.cpus().flatten()
    }

    /// The limits of the groups in CPUs, also where the kernel does not tell the CPU time.
    pub(crate) fn limits(&self) -> impl Iterator<Item = f64> {
        self.0.iter().filter_map(|group| cpu_limit(&group.folder))
    }
}

impl GroupCpu {
    fn of(group: &CpuGroup) -> Option<Self> {
        let limit = cpu_limit(&group.folder)?;
        Some(Self { used: cpu_time(&group.accounting)?, limit })
    }

    /// How many CPUs of its limit the group has not used, on average over the `seconds` since the reading `before`.
    pub(crate) fn left_since(self, before: Self, seconds: f64) -> f64 {
        self.limit - self.used.saturating_sub(before.used).as_secs_f64() / seconds
    }
}

/// The CPU time of a control group of any version.
fn cpu_time(group: &Path) -> Option<Duration> {
    let stat = read_to_string(group.join("cpu.stat")).unwrap_or_default();
    match stat.lines().find_map(|line| line.strip_prefix("usage_usec ")) {
        Some(micros) => micros.trim().parse().ok().map(Duration::from_micros),
        None => {
            let nanos = read_to_string(group.join("cpuacct.usage")).ok()?;
            nanos.trim().parse().ok().map(Duration::from_nanos)
        }
    }
}

/// The limit of a control group of any version, in CPUs. `None`: it has none.
fn cpu_limit(group: &Path) -> Option<f64> {
    let read = |name: &str| read_to_string(group.join(name)).ok();
    let (quota, period) = match read("cpu.max") {
        Some(text) => {
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.to_owned(), period.to_owned())
        }
        None => (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?),
    };
    // `max` and -1: no limit.
    let (quota, period): (f64, f64) = (quota.trim().parse().ok()?, period.trim().parse().ok()?);
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    use hostler_testkit::folder_of;

    use super::*;

    fn groups(all: &[(&str, &str)]) -> (tempfile::TempDir, ControlGroups) {
        let folder = folder_of(all);
        let read = ControlGroups::read(&folder.path().join("proc"), &folder.path().join("cgroups"));
        (folder, read)
    }

    #[test]
    fn each_group_may_have_a_limit() {
        let (folder, groups) = groups(&[
            ("proc/self/cgroup", "0::/a/b\n"),
            ("cgroups/a/b/cpu.max", "max 100000\n"),
            ("cgroups/a/b/cpu.stat", "usage_usec 2500000\nuser_usec 1\n"),
            ("cgroups/a/cpu.max", "150000 100000\n"),
            ("cgroups/a/cpu.stat", "usage_usec 7000000\nuser_usec 1\n"),
            ("cgroups/cpu.max", "400000 100000\n"),
        ]);
        assert_eq!(groups.own(), Some(&*folder.path().join("cgroups/a/b")));
        let limited = GroupCpu { used: Duration::from_secs(7), limit: 1.5 };
        // What the group at the top has used is not told.
        assert_eq!(groups.cpus().collect::<Vec<_>>(), [None, Some(limited), None]);
        assert_eq!(groups.limited().collect::<Vec<_>>(), [limited]);
        let before = GroupCpu { used: Duration::from_secs(6), ..limited };
        assert_eq!(limited.left_since(before, 2.0), 1.0);
    }

    #[test]
    fn groups_of_version_1_have_limits_and_cpu_time_too() {
        // The two controllers are together, as systemd does it.
        let (_folder, together) = groups(&[
            ("proc/self/cgroup", "9:memory:/x\n4:cpu,cpuacct:/docker/1\n1:name=systemd:/y\n0::/z\n"),
            ("cgroups/cpu,cpuacct/docker/1/cpu.cfs_quota_us", "150000\n"),
            ("cgroups/cpu,cpuacct/docker/1/cpu.cfs_period_us", "100000\n"),
            ("cgroups/cpu,cpuacct/docker/1/cpu.stat", "nr_periods 5\nnr_throttled 0\nthrottled_time 0\n"),
            ("cgroups/cpu,cpuacct/docker/1/cpuacct.usage", "7000000000\n"),
            ("cgroups/cpu,cpuacct/docker/cpu.cfs_quota_us", "-1\n"),
            ("cgroups/cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n"),
            ("cgroups/unified/z/cpu.stat", "usage_usec 1\n"),
        ]);
        let limited = GroupCpu { used: Duration::from_secs(7), limit: 1.5 };
        assert_eq!(together.cpus().collect::<Vec<_>>(), [Some(limited), None, None]);
        // Each controller is alone, and a container sees its group at the top.
        let (_folder, alone) = groups(&[
            ("proc/self/cgroup", "4:cpu:/docker/1\n3:cpuacct:/docker/1\n"),
            ("cgroups/cpu/cpu.cfs_quota_us", "150000\n"),
            ("cgroups/cpu/cpu.cfs_period_us", "100000\n"),
            ("cgroups/cpuacct/cpuacct.usage", "7000000000\n"),
        ]);
        assert_eq!(alone.cpus().collect::<Vec<_>>(), [Some(limited)]);
        assert_eq!(alone.limits().collect::<Vec<_>>(), [1.5]);
    }

    #[test]
    fn version_2_beside_version_1_has_a_folder_of_its_own() {
        let (_folder, groups) = groups(&[
            ("proc/self/cgroup", "4:memory:/a\n0::/b\n"),
            ("cgroups/unified/b/cpu.max", "50000 100000\n"),
            ("cgroups/unified/b/cpu.stat", "usage_usec 1000000\n"),
        ]);
        let limited = GroupCpu { used: Duration::from_secs(1), limit: 0.5 };
        assert_eq!(groups.limited().collect::<Vec<_>>(), [limited]);
    }

    #[test]
    fn what_is_missing_or_broken_is_no_limit() {
        for text in ["", "max", "150000", "x 100000", "150000 x"] {
            let files =
                [("proc/self/cgroup", "0::/\n"), ("cgroups/cpu.max", text), ("cgroups/cpu.stat", text)];
            let (_folder, groups) = groups(&files);
            assert_eq!(groups.cpus().collect::<Vec<_>>(), [None], "{text}");
        }
        let (_folder, none) = groups(&[("proc/self/cgroup", "4:memory:/a\n")]);
        assert_eq!((none.own(), none.limited().count()), (None, 0), "no folder is there");
    }
}
