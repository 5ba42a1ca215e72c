//! The CPU of the control groups of this process, as the kernel's files show it. Knows no pools and no workers.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The control groups (version 2) of a process: its own first, then those that hold it. Each may have a limit.
#[derive(Clone, Debug)]
pub struct ControlGroups(Vec<PathBuf>);

/// The CPU of a control group that has a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupCpu {
    /// The CPU time that it has used so far.
    pub used: Duration,
    /// How many CPUs it may use.
    pub limit: f64,
}

impl ControlGroups {
    /// Those of this process. `proc` and `cgroups`: the folders with the files of the kernel.
    pub fn read(proc: &Path, cgroups: &Path) -> Self {
        let text = read_to_string(proc.join("self/cgroup")).unwrap_or_default();
        let own = text.lines().find_map(|line| line.strip_prefix("0::"));
        let own = own.map(|path| cgroups.join(path.trim_start_matches('/')));
        let all = own.iter().flat_map(|own| own.ancestors());
        Self(all.take_while(|group| group.starts_with(cgroups)).map(Path::to_owned).collect())
    }

    /// The folder of its own group. `None`: it has none of version 2.
    pub(crate) fn own(&self) -> Option<&Path> {
        self.0.first().map(PathBuf::as_path)
    }

    /// The CPU of each group. `None`: it has no limit.
    pub(crate) fn cpus(&self) -> impl Iterator<Item = Option<GroupCpu>> {
        self.0.iter().map(|group| GroupCpu::of(group))
    }

    /// The groups that have a limit.
    pub fn limited(&self) -> impl Iterator<Item = GroupCpu> {
        self.cpus().flatten()
    }
}

impl GroupCpu {
    fn of(group: &Path) -> Option<Self> {
        let limit = cpu_limit(group)?;
        let stat = read_to_string(group.join("cpu.stat")).ok()?;
        let micros = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
        Some(Self { used: Duration::from_micros(micros.trim().parse().ok()?), limit })
    }

    /// How many CPUs it had left in the seconds since it was read `before`.
    pub(crate) fn left_since(self, before: Self, seconds: f64) -> f64 {
        self.limit - self.used.saturating_sub(before.used).as_secs_f64() / seconds
    }
}

/// The limit of a control group of any version, in CPUs. `None`: it has none.
pub(crate) fn cpu_limit(group: &Path) -> Option<f64> {
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
    use super::*;

    fn groups(all: &[(&str, &str)]) -> (tempfile::TempDir, ControlGroups) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in all {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
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
    fn what_is_missing_or_broken_is_no_limit() {
        for text in ["", "max", "150000", "x 100000", "150000 x"] {
            let files =
                [("proc/self/cgroup", "0::/\n"), ("cgroups/cpu.max", text), ("cgroups/cpu.stat", text)];
            let (_folder, groups) = groups(&files);
            assert_eq!(groups.cpus().collect::<Vec<_>>(), [None], "{text}");
        }
        let (_folder, none) = groups(&[("proc/self/cgroup", "4:memory:/a\n")]);
        assert_eq!((none.own(), none.limited().count()), (None, 0));
    }
}
