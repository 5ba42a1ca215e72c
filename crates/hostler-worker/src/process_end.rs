//! Waits for the end of any process, also one that is not our child. Does not know the purpose of the process.

use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use tokio::time::sleep;

/// How often an orphaned group is checked. The system reports no event for the end of a process that is not our child.
pub(super) const GLANCE: Duration = Duration::from_millis(20);

/// Whether there is this process, of any user.
pub(super) fn is_alive(pid: u32) -> bool {
    let Some(number) = Pid::from_raw(pid.cast_signed()) else { return false };
    matches!(test_kill_process(number), Ok(()) | Err(Errno::PERM))
}

/// Waits for the end of any process, and reaps none.
pub(super) async fn end_of(pid: u32) {
    #[cfg(target_os = "linux")]
    match Pid::from_raw(pid.cast_signed()) {
        Some(number) if !by_descriptor::end_of(number).await => {}
        _ => return,
    }
    // An old kernel, another system, or no descriptor is left. A process number that is soon used again would be mistaken here,
    // which is very rare.
    while is_alive(pid) {
        sleep(GLANCE).await;
    }
}

#[cfg(target_os = "linux")]
mod by_descriptor {
    use std::io;
    use std::os::fd::OwnedFd;

    use rustix::io::Errno;
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    use tokio::io::unix::AsyncFd;

    /// Waits for the end of the process. Returns false at once if no descriptor can be had.
    pub async fn end_of(process: Pid) -> bool {
        match pidfd_open(process, PidfdFlags::NONBLOCK).map(watched) {
            // The descriptor is readable when the process has ended, even before its parent has reaped it.
            Ok(Ok(process)) => {
                drop(process.readable().await);
                true
            }
            Err(Errno::SRCH) => true,
            _ => false,
        }
    }

    #[expect(
        deprecated,
        reason = "the newer function is unsafe, because a type may close the descriptor that it lends; OwnedFd never does"
    )]
    fn watched(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
        AsyncFd::new(descriptor)
    }
}
