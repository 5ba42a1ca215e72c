//! The limit on open files: raised at the start, with a part that is reserved and not for clients. Knows no sockets.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The fewest descriptors that are reserved for starting workers, connecting to members and files for bodies.
const MIN_RESERVED: u64 = 16;
/// The most that are reserved.
const MAX_RESERVED: u64 = 256;

/// The fewest files of each kind, however few descriptors there are.
const LEAST_FILES: usize = 4;

/// Each request needs two descriptors, one for the client and one for the worker. The usual soft limit of 1024 would be reached first.
pub(super) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    // If the system refuses, the old limit stays.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Client connections may not use descriptors from this number on.
pub(super) fn client_limit() -> usize {
    match getrlimit(Resource::Nofile).current {
        Some(limit) => {
            let kept = MIN_RESERVED + (limit / 16).min(MAX_RESERVED - MIN_RESERVED);
            usize::try_from(limit.saturating_sub(kept)).unwrap_or(usize::MAX)
        }
        None => usize::MAX,
    }
}

/// How many temporary files may be open, and as many files that are sent. A third of what is left is for tunnels to members.
pub(super) fn of_files(spare: Option<usize>) -> usize {
    spare.map_or(usize::MAX, |spare| (spare / 3).max(LEAST_FILES))
}
