//! Which worker gets which CPUs: a pure function. Knows no process and no kernel.

use super::list::CpuList;
use super::setting::CpuSetting;

/// The CPUs that Hostler may use.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cores {
    /// The CPUs of each physical core. The first cores are the better ones.
    pub cores: Vec<CpuList>,
    /// The CPU time that the control group allows, in CPUs.
    pub quota: Option<f64>,
}

impl Cores {
    fn cpus(&self) -> usize {
        self.cores.iter().map(CpuList::len).sum()
    }
}

/// What a worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CpuPhase {
    /// It boots.
    Boots,
    /// It gets requests.
    Serves,
    /// It gets no requests: a spare, or a worker that finishes its last ones.
    Rests,
}

/// A worker, as far as its place depends on it.
#[derive(Clone, Debug)]
pub(super) struct CpuWish<'a> {
    pub setting: &'a CpuSetting,
    /// Its number in the pool, from 1.
    pub index: usize,
    pub phase: CpuPhase,
    /// The CPUs that it has now.
    pub has: Option<&'a CpuList>,
    /// Why this worker must keep all CPUs with `"auto"`.
    pub exempt: Option<&'a str>,
}

/// The place of a worker's main thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Placement {
    /// `None`: all CPUs that Hostler may use.
    pub cpus: Option<CpuList>,
    /// Why the worker has these CPUs, as a sentence. `None` if this needs no explanation.
    pub why: Option<String>,
}

/// A place for each worker, in the same order. `disturbed`: why no worker with `"auto"` may have a core of its own for now.
pub(super) fn place(cores: &Cores, wishes: &[CpuWish<'_>], disturbed: Option<&str>) -> Vec<Placement> {
    let listed: Vec<Option<&CpuList>> = wishes.iter().map(list_of).collect();
    let is_free = |core: &&CpuList| !listed.iter().flatten().any(|list| list.overlaps(core));
    let free: Vec<&CpuList> = cores.cores.iter().filter(is_free).collect();
    let refusal = refusal(cores, wishes, free.len()).or(disturbed.map(String::from));
    let wants = |wish: &CpuWish<'_>| *wish.setting == CpuSetting::Auto && wish.phase == CpuPhase::Serves;
    let keeps: Vec<Option<&CpuList>> =
        wishes.iter().map(|wish| wish.has.filter(|has| wants(wish) && free.contains(has))).collect();
    let mut left = free.iter().filter(|core| !keeps.contains(&Some(core)));
    let mut taken: Vec<&CpuList> = Vec::new();
    let mut places = Vec::new();
    for ((wish, list), keeps) in wishes.iter().zip(&listed).zip(&keeps) {
        let why = wish.exempt.map(String::from).or(refusal.clone());
        places.push(match (wish.setting, list, why) {
            (CpuSetting::Lists(_), list, _) => Placement { cpus: list.cloned(), why: None },
            (CpuSetting::Auto, _, None) if wants(wish) => {
                // Two workers have the same core only if it was named in a list before.
                let core = keeps.filter(|core| !taken.contains(core)).or_else(|| left.next().copied());
                taken.extend(core);
                Placement { cpus: core.cloned(), why: Some("each worker has a core of its own".into()) }
            }
            (CpuSetting::Auto, _, why) if wish.phase != CpuPhase::Rests => Placement { cpus: None, why },
            _ => Placement::default(),
        });
    }
    places
}

fn list_of<'a>(wish: &CpuWish<'a>) -> Option<&'a CpuList> {
    match wish.setting {
        CpuSetting::Lists(lists) if wish.phase == CpuPhase::Serves => {
            lists.get((wish.index - 1).checked_rem(lists.len())?)
        }
        _ => None,
    }
}

/// Why no worker with `"auto"` can have a core of its own.
fn refusal(cores: &Cores, wishes: &[CpuWish<'_>], free: usize) -> Option<String> {
    if let Some(quota) = cores.quota.filter(|quota| *quota < cores.cpus() as f64) {
        let quota = (quota * 100.0).round() / 100.0;
        return Some(format!(
            "the CPU limit of the control group ({quota}) is less than the {} CPUs, so other programs use them too",
            cores.cpus()
        ));
    }
    if cores.cores.len() < 2 {
        return Some("there is only one core".into());
    }
    if wishes.iter().any(|wish| wish.phase == CpuPhase::Boots) {
        return Some("a worker boots, and takes any core that is idle".into());
    }
    let serving =
        wishes.iter().filter(|wish| wish.phase == CpuPhase::Serves && list_of(wish).is_none()).count();
    (serving > free).then(|| match cores.cores.len() - free {
        0 => format!("{serving} workers share {free} cores"),
        _ => format!("{serving} workers share the {free} cores that no list names"),
    })
}

#[cfg(test)]
#[path = "placement/tests.rs"]
mod tests;
