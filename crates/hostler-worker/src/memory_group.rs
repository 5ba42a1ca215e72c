//! The memory of the control groups of this process: limits, use, and the processes that the kernel has killed because none was left. Knows no pools.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

use super::control_groups::Hierarchy;

/// In version 1, a group without a limit has the highest number that the kernel can count.
const NO_LIMIT: u64 = 1 << 60;

/// The names of the files in one version of control groups.
struct GroupFiles {
    limit: &'static str,
    used: &'static str,
    inactive: &'static str,
    kills: &'static str,
}

const VERSION_1: GroupFiles = GroupFiles {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    inactive: "total_inactive_file",
    kills: "memory.oom_control",
};
const VERSION_2: GroupFiles = GroupFiles {
    limit: "memory.max",
    used: "memory.current",
    inactive: "inactive_file",
    kills: "memory.events",
};

/// The control groups of a process: its own first, then those that hold it. Each may have a limit.
pub struct MemoryGroups {
    folders: Vec<PathBuf>,
    names: &'static GroupFiles,
}

/// The use and the limit of one group in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupMemory {
    /// Bytes in use, without the inactive files of the page cache: the kernel can free those at once.
    pub used: u64,
    /// The most that it may use.
    pub limit: u64,
}

impl MemoryGroups {
    /// Those of this process.
    pub fn own() -> Self {
        Self::read(Path::new("/proc"), Path::new("/sys/fs/cgroup"))
    }

    /// The same, with other folders for the files of the kernel.
    pub fn read(proc: &Path, cgroups: &Path) -> Self {
        let groups = Hierarchy::of("memory", proc, cgroups);
        let names = if groups.is_version_1 { &VERSION_1 } else { &VERSION_2 };
        Self { folders: groups.folders(), names }
    }

    /// The groups that have a limit.
    pub fn limited(&self) -> impl Iterator<Item = GroupMemory> {
        self.folders.iter().filter_map(|group| {
            let limit = self.limit(group)?;
            let used = number(&group.join(self.names.used))?;
            let inactive = figure(&group.join("memory.stat"), self.names.inactive).unwrap_or(0);
            Some(GroupMemory { used: used.saturating_sub(inactive), limit })
        })
    }

    /// The lowest limit.
    pub fn least_limit(&self) -> Option<u64> {
        self.folders.iter().filter_map(|group| self.limit(group)).min()
    }

    /// How many processes of this group the kernel has killed so far because no memory was left.
    pub fn kills(&self) -> Option<u64> {
        figure(&self.folders.first()?.join(self.names.kills), "oom_kill")
    }

    fn limit(&self, group: &Path) -> Option<u64> {
        number(&group.join(self.names.limit)).filter(|limit| *limit < NO_LIMIT)
    }
}

/// The number in a file that has only one. `None` for `max` (no limit) and for a missing file.
fn number(file: &Path) -> Option<u64> {
    read_to_string(file).ok()?.trim().parse().ok()
}

/// The number of this name in a file with one on each line.
fn figure(file: &Path, name: &str) -> Option<u64> {
    let text = read_to_string(file).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(key, _)| *key == name)?.1.trim().parse().ok()
}

/// Finds out which processes the kernel has killed because no memory was left: each kill that the kernel counts explains one death.
#[derive(Debug, Default)]
pub(super) struct KillCount {
    explained: u64,
}

impl KillCount {
    /// Whether a kill by the kernel explains the death of one process. `before` and `now`: the kernel's counter of kills at the start of the
    /// process and after its death. A count that has explained one death explains no other.
    pub fn explains(&mut self, before: u64, now: u64) -> bool {
        let known = self.explained.max(before);
        let is_new = now > known;
        self.explained = known + u64::from(is_new);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use hostler_testkit::folder_of;

    use super::*;

    fn groups(all: &[(&str, &str)]) -> (tempfile::TempDir, MemoryGroups) {
        let folder = folder_of(all);
        let read = MemoryGroups::read(&folder.path().join("proc"), &folder.path().join("cgroup"));
        (folder, read)
    }

    #[test]
    fn both_versions_tell_the_limit_the_use_and_the_kills() {
        let (_folder, new) = groups(&[
            ("proc/self/cgroup", "0::/a/b\n"),
            ("cgroup/a/b/memory.max", "max\n"),
            ("cgroup/a/b/memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 0\n"),
            ("cgroup/a/memory.max", "1000\n"),
            ("cgroup/a/memory.current", "900\n"),
            ("cgroup/a/memory.stat", "anon 1\ninactive_file 300\n"),
        ]);
        assert_eq!(new.limited().collect::<Vec<_>>(), [GroupMemory { used: 600, limit: 1000 }]);
        assert_eq!((new.least_limit(), new.kills()), (Some(1000), Some(2)));
        let (_folder, old) = groups(&[
            ("proc/self/cgroup", "4:memory:/a\n3:cpu,cpuacct:/\n0::/\n"),
            ("cgroup/memory/a/memory.limit_in_bytes", "2000\n"),
            ("cgroup/memory/a/memory.usage_in_bytes", "1500\n"),
            ("cgroup/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 400\n"),
            ("cgroup/memory/a/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n"),
            ("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("cgroup/memory/memory.usage_in_bytes", "1\n"),
        ]);
        assert_eq!(old.limited().collect::<Vec<_>>(), [GroupMemory { used: 1100, limit: 2000 }]);
        assert_eq!((old.least_limit(), old.kills()), (Some(2000), Some(5)));
        // In a container only the top is there.
        let (_folder, inside) = groups(&[
            ("proc/self/cgroup", "4:memory:/docker/0123\n"),
            ("cgroup/memory/memory.limit_in_bytes", "3000\n"),
        ]);
        assert_eq!((inside.least_limit(), inside.kills()), (Some(3000), None));
    }

    #[test]
    fn each_kill_explains_one_death_and_none_of_a_process_that_was_started_later() {
        let mut count = KillCount::default();
        assert!(!count.explains(2, 2));
        assert!(count.explains(2, 4) && count.explains(2, 4));
        assert!(!count.explains(2, 4), "both are explained");
        assert!(!count.explains(5, 5) && count.explains(5, 6));
    }
}
