//! Decides when a worker without a fault is replaced. Pure: knows neither pools nor processes.

use std::fmt;
use std::time::Duration;

use super::settings::Recycling;

/// How often workers are checked.
pub(super) const LOOK: Duration = Duration::from_secs(1);
/// A younger worker is not recycled for its memory. If a new worker has more than the limit, replacing it does not help, and would go on
/// without a pause.
const LEAST_AGE_FOR_MEMORY: Duration = Duration::from_secs(10);

/// What a worker has done and uses so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkerUse {
    pub requests: u64,
    pub age: Duration,
    /// Resident bytes.
    pub memory: Option<u64>,
    /// The worker's own part of the limits, from [`share`].
    pub share: f64,
}

/// Why a worker is recycled. `Display` is a part of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Requests(u64),
    Age(Duration),
    Memory(u64),
    /// A heap snapshot of it was taken, and it was to be replaced then.
    Inspected,
    /// Its app has closed the server, and the process lives.
    NotListening,
    /// Its socket was removed from its folder.
    NoSocket,
}

impl Reason {
    /// No new connection reaches the worker, so it cannot wait for long.
    pub fn gets_no_requests(self) -> bool {
        matches!(self, Self::NotListening | Self::NoSocket)
    }
}

/// A random number between 0.8 and 1, drawn at each start: the part of `max_requests` and `max_age` at which this worker
/// is recycled. So workers that started together are not recycled together, and none exceeds a limit.
pub(super) fn share(chance: &mut fastrand::Rng) -> f64 {
    0.8 + 0.2 * chance.f64()
}

/// Why the worker is due for recycling, if it is. The limit of memory has no random part: a worker below the limit stays.
pub(super) fn reason(limits: Recycling, worker_use: WorkerUse) -> Option<Reason> {
    let is_old = worker_use.age >= LEAST_AGE_FOR_MEMORY;
    let memory =
        worker_use.memory.filter(|&memory| is_old && limits.max_memory.is_some_and(|limit| memory > limit));
    let requests = limits
        .max_requests
        .is_some_and(|limit| worker_use.requests as f64 >= limit as f64 * worker_use.share);
    let age = limits.max_age.is_some_and(|limit| worker_use.age >= limit.mul_f64(worker_use.share));
    memory
        .map(Reason::Memory)
        .or(requests.then_some(Reason::Requests(worker_use.requests)))
        .or(age.then_some(Reason::Age(worker_use.age)))
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inspected => f.write_str("a heap snapshot of it was taken"),
            Self::NotListening => f.write_str("it does not listen any more"),
            Self::NoSocket => f.write_str("its socket was removed"),
            Self::Requests(requests) => write!(f, "{requests} requests"),
            Self::Age(age) => write!(f, "{} s old", age.as_secs()),
            Self::Memory(bytes) => write!(f, "{:.1} MiB resident", *bytes as f64 / f64::from(1 << 20)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: WorkerUse = WorkerUse { requests: 0, age: Duration::ZERO, memory: Some(0), share: 1.0 };

    #[test]
    fn each_limit_recycles_alone_and_an_unset_one_never_does() {
        let second = Duration::from_secs(1);
        let limits =
            Recycling { max_requests: Some(100), max_age: Some(10 * second), max_memory: Some(1 << 20) };
        let cases = [
            (FRESH, None),
            (WorkerUse { requests: 99, ..FRESH }, None),
            (WorkerUse { requests: 100, ..FRESH }, Some("100 requests")),
            (WorkerUse { requests: 80, share: 0.8, ..FRESH }, Some("80 requests")),
            (WorkerUse { age: 9 * second, ..FRESH }, None),
            (WorkerUse { age: 9 * second, share: 0.9, ..FRESH }, Some("9 s old")),
            (WorkerUse { memory: Some(3 << 19), age: 9 * second, ..FRESH }, None),
            (WorkerUse { memory: Some(3 << 19), age: 10 * second, ..FRESH }, Some("1.5 MiB resident")),
            (WorkerUse { memory: None, ..FRESH }, None),
        ];
        for (worker_use, expected) in cases {
            let reason = reason(limits, worker_use).map(|reason| reason.to_string());
            assert_eq!(reason.as_deref(), expected, "{worker_use:?}");
        }
        let only_memory = Recycling { max_memory: Some(1 << 20), ..Recycling::default() };
        let full = WorkerUse { memory: Some(1 << 20), age: Duration::MAX, share: 0.8, ..FRESH };
        assert_eq!(reason(only_memory, full), None, "the limit of memory has no random part");
        let worn = WorkerUse { requests: u64::MAX, age: Duration::MAX, memory: Some(u64::MAX), share: 1.0 };
        assert_eq!(reason(Recycling::default(), worn), None);
    }

    #[test]
    fn workers_that_start_together_are_recycled_at_different_times() {
        let mut chance = fastrand::Rng::with_seed(7);
        let shares: Vec<f64> = (0..100).map(|_| share(&mut chance)).collect();
        assert!(shares.iter().all(|share| (0.8..=1.0).contains(share)));
        assert!(shares.iter().any(|share| *share < 0.85) && shares.iter().any(|share| *share > 0.95));
    }
}
