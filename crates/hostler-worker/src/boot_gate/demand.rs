//! Whether the processes of a boot want the CPU, or wait for something else. Knows only the kernel's files.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;

use crate::main_thread::times;

/// The time over which the demand is measured.
const WINDOW: Duration = Duration::from_millis(100);
/// Main threads that want the CPU for less than this share of the time wait for something else.
const LOW: f64 = 0.2;
/// The most processes of one boot that are looked at. Example: npm, a shell and node are three.
const MOST_PROCESSES: usize = 16;

/// How much the main threads of a process and its children want the CPU.
pub(super) struct Demand {
    pid: u32,
    proc: PathBuf,
    began: Option<(Instant, Duration)>,
    is_high: bool,
}

impl Demand {
    pub fn of(pid: u32, proc: PathBuf) -> Self {
        Self { pid, proc, began: None, is_high: true }
    }

    /// True until the boot was seen to wait.
    pub fn is_high(&self) -> bool {
        self.is_high
    }

    pub fn look(&mut self, now: Instant) {
        if self.began.is_some_and(|(at, _)| now - at < WINDOW) {
            return;
        }
        let wanted = self.wanted();
        if let (Some((at, before)), Some(wanted)) = (self.began, wanted) {
            // The sum gets smaller when a process ends. Then its boot goes on with others.
            let share = |more: Duration| more.as_secs_f64() / (now - at).as_secs_f64();
            self.is_high = wanted.checked_sub(before).is_none_or(|more| share(more) >= LOW);
        }
        self.began = wanted.map(|wanted| (now, wanted));
    }

    /// The time that the main threads have run or have waited for a core. `None`: the system does not tell.
    fn wanted(&self) -> Option<Duration> {
        let (mut pids, mut sum) = (vec![self.pid], Duration::ZERO);
        for next in 0..MOST_PROCESSES {
            let Some(&pid) = pids.get(next) else { break };
            let folder = self.proc.join(pid.to_string());
            match std::fs::read(folder.join("schedstat")).ok().and_then(|text| times(&text)) {
                Some((cpu, delay)) => sum += cpu + delay,
                // A child has ended meanwhile.
                None if next > 0 => continue,
                None => return None,
            }
            let children = std::fs::read_to_string(folder.join(format!("task/{pid}/children"))).ok()?;
            pids.extend(children.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        Some(sum)
    }
}
