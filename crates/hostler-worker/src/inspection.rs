//! A CPU profile or a heap snapshot of one running worker: what is asked, which worker is meant, and what comes back. Decision 46 says
//! how each is taken. Knows no process.

mod heap;
mod hung;
mod kind;
mod profile;
mod taking;

use tokio::sync::mpsc;

use super::lifecycle::PoolRole;
use super::rollout::WorkerTaskId;
use super::snapshot::{WorkerState, WorkerStatus};
pub(super) use heap::heap;
pub use kind::InspectionKind;
pub(super) use profile::profile;
pub(super) use taking::{Inspectable, NotTaken, PreloadReply, Taking};

/// How many events may be unread. Beyond that the worker waits, so a slow reader costs no memory.
const UNREAD: usize = 4;

/// What comes of an inspection. The first event is `Began` or `Refused`; the last one is `Done`, `Failed` or `Refused`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InspectionEvent {
    /// Nothing was done, for this reason.
    Refused(String),
    /// This worker is inspected.
    Began {
        /// Its number.
        worker: usize,
        /// The process that listens.
        pid: u32,
    },
    /// What happens now, for the operator.
    Progress(String),
    /// The next piece of the file.
    Data(Vec<u8>),
    /// The file is complete.
    Done,
    /// It is not, for this reason.
    Failed(String),
}

/// An inspection on its way to a worker task.
#[derive(Clone, Debug)]
pub(super) struct InspectionOrder {
    pub kind: InspectionKind,
    pub events: mpsc::Sender<InspectionEvent>,
}

impl InspectionOrder {
    pub fn new(kind: InspectionKind) -> (Self, mpsc::Receiver<InspectionEvent>) {
        let (events, received) = mpsc::channel(UNREAD);
        (Self { kind, events }, received)
    }

    /// Must be the first event.
    pub fn refuse(&self, why: String) {
        // The reader may have left.
        let _ = self.events.try_send(InspectionEvent::Refused(why));
    }
}

/// The worker that is meant. Without a number it is the busiest one. `Err`: why there is none.
pub(super) fn choose(
    board: &[WorkerStatus],
    pool: &str,
    worker: Option<usize>,
    kind: InspectionKind,
) -> Result<WorkerTaskId, String> {
    let place = match worker {
        Some(worker) => regular(board, worker).ok_or_else(|| unknown(board, pool, worker))?,
        None => busiest(board).ok_or_else(|| format!("pool {pool} has no worker that is ready"))?,
    };
    if matches!(kind, InspectionKind::Heap { force: false, .. }) && !has_another(board, place) {
        let index = place.index;
        return Err(format!(
            "{pool}/{index} is the only worker of pool {pool} that is ready. While a heap snapshot of it is taken, requests wait in the queue, for seconds if its heap is large. \
             Use --force if that is right, or run a second worker first (workers = 2, or spares = 1)"
        ));
    }
    Ok(place.task)
}

/// Marks the worker on the board at once as leaving for a snapshot, so that the next order does not count on it. If the worker refuses, its
/// task publishes its real state.
pub(super) fn show(board: &mut [WorkerStatus], task: WorkerTaskId, kind: InspectionKind) {
    let is_free = |place: &WorkerStatus| place.state == WorkerState::Ready && place.inspection.is_none();
    let place = board.iter_mut().find(|place| place.task == task && is_free(place));
    if let (Some(place), InspectionKind::Heap { .. }) = (place, kind) {
        place.inspection = Some(kind);
    }
}

/// The worker of this number, and not its successor on probation or a predecessor that leaves.
pub(super) fn regular(board: &[WorkerStatus], worker: usize) -> Option<&WorkerStatus> {
    board.iter().find(|place| place.index == worker && place.role == PoolRole::Regular)
}

fn busiest(board: &[WorkerStatus]) -> Option<&WorkerStatus> {
    let load = |place: &WorkerStatus| place.vitals.utilisation().unwrap_or(0.0);
    let ready =
        board.iter().filter(|place| place.state == WorkerState::Ready && place.role == PoolRole::Regular);
    // The first of several: `max_by` takes the last.
    ready.rev().max_by(|one, other| load(one).total_cmp(&load(other)))
}

/// Whether the pool has another worker for its requests. A spare that stands by joins at once.
pub(super) fn has_another(board: &[WorkerStatus], place: &WorkerStatus) -> bool {
    let serves = |other: &&WorkerStatus| matches!(other.state, WorkerState::Ready | WorkerState::Standby);
    let stays = |other: &&WorkerStatus| !matches!(other.inspection, Some(InspectionKind::Heap { .. }));
    board.iter().filter(|other| other.task != place.task).filter(serves).any(|other| stays(&other))
}

pub(super) fn unknown(board: &[WorkerStatus], pool: &str, worker: usize) -> String {
    if board.iter().any(|place| place.index == worker && place.spare) {
        return format!("{pool}/{worker} is a spare. Name a worker of the pool");
    }
    let count = board.iter().filter(|place| place.role == PoolRole::Regular).count();
    match count {
        0 => format!("pool {pool} has no worker {worker}: it has no workers now"),
        1 => format!("pool {pool} has no worker {worker}: its only worker is {pool}/1"),
        _ => format!("pool {pool} has no worker {worker}: its workers are {pool}/1 to {pool}/{count}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const HEAP: InspectionKind = InspectionKind::Heap { wait: Duration::from_secs(1), force: false };
    const PROFILE: InspectionKind =
        InspectionKind::Profile { length: Duration::from_secs(1), interval: Duration::from_millis(1) };

    fn place(task: u64, index: usize, role: PoolRole, state: WorkerState) -> WorkerStatus {
        let mut place = WorkerStatus::new(WorkerTaskId(task), index, role, 0);
        place.state = state;
        place
    }

    #[test]
    fn a_heap_snapshot_needs_another_worker_that_serves() {
        use PoolRole::{Regular, Spare};
        use WorkerState::{Booting, Ready, Standby};
        let one = || place(1, 1, Regular, Ready);
        let forced = InspectionKind::Heap { wait: Duration::ZERO, force: true };
        assert!(choose(&[one()], "web", Some(1), HEAP).unwrap_err().contains("only worker"));
        assert!(choose(&[one(), place(2, 2, Regular, Booting)], "web", Some(1), HEAP).is_err());
        assert_eq!(choose(&[one()], "web", Some(1), forced), Ok(WorkerTaskId(1)));
        assert_eq!(choose(&[one()], "web", Some(1), PROFILE), Ok(WorkerTaskId(1)));
        assert_eq!(choose(&[one(), place(2, 2, Regular, Ready)], "web", Some(1), HEAP), Ok(WorkerTaskId(1)));
        assert_eq!(choose(&[one(), place(2, 2, Spare, Standby)], "web", Some(1), HEAP), Ok(WorkerTaskId(1)));
        let mut other = place(2, 2, Regular, Ready);
        other.inspection = Some(HEAP);
        assert!(choose(&[one(), other], "web", Some(1), HEAP).is_err(), "the other one leaves, too");
    }

    #[test]
    fn a_number_that_is_not_that_of_a_worker_is_refused_with_the_numbers_that_are() {
        let board = [1, 2].map(|index| place(index as u64, index, PoolRole::Regular, WorkerState::Ready));
        let why = choose(&board, "web", Some(3), PROFILE).unwrap_err();
        assert_eq!(why, "pool web has no worker 3: its workers are web/1 to web/2");
        assert_eq!(choose(&board, "web", None, PROFILE), Ok(WorkerTaskId(1)), "all are idle");
        assert!(choose(&[], "web", None, PROFILE).unwrap_err().contains("no worker that is ready"));
        let spare = [place(3, 3, PoolRole::Spare, WorkerState::Standby)];
        assert!(choose(&spare, "web", Some(3), HEAP).unwrap_err().contains("is a spare"));
    }
}
