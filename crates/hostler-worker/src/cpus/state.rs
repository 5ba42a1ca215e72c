//! The workers' processes with their CPUs at one moment, and the calls to the kernel that move them. Starts no task.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use super::disturbance::{CpuWork, Disturbance};
use super::list::CpuList;
use super::machine::CpuFiles;
use super::placement::{Cores, CpuPhase, CpuWish, Placement, place};
use super::setting::CpuSetting;
use super::threads;

const UPGRADE: &str = "another Hostler takes over, and its workers need the cores too";
const OWN_CHOICE: &str = "its command or the app has chosen the CPUs itself";
const PROGRAMS: &str = "it starts other programs, which would inherit its core";
const UNKNOWN: &str = "it is not known which process serves the requests";

pub(super) type UserId = u64;

/// What the board has to know of a worker's process.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CpuUse {
    pub setting: CpuSetting,
    /// Its number in the pool, from 1.
    pub index: usize,
    pub phase: CpuPhase,
    /// The process that serves requests, if that is known.
    pub pid: Option<u32>,
}

/// The place of a worker, for the status.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShownPlace(Arc<Mutex<Placement>>);

impl ShownPlace {
    /// The CPUs of its main thread, and why.
    pub fn read(&self) -> (Option<String>, Option<String>) {
        let place = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (place.cpus.map(|cpus| cpus.to_string()), place.why)
    }

    fn show(&self, place: Placement) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }
}

#[derive(Debug)]
struct User {
    worker: CpuUse,
    shown: ShownPlace,
    /// The process whose main thread is bound, and its CPUs.
    bound: Option<(u32, CpuList)>,
    /// The process was bound before, so the kernel does not give it new CPUs by itself.
    touched: bool,
    /// Why `"auto"` leaves this process alone, until it ends.
    exempt: Option<&'static str>,
    /// The work at the last look.
    work: Option<CpuWork>,
}

/// All workers' processes.
#[derive(Debug, Default)]
pub(super) struct CpuState {
    files: CpuFiles,
    users: BTreeMap<UserId, User>,
    next: UserId,
    /// How many upgrades keep the workers free.
    holds: i32,
    /// The CPUs that Hostler may use.
    allowed: CpuList,
    cores: Cores,
    /// The time that each CPU has worked.
    worked: BTreeMap<usize, u64>,
    disturbance: Disturbance,
}

impl CpuState {
    /// Returns the number of the new user, and whether it is the first one ever.
    pub fn enter(&mut self, worker: CpuUse, shown: ShownPlace) -> (UserId, bool) {
        let is_first = self.next == 0;
        if is_first {
            self.read_machine();
        }
        self.next += 1;
        let user = User { worker, shown, bound: None, touched: false, exempt: None, work: None };
        self.users.insert(self.next, user);
        self.arrange(Instant::now());
        (self.next, is_first)
    }

    pub fn update(&mut self, id: UserId, worker: CpuUse) {
        if let Some(user) = self.users.get_mut(&id) {
            user.worker = worker;
            self.arrange(Instant::now());
        }
    }

    /// The process has ended, or is about to.
    pub fn leave(&mut self, id: UserId) {
        self.users.remove(&id);
        self.arrange(Instant::now());
    }

    pub fn hold(&mut self, by: i32) {
        self.holds += by;
        self.arrange(Instant::now());
    }

    /// Looks at the CPUs and at each worker. Without a worker that may be bound, there is nothing to see.
    pub fn look(&mut self, now: Instant) {
        if self.users.values().all(|user| user.worker.setting == CpuSetting::Off && !user.touched) {
            return;
        }
        let has_changed = self.read_machine();
        if self.users.values().any(User::waits_for_core) {
            self.read_work();
        }
        self.observe(now);
        for user in self.users.values_mut() {
            user.tidy(&self.allowed, has_changed);
        }
        self.arrange(now);
    }

    /// Returns whether Hostler may use other CPUs than before.
    fn read_machine(&mut self) -> bool {
        let allowed = threads::own().unwrap_or_default();
        let has_changed = allowed != self.allowed;
        if has_changed {
            self.cores.cores = self.files.cores(&allowed);
            self.allowed = allowed;
        }
        self.cores.quota = self.files.quota();
        has_changed
    }

    /// Sorts the cores: those that have worked least since the last look are the first.
    fn read_work(&mut self) {
        let new = self.files.work();
        let before = std::mem::replace(&mut self.worked, new);
        let lately = |cpu: usize| Some(self.worked.get(&cpu)?.saturating_sub(*before.get(&cpu)?));
        // A quarter of a second (25 clock ticks) more or less is no difference.
        self.cores.cores.sort_by_key(|core| core.iter().filter_map(lately).sum::<u64>() / 25);
    }

    fn observe(&mut self, now: Instant) {
        let works: Vec<CpuWork> = self.users.values_mut().filter_map(User::work_since_last_look).collect();
        self.disturbance.observe(works, now);
    }

    /// Asks for the placement, and carries it out: first those that leave CPUs, then those that get some.
    fn arrange(&mut self, now: Instant) {
        let disturbed = match self.holds {
            0 => self.disturbance.reason(now),
            _ => Some(UPGRADE),
        };
        let wishes: Vec<CpuWish<'_>> = self.users.values().map(User::wish).collect();
        let places = place(&self.cores, &wishes, disturbed);
        let mut moves: Vec<(&mut User, Placement)> = self.users.values_mut().zip(places).collect();
        moves.sort_by_key(|(_, place)| Reverse(place.cpus.is_none()));
        for (user, place) in moves {
            let place = user.carry_out(place, &self.allowed);
            user.shown.show(place);
        }
    }
}

impl User {
    fn wish(&self) -> CpuWish<'_> {
        let is_auto = self.worker.setting == CpuSetting::Auto;
        let unknown = (self.worker.pid.is_none() && self.worker.phase == CpuPhase::Serves).then_some(UNKNOWN);
        CpuWish {
            setting: &self.worker.setting,
            index: self.worker.index,
            phase: self.worker.phase,
            has: self.bound.as_ref().map(|(_, cpus)| cpus),
            exempt: self.exempt.or(unknown).filter(|_| is_auto),
        }
    }

    fn waits_for_core(&self) -> bool {
        self.worker.setting == CpuSetting::Auto
            && self.worker.phase == CpuPhase::Serves
            && self.bound.is_none()
    }

    /// The work of a main thread on the core that it has by `"auto"`.
    fn work_since_last_look(&mut self) -> Option<CpuWork> {
        let (pid, _) = self.bound.as_ref().filter(|_| self.worker.setting == CpuSetting::Auto)?;
        let new = threads::work(*pid)?;
        let last = self.work.replace(new)?;
        Some(CpuWork { cpu: new.cpu.saturating_sub(last.cpu), wait: new.wait.saturating_sub(last.wait) })
    }

    /// Returns the place that it has now.
    fn carry_out(&mut self, place: Placement, allowed: &CpuList) -> Placement {
        let wanted = self.worker.pid.zip(place.cpus.clone());
        if self.bound == wanted {
            return place;
        }
        self.free(allowed);
        let Some((pid, cpus)) = wanted else {
            let is_unknown = place.cpus.is_some().then(|| UNKNOWN.to_owned());
            return Placement { cpus: None, why: is_unknown.or(place.why) };
        };
        if self.worker.setting == CpuSetting::Auto && has_chosen(pid, allowed) {
            self.exempt = Some(OWN_CHOICE);
            return Placement { cpus: None, why: Some(OWN_CHOICE.into()) };
        }
        match threads::set(pid, &cpus) {
            Ok(()) => {
                self.touched = true;
                self.bound = Some((pid, cpus));
                self.work = None;
                place
            }
            Err(error) => {
                let why = format!("the system refuses CPU {cpus}: {error}");
                Placement { cpus: None, why: Some(why) }
            }
        }
    }

    /// Gives all CPUs back to its main thread, and to what has inherited its CPUs.
    fn free(&mut self, allowed: &CpuList) {
        if let Some((pid, cpus)) = self.bound.take() {
            // The process may have ended.
            let _ = threads::set(pid, allowed);
            threads::free_others(pid, &cpus, allowed);
        }
    }

    /// Gives all CPUs to the threads and programs that have inherited those of the main thread since the last look. `has_changed`: Hostler may
    /// use other CPUs than before.
    fn tidy(&mut self, allowed: &CpuList, has_changed: bool) {
        match (&self.bound, self.worker.pid) {
            (Some(_), _) if has_changed => self.free(allowed),
            (Some((pid, cpus)), _) => {
                let (pid, cpus) = (*pid, cpus.clone());
                let is_auto = self.worker.setting == CpuSetting::Auto;
                let now = threads::of(pid);
                if is_auto && now.is_some_and(|now| now != cpus) {
                    self.exempt = Some(OWN_CHOICE);
                    self.bound = None;
                } else if threads::free_others(pid, &cpus, allowed) && is_auto {
                    self.exempt = Some(PROGRAMS);
                }
            }
            (None, Some(pid)) if has_changed && self.touched && self.exempt != Some(OWN_CHOICE) => {
                threads::set_all(pid, allowed);
            }
            _ => {}
        }
    }
}

/// Whether a process has chosen its CPUs itself: it has neither those that Hostler might use at the last look (`allowed`) nor those that
/// Hostler may use now. The two can differ, because without a worker that may be bound there is no look.
fn has_chosen(pid: u32, allowed: &CpuList) -> bool {
    let has = threads::of(pid);
    has.as_ref() != Some(allowed) && has != threads::own()
}

#[cfg(test)]
mod tests {
    use super::super::list::MAX_CPU;
    use super::*;

    #[test]
    fn a_worker_with_the_cpus_that_hostler_has_got_lately_has_not_chosen_them() {
        let mut process = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let own = threads::own().unwrap();
        let first: CpuList = own.iter().take(1).collect();
        let with = |setting| CpuUse { setting, index: 1, phase: CpuPhase::Serves, pid: Some(process.id()) };
        let (mut state, shown) = (CpuState::default(), ShownPlace::default());
        let (id, _) = state.enter(with(CpuSetting::Off), shown.clone());
        // At the last look, Hostler had other CPUs. Since then, no worker could be bound.
        let before = CpuList::from_iter([MAX_CPU - 1]);
        state.cores = Cores { cores: vec![first.clone(), before.clone()], quota: None };
        state.allowed = before;
        state.update(id, with(CpuSetting::Auto));
        let bound = threads::of(process.id());
        process.kill().unwrap();
        process.wait().unwrap();
        assert_eq!((shown.read().0, bound), (Some(first.to_string()), Some(first)));
    }
}
