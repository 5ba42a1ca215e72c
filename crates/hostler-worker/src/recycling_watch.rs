//! Finds workers that are due for recycling. Remembers the least memory of each, to tell a worker that has grown from one that needed as much
//! from its start. Replaces no worker.

use std::collections::BTreeMap;
use std::time::Duration;

use super::lifecycle::PoolRole;
use super::process_files::resident_bytes;
use super::recycling::{HeavyStart, LEAST_AGE_FOR_MEMORY, Reason, WorkerUse, reason};
use super::rollout::WorkerTaskId;
use super::settings::Recycling;
use super::snapshot::{WorkerState, WorkerStatus};

/// A worker whose memory is first seen later than this after it was ready may have grown before.
const START: Duration = Duration::from_secs(20);

/// A worker's process: the task, and its start.
type ProcessKey = (WorkerTaskId, u64);

/// Watches the workers of one pool.
#[derive(Debug, Default)]
pub(super) struct RecyclingWatch {
    /// The least memory of each process since it was ready. `None`: it was not watched from the beginning.
    least: BTreeMap<ProcessKey, Option<u64>>,
    heavy_start: Option<HeavyStart>,
}

impl RecyclingWatch {
    /// The workers that are due. `requests`: how many a worker has had.
    pub fn due(
        &mut self,
        limits: Recycling,
        board: &[WorkerStatus],
        requests: impl Fn(&WorkerStatus) -> u64,
    ) -> Vec<(WorkerTaskId, Reason)> {
        let is_at_work = |place: &&WorkerStatus| match place.role {
            PoolRole::Regular => place.state == WorkerState::Ready,
            PoolRole::Spare => matches!(place.state, WorkerState::Ready | WorkerState::Standby),
            PoolRole::Successor | PoolRole::Retired => false,
        };
        self.least.retain(|key, _| board.iter().any(|place| key_of(place) == *key));
        let at_work = board.iter().filter(is_at_work);
        let due = at_work.filter_map(|place| {
            let age = place.started.map_or(Duration::ZERO, |started| started.elapsed());
            let memory = place.pid.filter(|_| limits.max_memory.is_some()).and_then(resident_bytes);
            let ready_for = place.ready_at.map_or(Duration::ZERO, |at| at.elapsed());
            let least = memory
                .filter(|_| age >= LEAST_AGE_FOR_MEMORY)
                .and_then(|memory| self.note(key_of(place), ready_for, memory));
            let requests = requests(place);
            let reason = reason(limits, WorkerUse { requests, age, memory, least, share: place.share });
            Some((place.task, reason?))
        });
        let due = due.collect();
        self.look_at_starts(limits);
        due
    }

    /// The warning for the operator that workers need more than `max_memory` from their start on. It stays until all measured workers need less.
    pub fn heavy_start(&self) -> Option<HeavyStart> {
        self.heavy_start
    }

    /// The process has so much memory now, this long after it was ready. Returns the least that it has had.
    fn note(&mut self, process: ProcessKey, ready_for: Duration, memory: u64) -> Option<u64> {
        let least = self.least.entry(process).or_insert((ready_for < START).then_some(memory));
        *least = least.map(|least| least.min(memory));
        *least
    }

    fn look_at_starts(&mut self, limits: Recycling) {
        let Some(limit) = limits.max_memory else {
            (self.heavy_start, self.least) = Default::default();
            return;
        };
        // A successor that is younger says nothing yet.
        if let Some(memory) = self.least.values().copied().flatten().max() {
            self.heavy_start = (memory > limit).then_some(HeavyStart { limit, memory });
        }
    }
}

fn key_of(place: &WorkerStatus) -> ProcessKey {
    (place.task, place.generation)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const SECOND: Duration = Duration::from_secs(1);

    fn limits(max_memory: Option<u64>) -> Recycling {
        Recycling { max_memory, ..Recycling::default() }
    }

    #[test]
    fn the_least_memory_of_a_process_counts_if_it_was_watched_from_its_start() {
        let mut watch = RecyclingWatch::default();
        let (young, old, next) = ((WorkerTaskId(1), 1), (WorkerTaskId(2), 1), (WorkerTaskId(1), 2));
        let seen = [(8, 300), (9, 250), (500, 400)]
            .map(|(ready, memory)| watch.note(young, ready * SECOND, memory * MIB));
        assert_eq!(seen, [300, 250, 250].map(|least| Some(least * MIB)));
        assert_eq!(watch.note(old, 20 * SECOND, 300 * MIB), None, "it may have grown before");
        assert_eq!(watch.note(old, 21 * SECOND, 100 * MIB), None);
        assert_eq!(watch.note(next, SECOND, 500 * MIB), Some(500 * MIB), "another process");
    }

    #[test]
    fn a_start_above_the_limit_is_told_until_a_worker_needs_less() {
        let mut watch = RecyclingWatch::default();
        let (first, second) = ((WorkerTaskId(1), 1), (WorkerTaskId(2), 1));
        let tell = |watch: &mut RecyclingWatch, limit: Option<u64>| {
            watch.look_at_starts(limits(limit));
            watch.heavy_start().map(|heavy| (heavy.limit / MIB, heavy.memory / MIB))
        };
        let limit = Some(200 * MIB);
        watch.note(first, 8 * SECOND, 200 * MIB);
        assert_eq!(tell(&mut watch, limit), None, "at the limit");
        watch.note(second, 8 * SECOND, 250 * MIB);
        assert_eq!(tell(&mut watch, limit), Some((200, 250)));
        watch.least.clear();
        assert_eq!(tell(&mut watch, limit), Some((200, 250)), "its successor is young");
        watch.note(second, 8 * SECOND, 150 * MIB);
        assert_eq!(tell(&mut watch, limit), None);
        watch.note(first, 8 * SECOND, 250 * MIB);
        assert_eq!(tell(&mut watch, Some(300 * MIB)), None, "a higher limit");
        assert_eq!((tell(&mut watch, limit), tell(&mut watch, None)), (Some((200, 250)), None));
    }
}
