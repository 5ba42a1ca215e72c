//! Keeps a part of the file descriptors of the process from connections to members, and tells when a request waits for one. Knows no
//! members.

use std::os::fd::AsRawFd;
use std::sync::LazyLock;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, socket};
use rustix::process::{Resource, getrlimit};
use tokio::sync::Notify;

/// A request waits for a descriptor. It says so again and again until there is one.
static WANTED: Notify = Notify::const_new();

/// While requests wait for descriptors, idle connections are looked for at this interval.
pub const ROOM_PAUSE: Duration = Duration::from_millis(250);

/// One descriptor in this many is reserved. New clients, the admin listener, starting workers and files need them.
const PART: u64 = 6;
/// The most descriptors that are reserved.
const MOST: u64 = 1024;

/// A connection to a member must have a descriptor number below this one. None without a limit. Read once: the limit is raised before the
/// first request.
static LIMIT: LazyLock<Option<u64>> = LazyLock::new(|| {
    let limit = getrlimit(Resource::Nofile).current?;
    Some(limit - kept(limit))
});

/// How many descriptors are reserved under this limit.
fn kept(limit: u64) -> u64 {
    (limit / PART).min(MOST)
}

/// Whether a connection to a member may be opened. The system always gives the lowest free number, so a socket that is opened and closed
/// again shows which number the connection would get.
pub(super) fn has_room() -> bool {
    let Some(limit) = *LIMIT else { return true };
    match socket(AddressFamily::UNIX, SocketType::STREAM, None) {
        Ok(socket) => u64::try_from(socket.as_raw_fd()).is_ok_and(|number| number < limit),
        Err(_) => false,
    }
}

/// Says that a request waits for a descriptor.
pub(super) fn want() {
    WANTED.notify_waiters();
}

/// Waits until a request waits for a descriptor. Idle connections to members may have some (`Endpoint::make_room`).
pub async fn descriptor_wanted() {
    WANTED.notified().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sixth_of_the_descriptors_and_1024_at_most_are_kept_from_members() {
        assert_eq!([256, 6000, 6150, 1 << 20].map(kept), [42, 1000, 1024, 1024]);
    }
}
