//! Whether workers wait for the cores that they have for themselves, so that the cores are no advantage. Knows no process.

use std::time::Duration;

use tokio::time::Instant;

/// A worker is disturbed if it waits for its core for more than this share of the time that it wants to compute. Example: with one other busy
/// program of the same weight on the core, the share is 0.5.
const LIMIT: f64 = 0.4;
/// A worker that wanted to compute for less than this in a round is not counted.
const LEAST_WORK: Duration = Duration::from_millis(100);
/// So many disturbed rounds in a row are no accident.
const ROUNDS: u32 = 3;
/// How long the workers are without cores of their own at first. Each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(20 * 60);
/// If the last pause ended at least this long ago, the next one is as short as the first.
const FORGET: Duration = Duration::from_secs(10 * 60);

/// What the main thread of a worker did in one round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuWork {
    /// How long it computed.
    pub cpu: Duration,
    /// How long it was ready to compute and waited for a CPU.
    pub wait: Duration,
}

impl CpuWork {
    fn wait_share(self) -> Option<f64> {
        let all = self.cpu + self.wait;
        (all >= LEAST_WORK).then(|| self.wait.as_secs_f64() / all.as_secs_f64())
    }
}

/// The disturbances of all workers that have cores of their own.
#[derive(Debug, Default)]
pub(super) struct Disturbance {
    rounds: u32,
    /// How long the last pause was, and its end.
    pause: Option<(Duration, Instant)>,
    why: Option<String>,
}

impl Disturbance {
    /// A round with the work of the workers that have cores of their own.
    pub fn observe(&mut self, works: impl IntoIterator<Item = CpuWork>, now: Instant) {
        let worst = works.into_iter().filter_map(CpuWork::wait_share).fold(0.0, f64::max);
        self.rounds = if worst > LIMIT { self.rounds + 1 } else { 0 };
        if self.rounds < ROUNDS {
            return;
        }
        self.rounds = 0;
        let length = match self.pause {
            Some((last, end)) if now - end < FORGET => (last * 2).min(LONGEST_PAUSE),
            _ => FIRST_PAUSE,
        };
        self.pause = Some((length, now + length));
        self.why = Some(format!(
            "other work ran on the workers' cores: a worker waited {:.0} % of the time that it needed",
            worst * 100.0
        ));
    }

    /// Why workers have no cores of their own now.
    pub fn reason(&self, now: Instant) -> Option<&str> {
        let (_, end) = self.pause?;
        self.why.as_deref().filter(|_| now < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn work(cpu: u64, wait: u64) -> [CpuWork; 2] {
        [CpuWork::default(), CpuWork { cpu: Duration::from_millis(cpu), wait: Duration::from_millis(wait) }]
    }

    #[test]
    fn workers_that_wait_for_their_cores_lose_them_for_longer_and_longer() {
        let (mut disturbance, mut now) = (Disturbance::default(), Instant::now());
        for (cpu, wait) in [(600, 100), (500, 500), (500, 500), (600, 100), (20, 70), (500, 500)] {
            disturbance.observe(work(cpu, wait), now);
            assert_eq!(disturbance.reason(now), None, "a short disturbance, or little work");
        }
        let mut pauses = Vec::new();
        for _ in 0..8 {
            for _ in 0..ROUNDS {
                disturbance.observe(work(500, 500), now);
            }
            assert!(disturbance.reason(now).unwrap().ends_with("waited 50 % of the time that it needed"));
            let began = now;
            while disturbance.reason(now).is_some() {
                now += SECOND;
            }
            pauses.push((now - began).as_secs());
        }
        assert_eq!(pauses, [20, 40, 80, 160, 320, 640, 1200, 1200]);
        now += FORGET;
        for _ in 0..ROUNDS {
            disturbance.observe(work(500, 500), now);
        }
        assert_eq!(disturbance.reason(now + FIRST_PAUSE), None, "a short pause again");
    }
}
