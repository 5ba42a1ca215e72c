//! Decides when a worker without a fault is replaced. Pure: knows neither pools nor processes.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::settings::Recycling;

/// How often workers are checked.
pub(super) const LOOK: Duration = Duration::from_secs(1);
/// A younger worker is not recycled for its memory. If a new worker has more than the limit, replacing it does not help, and would go on
/// without a pause.
pub(super) const LEAST_AGE_FOR_MEMORY: Duration = Duration::from_secs(10);

/// A worker that never had less than the limit is replaced without delay if it has this many times its least memory. Then it leaks, and replacing
/// it helps.
const GROWTH: f64 = 1.5;

/// A worker takes more than `max_memory` from its start on, so replacing it does not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HeavyStart {
    /// `max_memory`, in bytes.
    pub limit: u64,
    /// The least memory of such a worker since it was ready, in bytes.
    pub memory: u64,
}

/// What a worker has done and uses so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkerUse {
    pub requests: u64,
    pub age: Duration,
    /// Resident bytes.
    pub memory: Option<u64>,
    /// The least memory since it was ready. `None`: not known.
    pub least: Option<u64>,
    /// The worker's own part of the limits, from [`share`].
    pub share: f64,
}

/// Why a worker is recycled. `Display` is a part of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Requests(u64),
    Age(Duration),
    Memory(u64),
    /// It has had more memory than the limit from its start. Its successor probably needs as much.
    FromStart(u64),
    /// A heap snapshot of it was taken, and the operator wants it replaced after that.
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

    /// A replacement probably does not help.
    pub fn is_from_start(self) -> bool {
        matches!(self, Self::FromStart(_))
    }
}

/// A random number between 0.8 and 1, drawn at each start: the part of `max_requests` and `max_age` at which this worker
/// is recycled. So workers that started together are not recycled together, and none exceeds a limit.
pub(super) fn share(chance: &mut fastrand::Rng) -> f64 {
    0.8 + 0.2 * chance.f64()
}

/// Why the worker is due for recycling, if it is. The limit of memory has no random part: a worker below the limit stays.
pub(super) fn reason(limits: Recycling, worker_use: WorkerUse) -> Option<Reason> {
    let above = limits.max_memory.and_then(|limit| above(limit, worker_use));
    let requests = limits
        .max_requests
        .is_some_and(|limit| worker_use.requests as f64 >= limit as f64 * worker_use.share);
    let age = limits.max_age.is_some_and(|limit| worker_use.age >= limit.mul_f64(worker_use.share));
    // `FromStart` comes last: recycling for that reason may have to wait, and another reason need not.
    above
        .filter(|above| !above.is_from_start())
        .or(requests.then_some(Reason::Requests(worker_use.requests)))
        .or(age.then_some(Reason::Age(worker_use.age)))
        .or(above)
}

/// The worker has more memory than this limit.
fn above(limit: u64, worker_use: WorkerUse) -> Option<Reason> {
    let is_old = worker_use.age >= LEAST_AGE_FOR_MEMORY;
    let memory = worker_use.memory.filter(|&memory| is_old && memory > limit)?;
    let is_from_start = |least: u64| least > limit && (memory as f64) < least as f64 * GROWTH;
    Some(match worker_use.least {
        Some(least) if is_from_start(least) => Reason::FromStart(memory),
        _ => Reason::Memory(memory),
    })
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inspected => f.write_str("a heap snapshot of it was taken"),
            Self::NotListening => f.write_str("it does not listen any more"),
            Self::NoSocket => f.write_str("its socket was removed"),
            Self::Requests(requests) => write!(f, "{requests} requests"),
            Self::Age(age) => write!(f, "{} s old", age.as_secs()),
            Self::Memory(bytes) => write!(f, "{:.1} MiB resident", mebibytes(*bytes)),
            Self::FromStart(bytes) => {
                write!(f, "{:.1} MiB resident, and above max_memory from its start on", mebibytes(*bytes))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: WorkerUse =
        WorkerUse { requests: 0, age: Duration::ZERO, memory: Some(0), least: None, share: 1.0 };

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
        let worn = WorkerUse { requests: u64::MAX, age: Duration::MAX, memory: Some(u64::MAX), ..FRESH };
        assert_eq!(reason(Recycling::default(), worn), None);
    }

    #[test]
    fn a_worker_that_has_never_had_less_than_the_limit_is_told_from_one_that_has_grown() {
        const MIB: u64 = 1 << 20;
        let old = Duration::from_secs(10);
        let limits = Recycling { max_memory: Some(200 * MIB), ..Recycling::default() };
        let why = |limits: Recycling, least: Option<u64>, memory: u64| {
            let least = least.map(|least| least * MIB);
            reason(limits, WorkerUse { age: old, memory: Some(memory * MIB), least, ..FRESH })
        };
        let from_start = |memory: u64| Reason::FromStart(memory * MIB);
        let grown = |memory: u64| Reason::Memory(memory * MIB);
        assert_eq!(why(limits, Some(201), 201), Some(from_start(201)));
        assert_eq!(why(limits, Some(250), 374), Some(from_start(374)));
        assert_eq!(why(limits, Some(250), 375), Some(grown(375)), "it leaks");
        assert_eq!(why(limits, Some(200), 201), Some(grown(201)));
        assert_eq!(why(limits, None, 250), Some(grown(250)), "not known");
        assert_eq!(why(limits, Some(150), 200), None);
        let and_age = Recycling { max_age: Some(old), ..limits };
        assert_eq!(why(and_age, Some(250), 250), Some(Reason::Age(old)), "this need not wait");
        assert_eq!(why(and_age, Some(250), 375), Some(grown(375)));
        let told = from_start(212).to_string();
        assert_eq!(told, "212.0 MiB resident, and above max_memory from its start on");
    }

    #[test]
    fn workers_that_start_together_are_recycled_at_different_times() {
        let mut chance = fastrand::Rng::with_seed(7);
        let shares: Vec<f64> = (0..100).map(|_| share(&mut chance)).collect();
        assert!(shares.iter().all(|share| (0.8..=1.0).contains(share)));
        assert!(shares.iter().any(|share| *share < 0.85) && shares.iter().any(|share| *share > 0.95));
    }
}
