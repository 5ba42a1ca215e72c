//! The CPUs that Hostler may use: the kernel's files about cores and control groups. Knows no worker.

use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::path::PathBuf;

use super::list::CpuList;
use super::ticks::all_cpus;
use crate::control_groups::ControlGroups;

/// Where the kernel's files are.
#[derive(Clone, Debug)]
pub(super) struct CpuFiles {
    pub cpus: PathBuf,
    pub proc: PathBuf,
    pub cgroups: PathBuf,
}

impl Default for CpuFiles {
    fn default() -> Self {
        Self {
            cpus: "/sys/devices/system/cpu".into(),
            proc: "/proc".into(),
            cgroups: "/sys/fs/cgroup".into(),
        }
    }
}

impl CpuFiles {
    /// The CPUs of each core. A CPU whose core the kernel does not tell is a core by itself.
    pub fn cores(&self, allowed: &CpuList) -> Vec<CpuList> {
        let mut siblings: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for cpu in allowed.iter() {
            let file = self.cpus.join(format!("cpu{cpu}/topology/thread_siblings_list"));
            let list = read_to_string(file).ok().and_then(|text| text.trim().parse::<CpuList>().ok());
            let core = list.and_then(|list| list.iter().next()).unwrap_or(cpu);
            siblings.entry(core).or_default().push(cpu);
        }
        siblings.into_values().map(CpuList::from_iter).collect()
    }

    /// The time that each CPU has worked, in clock ticks.
    pub fn work(&self) -> BTreeMap<usize, u64> {
        let text = read_to_string(self.proc.join("stat")).unwrap_or_default();
        all_cpus(&text).map(|one| (one.cpu, one.busy)).collect()
    }

    /// The lowest limit of the control groups of this process, in CPUs.
    pub fn quota(&self) -> Option<f64> {
        ControlGroups::read(&self.proc, &self.cgroups).limits().reduce(f64::min)
    }
}

#[cfg(test)]
mod tests {
    use hostler_testkit::folder_of;

    use super::*;

    fn files(all: &[(&str, &str)]) -> (tempfile::TempDir, CpuFiles) {
        let folder = folder_of(all);
        let at = |name: &str| folder.path().join(name);
        let files = CpuFiles { cpus: at("cpus"), proc: at("proc"), cgroups: at("cgroups") };
        (folder, files)
    }

    fn shown(cores: &[CpuList]) -> Vec<String> {
        cores.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn hyperthreads_of_one_core_are_one_core_and_cpus_that_are_not_allowed_do_not_count() {
        let siblings = ["0,4", "1,5", "2-3", "2-3", "0,4", "1,5"];
        let written: Vec<(String, &str)> = siblings
            .iter()
            .enumerate()
            .map(|(cpu, list)| (format!("cpus/cpu{cpu}/topology/thread_siblings_list"), *list))
            .collect();
        let written: Vec<(&str, &str)> = written.iter().map(|(name, list)| (name.as_str(), *list)).collect();
        let (_folder, files) = files(&written);
        assert_eq!(shown(&files.cores(&"0-5".parse().unwrap())), ["0,4", "1,5", "2,3"]);
        assert_eq!(shown(&files.cores(&"1,3-5".parse().unwrap())), ["4", "1,5", "3"]);
        assert_eq!(shown(&files.cores(&"6-7".parse().unwrap())), ["6", "7"], "the kernel does not tell");
    }

    #[test]
    fn limits_of_control_groups_of_both_versions_are_read() {
        let quota = |all: &[(&str, &str)]| {
            let (_folder, files) = files(all);
            files.quota()
        };
        let own = ("proc/self/cgroup", "0::/a/b\n");
        assert_eq!(quota(&[]), None);
        assert_eq!(quota(&[own, ("cgroups/a/b/cpu.max", "max 100000\n")]), None);
        assert_eq!(quota(&[own, ("cgroups/a/b/cpu.max", "150000 100000\n")]), Some(1.5));
        assert_eq!(
            quota(&[own, ("cgroups/a/b/cpu.max", "400000 100000"), ("cgroups/a/cpu.max", "50000 100000")]),
            Some(0.5),
            "the group above"
        );
        assert_eq!(quota(&[("proc/self/cgroup", "0::/\n"), ("cgroups/cpu.max", "200000 100000")]), Some(2.0));
        let old = ("proc/self/cgroup", "9:memory:/x\n1:cpu,cpuacct:/docker/1\n0::/\n");
        let period = ("cgroups/cpu,cpuacct/docker/1/cpu.cfs_period_us", "100000\n");
        let quota_of = |quota| ("cgroups/cpu,cpuacct/docker/1/cpu.cfs_quota_us", quota);
        assert_eq!(quota(&[old, period, quota_of("-1\n")]), None);
        assert_eq!(quota(&[old, period, quota_of("250000\n")]), Some(2.5));
        assert_eq!(quota(&[old, quota_of("250000\n")]), None, "half of the files");
    }
}
