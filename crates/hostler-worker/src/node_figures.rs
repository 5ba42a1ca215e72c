//! What a Node process tells about itself when Hostler asks: its heap, its garbage collections, and how long the answer took. Asks nothing itself.

use std::collections::VecDeque;
use std::time::Duration;

use hostler_dispatch::json::microseconds;
use serde::{Deserialize, Serialize};

/// How many answers count. Hostler asks twice a second while the worker has requests, so this is a minute.
const ANSWERS: usize = 120;

/// An answer that is older than this says little about now.
const OLD: Duration = Duration::from_secs(60);

/// The figures of one Node process.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NodeFigures {
    /// How long its event loop took to answer, over the last 120 answers.
    pub event_loop_delay: Option<LoopDelay>,
    /// The heap at the last answer.
    pub heap: Option<HeapUse>,
    /// Its garbage collections.
    pub gc: Option<GarbageCollections>,
    /// How long ago it has answered.
    #[serde(skip)]
    pub age: Option<Duration>,
}

impl NodeFigures {
    /// The heap, if the process has answered lately. Without requests it is not asked, and its heap may be another one by now.
    pub fn heap_lately(&self) -> Option<HeapUse> {
        self.heap.filter(|_| self.age.is_some_and(|age| age <= OLD))
    }
}

/// How long an event loop took to answer a question. JSON has microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LoopDelay {
    /// Of how many answers these are the times.
    pub answers: u32,
    /// The shortest time.
    #[serde(rename = "min_us", serialize_with = "microseconds")]
    pub min: Duration,
    /// The mean.
    #[serde(rename = "mean_us", serialize_with = "microseconds")]
    pub mean: Duration,
    /// The standard deviation.
    #[serde(rename = "stddev_us", serialize_with = "microseconds")]
    pub stddev: Duration,
    /// Half of the answers took no longer.
    #[serde(rename = "p50_us", serialize_with = "microseconds")]
    pub p50: Duration,
    /// 90 of 100 answers took no longer.
    #[serde(rename = "p90_us", serialize_with = "microseconds")]
    pub p90: Duration,
    /// 99 of 100 answers took no longer.
    #[serde(rename = "p99_us", serialize_with = "microseconds")]
    pub p99: Duration,
    /// The longest time.
    #[serde(rename = "max_us", serialize_with = "microseconds")]
    pub max: Duration,
}

/// The heap of V8, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeapUse {
    /// Bytes in use.
    pub used: u64,
    /// How much it may use before the process ends.
    pub limit: u64,
}

/// The garbage collections since a process was first asked, by the kind that V8 names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GarbageCollections {
    /// Of the young generation.
    pub minor: CollectionTimes,
    /// Of all of the heap.
    pub major: CollectionTimes,
    /// Steps of marking the heap.
    pub incremental: CollectionTimes,
    /// Calls for objects that were weakly held.
    pub weakcb: CollectionTimes,
}

/// The times of one kind of garbage collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectionTimes {
    /// How many took up to 10 ms, up to 100 ms, up to a second, up to ten seconds, and longer.
    pub counts: [u64; 5],
    /// The sum of all times in microseconds.
    pub micros: u64,
}

impl CollectionTimes {
    /// The upper bounds of `counts` in seconds, by OpenTelemetry's conventions for `v8js.gc.duration`.
    pub const BOUNDS: [f64; 5] = [0.01, 0.1, 1.0, 10.0, f64::INFINITY];
}

/// The last answers.
#[derive(Debug, Default)]
pub(super) struct Delays(VecDeque<Duration>);

impl Delays {
    pub fn push(&mut self, delay: Duration) {
        if self.0.len() == ANSWERS {
            self.0.pop_front();
        }
        self.0.push_back(delay);
    }

    pub fn view(&self) -> Option<LoopDelay> {
        let mut all: Vec<_> = self.0.iter().copied().collect();
        all.sort_unstable();
        let count = u32::try_from(all.len()).ok()?;
        let at = |share: f64| all[((share * f64::from(count)).ceil() as usize).clamp(1, all.len()) - 1];
        let mean = all.iter().sum::<Duration>().checked_div(count)?;
        let squares: f64 = all.iter().map(|time| (time.as_secs_f64() - mean.as_secs_f64()).powi(2)).sum();
        Some(LoopDelay {
            answers: count,
            min: *all.first()?,
            mean,
            stddev: Duration::from_secs_f64((squares / f64::from(count)).sqrt()),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: *all.last()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heap_of_a_process_that_is_not_asked_any_more_is_old() {
        let heap = Some(HeapUse { used: 90, limit: 100 });
        let after =
            |seconds| NodeFigures { heap, age: Some(Duration::from_secs(seconds)), ..Default::default() };
        assert_eq!([59, 61].map(|seconds| after(seconds).heap_lately()), [heap, None]);
    }

    #[test]
    fn percentiles_are_those_of_the_last_answers() {
        let mut delays = Delays::default();
        assert_eq!(delays.view(), None);
        delays.push(Duration::from_secs(60));
        for micros in 1..=120 {
            delays.push(Duration::from_micros(micros));
        }
        let view = delays.view().unwrap();
        let all = [view.min, view.p50, view.p90, view.p99, view.max].map(|time| time.as_micros());
        assert_eq!(all, [1, 60, 108, 119, 120]);
        assert_eq!((view.answers, view.mean), (120, Duration::from_nanos(60_500)));
        assert_eq!(view.stddev.as_micros(), 34, "of 1 to 120");
    }
}
