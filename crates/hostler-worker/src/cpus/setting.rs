//! On which CPUs the workers of a pool run, as the operator wants it. Knows no machine.

use super::list::CpuList;

/// On which CPUs the main threads of workers run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CpuSetting {
    /// Each worker on a core of its own, where that is possible and where no other work needs these cores.
    Auto,
    /// On all CPUs that Hostler may use.
    #[default]
    Off,
    /// Worker 1 on the CPUs of the first list, worker 2 on those of the second one, and so on. After the last list, the first one
    /// follows.
    Lists(Vec<CpuList>),
}
