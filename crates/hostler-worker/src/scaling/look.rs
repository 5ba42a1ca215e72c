//! Measures one pool for the policy. Decides nothing.

use std::sync::atomic::Ordering;

use super::machine::MachineLook;
use super::policy::ScalingLook;
use crate::lifecycle::PoolRole;
use crate::settings::Slots;
use crate::shared::PoolShared;
use crate::snapshot::{WorkerState, WorkerStatus};

/// The figures of this moment. `granted` is that of the look before.
pub(super) fn take<E: Send + Sync + 'static>(
    shared: &PoolShared<E>,
    granted: u64,
    machine: MachineLook,
) -> ScalingLook {
    let pool = shared.pool.snapshot();
    let board = shared.board.borrow();
    let figures = |place: &WorkerStatus| {
        pool.members.iter().map(|member| member.figures).find(|figures| Some(figures.id) == place.member)
    };
    let load = |place: &WorkerStatus| {
        let busy = place.vitals.busy();
        match (place.slots, figures(place)) {
            // An app that waits for a database takes all its slots and little CPU.
            (Slots::Fixed(slots), Some(figures)) => busy.max(figures.in_use as f64 / slots.max(1) as f64),
            _ => busy,
        }
    };
    let regular = || board.iter().filter(|place| place.role == PoolRole::Regular);
    let ready = || regular().filter(|place| place.state == WorkerState::Ready);
    let last = regular().max_by_key(|place| place.index);
    let is_idle = |place| {
        figures(place).is_none_or(|figures| figures.in_use == 0 && figures.tunnels + figures.streams == 0)
    };
    let waits = pool.queue_length > 0 && !pool.paused;
    let (failed, failed_last) = failed(&board);
    ScalingLook {
        ready: ready().count(),
        aside: regular().filter(|place| place.state == WorkerState::OutOfRotation).count(),
        restarting: shared.restarting.load(Ordering::Relaxed),
        failing: ready().next().is_none() && regular().any(|place| place.crashes > 0),
        failed,
        failed_last,
        wait: pool.oldest_wait_for_any.filter(|_| waits).unwrap_or_default(),
        used: pool.in_use > 0
            || pool.queue_length > 0
            || pool.tunnels + pool.streams > 0
            || pool.counters.granted != granted,
        load: ready().map(load).sum(),
        granted: pool.counters.granted,
        last_is_idle: last.is_none_or(is_idle),
        free_cpu: machine.free_cpu,
        memory_is_short: machine.memory_is_short,
    }
}

/// How many of the workers are not ready because their boots fail, and how many of these have the highest numbers.
fn failed(board: &[WorkerStatus]) -> (usize, usize) {
    let fails = |place: &&WorkerStatus| {
        place.failed_boots > 0 && !matches!(place.state, WorkerState::Ready | WorkerState::OutOfRotation)
    };
    let regular = || board.iter().filter(|place| place.role == PoolRole::Regular);
    (regular().filter(fails).count(), regular().rev().take_while(fails).count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::WorkerTaskId;

    #[test]
    fn a_worker_fails_until_it_is_ready_and_the_last_ones_are_counted_apart() {
        let worker = |index: usize, role, failed_boots, state| {
            let new = WorkerStatus::new(WorkerTaskId(index as u64), index, role, 0);
            WorkerStatus { failed_boots, state, ..new }
        };
        let regular = |index, failed_boots, state| worker(index, PoolRole::Regular, failed_boots, state);
        let mut board = vec![
            regular(1, 2, WorkerState::BackingOff),
            // Its first boots have failed.
            regular(2, 3, WorkerState::Ready),
            regular(3, 0, WorkerState::Booting),
            regular(4, 1, WorkerState::Booting),
            regular(5, 4, WorkerState::BackingOff),
            worker(5, PoolRole::Retired, 0, WorkerState::Stopping),
        ];
        assert_eq!(failed(&board), (3, 2));
        board.truncate(3);
        assert_eq!(failed(&board), (1, 0));
    }
}
