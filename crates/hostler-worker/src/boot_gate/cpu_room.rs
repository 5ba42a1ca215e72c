//! How much CPU is free: of the machine, and of the control group that Hostler runs in. Knows only the kernel's files.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

use crate::control_groups::{ControlGroups, GroupCpu};
use crate::cpus::usable_cpus;

/// The time over which the free CPU is measured.
const WINDOW: Duration = Duration::from_millis(100);
/// A measurement that began longer ago says nothing about now.
const STALE: Duration = Duration::from_secs(1);
/// A boot takes about one core. It may begin if so much of one is free.
const ENOUGH: f64 = 0.75;

/// Measures the free CPU, and subtracts what boots that have just begun will take.
pub(super) struct CpuRoom {
    cores: usize,
    proc: PathBuf,
    groups: ControlGroups,
    began: Option<Reading>,
    /// Cores that were free when they were measured, without those given to boots since.
    free: f64,
}

/// Counters that grow.
struct Reading {
    at: Instant,
    /// The idle time of all cores that Hostler may use. `None`: the system does not count it.
    idle: Option<Duration>,
    /// The control groups that have a limit.
    groups: Vec<GroupCpu>,
    /// How many threads run or wait for a core.
    running: usize,
}

impl CpuRoom {
    pub fn new(cores: usize, proc: &Path, cgroups: &Path) -> Self {
        let groups = ControlGroups::read(proc, cgroups);
        Self { cores: cores.max(1), proc: proc.to_owned(), groups, began: None, free: 0.0 }
    }

    pub fn proc(&self) -> &Path {
        &self.proc
    }

    /// Whether a boot may begin beside so many others that compute.
    pub fn has_for_another(&mut self, computing: usize, now: Instant) -> bool {
        self.look(now);
        computing < self.cores && self.free >= ENOUGH
    }

    /// A boot begins. The next measurement begins now, so that it contains the boot.
    pub fn take(&mut self, now: Instant) {
        self.look(now);
        self.free -= 1.0;
        self.began = Some(self.read(now));
    }

    fn look(&mut self, now: Instant) {
        let is_recent = |reading: &Reading| now - reading.at < STALE;
        match self.began.take().filter(is_recent) {
            Some(began) if now - began.at < WINDOW => self.began = Some(began),
            Some(began) => {
                let reading = self.read(now);
                self.free = self.between(&began, &reading);
                self.began = Some(reading);
            }
            // Nothing was measured just before, so this moment must do.
            None => {
                let reading = self.read(now);
                let others = reading.running.saturating_sub(1);
                self.free = self.cores.saturating_sub(others) as f64;
                self.began = Some(reading);
            }
        }
    }

    fn between(&self, began: &Reading, ended: &Reading) -> f64 {
        let span = (ended.at - began.at).as_secs_f64();
        let idle = began.idle.zip(ended.idle).map(|(began, ended)| {
            let idle = ended.saturating_sub(began);
            idle.as_secs_f64() / span
        });
        let groups = began.groups.iter().zip(&ended.groups);
        let of_groups = groups.map(|(began, ended)| ended.left_since(*began, span));
        of_groups.fold(idle.unwrap_or(self.cores as f64), f64::min)
    }

    fn read(&self, at: Instant) -> Reading {
        let stat = read_to_string(self.proc.join("stat")).unwrap_or_default();
        Reading { at, idle: idle(&stat), groups: self.groups.limited().collect(), running: running(&stat) }
    }
}

/// The idle time in the text of `/proc/stat`, of the cores that Hostler may use.
fn idle(stat: &str) -> Option<Duration> {
    let cpus = usable_cpus(stat);
    let idle: u64 = cpus.iter().map(|cpu| cpu.idle + cpu.disk).sum();
    let seconds = idle as f64 / rustix::param::clock_ticks_per_second() as f64;
    (!cpus.is_empty()).then(|| Duration::from_secs_f64(seconds))
}

fn running(stat: &str) -> usize {
    let line = stat.lines().find_map(|line| line.strip_prefix("procs_running "));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}
