//! An operator takes one worker out of rotation, or puts it back: which worker is meant, and why not. Knows no process.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::inspection::{has_another, regular, unknown};
use super::lifecycle::Drain;
use super::rollout::WorkerTaskId;
use super::snapshot::{WorkerState, WorkerStatus};

/// A worker's place in the rotation of its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// It gets no more requests, and finishes those that it has.
    Out {
        /// After this time it comes back by itself.
        length: Option<Duration>,
        /// Even if no other worker of the pool is ready.
        force: bool,
    },
    /// It gets requests again.
    In,
}

/// A change of rotation on its way.
#[derive(Debug)]
pub(super) struct RotationOrder {
    pub worker: usize,
    pub rotation: Rotation,
    /// Hears whether the worker was told. The error is a sentence for the operator.
    pub answer: oneshot::Sender<Result<(), String>>,
}

/// The worker that is meant. `Err`: why it cannot be done.
pub(super) fn choose(
    board: &[WorkerStatus],
    pool: &str,
    worker: usize,
    rotation: Rotation,
) -> Result<WorkerTaskId, String> {
    let place = regular(board, worker).ok_or_else(|| unknown(board, pool, worker))?;
    let state = place.state.name();
    let is_drained = place.drain.is_some();
    match rotation {
        Rotation::In if is_drained => Ok(place.task),
        Rotation::In => Err(format!("{pool}/{worker} is not drained; its state is: {state}")),
        // It gets the new time.
        Rotation::Out { .. } if is_drained => Ok(place.task),
        Rotation::Out { .. } if place.state != WorkerState::Ready => match place.inspection {
            Some(inspection) => {
                Err(format!("{pool}/{worker} is busy: a {} of it is being taken", inspection.name()))
            }
            None => Err(format!("{pool}/{worker} is not ready; its state is: {state}")),
        },
        Rotation::Out { force: false, .. } if !has_another(board, place) => Err(format!(
            "{pool}/{worker} is the only worker of pool {pool} that is ready. While it is drained, requests wait in the queue. \
             Use --force if that is right, or run a second worker first (workers = 2, or spares = 1)"
        )),
        Rotation::Out { .. } => Ok(place.task),
    }
}

/// Whether a worker of the pool serves. A spare that stands by joins at once when a worker is missing.
pub(super) fn has_server(board: &[WorkerStatus]) -> bool {
    board.iter().any(|place| matches!(place.state, WorkerState::Ready | WorkerState::Standby))
}

/// Shows at once that the worker leaves, so that the next order does not count on it. A worker that cannot obey shows how it is.
pub(super) fn show(board: &mut [WorkerStatus], task: WorkerTaskId, rotation: Rotation) {
    let place = board.iter_mut().find(|place| place.task == task && place.state == WorkerState::Ready);
    if let (Some(place), Rotation::Out { length, .. }) = (place, rotation) {
        let since = Instant::now();
        place.state = WorkerState::OutOfRotation;
        place.drain = Some(Drain { since, until: length.map(|length| since + length) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::PoolRole;

    const OUT: Rotation = Rotation::Out { length: None, force: false };
    const FORCED: Rotation = Rotation::Out { length: None, force: true };

    fn board(states: &[WorkerState]) -> Vec<WorkerStatus> {
        let mut board: Vec<_> = (1..=states.len())
            .map(|index| WorkerStatus::new(WorkerTaskId(index as u64), index, PoolRole::Regular, 0))
            .collect();
        board.iter_mut().zip(states).for_each(|(place, &state)| place.state = state);
        board
    }

    #[test]
    fn a_worker_leaves_only_if_another_one_serves() {
        use WorkerState::{Booting, Ready};
        assert_eq!(choose(&board(&[Ready, Ready]), "web", 2, OUT), Ok(WorkerTaskId(2)));
        let why = choose(&board(&[Ready, Booting]), "web", 1, OUT).unwrap_err();
        assert!(why.contains("only worker of pool web"), "{why}");
        assert_eq!(choose(&board(&[Ready]), "web", 1, FORCED), Ok(WorkerTaskId(1)));
        let why = choose(&board(&[Ready, Booting]), "web", 2, FORCED).unwrap_err();
        assert_eq!(why, "web/2 is not ready; its state is: booting");
        let why = choose(&board(&[Ready, Ready]), "web", 3, OUT).unwrap_err();
        assert_eq!(why, "pool web has no worker 3: its workers are web/1 to web/2");
    }

    #[test]
    fn only_a_drained_worker_comes_back_and_it_may_get_another_time() {
        let mut board = board(&[WorkerState::Ready, WorkerState::OutOfRotation]);
        board[1].drain = Some(Drain { since: Instant::now(), until: None });
        assert_eq!(choose(&board, "web", 2, Rotation::In), Ok(WorkerTaskId(2)));
        assert_eq!(choose(&board, "web", 2, OUT), Ok(WorkerTaskId(2)));
        let why = choose(&board, "web", 1, Rotation::In).unwrap_err();
        assert_eq!(why, "web/1 is not drained; its state is: ready");
        assert!(choose(&board, "web", 1, OUT).is_err(), "the other one does not serve");
    }
}
