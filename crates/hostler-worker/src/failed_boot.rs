//! Boots that have failed: how they ended, the app's last lines, and whether any worker has ever worked. Starts nothing.

use std::fmt;
use std::io;
use std::sync::Arc;

use super::snapshot::{WorkerState, WorkerStatus};

/// The exit code of a shell for a program that it does not find, and for one that it may not run.
const NOT_FOUND: u8 = 127;
const NOT_RUNNABLE: u8 = 126;

/// A boot that has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedBoot {
    /// The worker's number.
    pub worker: usize,
    /// A server of the app that Hostler does not use. This is the cause, whatever happened then.
    pub obstacle: Option<String>,
    /// What happened, as a part of a sentence: `exit code 1 before it was ready`.
    pub how: String,
    /// The app's exit code, 128 and the number for a signal, or what a shell returns for a program that cannot be started. Never 0.
    pub exit_code: u8,
    /// The line that names the error, or else the last line.
    pub error: Option<String>,
    /// The last lines of standard error; if there are none, those of standard output.
    pub output: Vec<String>,
}

/// No worker has ever worked, after some tries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeverReady {
    /// How many boots have failed.
    pub boots: u64,
    /// The last failed boot.
    pub last: Arc<FailedBoot>,
}

/// The exit code for an app that has exited with this code and was never ready. An app that ends with 0 has not done what it was
/// started for.
pub(super) fn exit_code(code: Option<i32>, signal: Option<i32>) -> u8 {
    let number = code.or(signal.map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(number).ok().filter(|&code| code != 0).unwrap_or(1)
}

/// The exit code for a program that could not be started.
pub(super) fn exit_code_of(error: &io::Error) -> u8 {
    match error.kind() {
        io::ErrorKind::NotFound => NOT_FOUND,
        _ => NOT_RUNNABLE,
    }
}

/// Whether to give up: a worker has failed this often in a row, and no worker has ever worked.
pub(super) fn is_hopeless(board: &[WorkerStatus], tries: u32) -> bool {
    // The present state does not matter: a worker that hangs or is drained was ready once.
    let works = |status: &WorkerStatus| status.has_worked || status.ready_at.is_some();
    !board.iter().any(works) && board.iter().any(|status| status.failed_boots >= tries)
}

/// Whether no worker works and one has failed to boot this often in a row, even if workers have worked before. Only a worker that boots or
/// waits for its next boot counts.
pub(super) fn does_not_boot(board: &[WorkerStatus], tries: u32) -> bool {
    use WorkerState::{BackingOff, Booting, OutOfRotation, Ready, Retiring, Standby, Warming};
    let works = |status: &WorkerStatus| matches!(status.state, Ready | Standby | OutOfRotation | Retiring);
    let fails = |status: &WorkerStatus| {
        status.failed_boots >= tries && matches!(status.state, Booting | Warming | BackingOff)
    };
    !board.iter().any(works) && board.iter().any(fails)
}

/// How many boots of all workers have failed.
pub(super) fn failed_boots(board: &[WorkerStatus]) -> u64 {
    board.iter().map(|status| u64::from(status.failed_boots)).sum()
}

impl fmt::Display for FailedBoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(obstacle) = &self.obstacle {
            write!(f, "{obstacle}; ")?;
        }
        match &self.error {
            Some(error) => write!(f, "{}: {error}", self.how),
            None => f.write_str(&self.how),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::lifecycle::PoolRole;
    use crate::rollout::WorkerTaskId;

    #[test]
    fn the_exit_code_is_that_of_the_app_and_never_0() {
        assert_eq!(exit_code(Some(3), None), 3);
        assert_eq!(exit_code(Some(0), None), 1);
        assert_eq!(exit_code(None, Some(9)), 137);
        assert_eq!(exit_code(None, None), 1);
        assert_eq!(exit_code_of(&io::ErrorKind::NotFound.into()), 127);
        assert_eq!(exit_code_of(&io::ErrorKind::PermissionDenied.into()), 126);
    }

    fn status(index: usize, failed_boots: u32) -> WorkerStatus {
        let new = WorkerStatus::new(WorkerTaskId(index as u64), index, PoolRole::Regular, 0);
        WorkerStatus { failed_boots, state: WorkerState::BackingOff, ..new }
    }

    #[test]
    fn it_is_hopeless_only_if_no_worker_has_ever_worked() {
        let mut board = vec![status(1, 3), status(2, 2)];
        assert!(is_hopeless(&board, 3) && !is_hopeless(&board, 4));
        assert_eq!(failed_boots(&board), 5);
        board[1].ready_at = Some(Instant::now());
        for state in [WorkerState::Ready, WorkerState::OutOfRotation, WorkerState::Stopping] {
            board[1].state = state;
            assert!(!is_hopeless(&board, 3), "one was ready, and lives: {state:?}");
        }
        board[1] = WorkerStatus { has_worked: true, ..status(2, 4) };
        assert!(!is_hopeless(&board, 3), "one has worked before");
    }

    #[test]
    fn a_pool_does_not_boot_if_boots_fail_and_none_works_even_if_one_has_worked() {
        let crashed = WorkerStatus { has_worked: true, crashes: 1, ..status(1, 0) };
        let mut board = vec![crashed, status(2, 2)];
        assert!(!does_not_boot(&board, 3), "a crash and a few failures may be chance");
        board[0].failed_boots = 3;
        assert!(does_not_boot(&board, 3));
        for state in
            [WorkerState::Ready, WorkerState::Standby, WorkerState::OutOfRotation, WorkerState::Retiring]
        {
            board[1].state = state;
            assert!(!does_not_boot(&board, 3), "{state:?}");
        }
        (board[0].state, board[1].state) = (WorkerState::Stopping, WorkerState::BackingOff);
        assert!(!does_not_boot(&board, 3), "it may have been ready since");
    }
}
