//! The limit on the process's file descriptors: raised at the start, and a last part of it kept from clients. Knows no sockets.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What is kept for workers that are started, members that are called and bodies that become files, however few there are ...
const LEAST_KEPT: u64 = 16;
/// ... and however many.
const MOST_KEPT: u64 = 256;

/// A client and a worker are two descriptors; the usual soft limit of 1024 would be the first thing to run out.
pub(super) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    // A refusal leaves things as they are.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Descriptors from this number on are not for clients.
pub(super) fn ceiling() -> usize {
    match getrlimit(Resource::Nofile).current {
        Some(limit) => {
            let kept = LEAST_KEPT + (limit / 16).min(MOST_KEPT - LEAST_KEPT);
            usize::try_from(limit.saturating_sub(kept)).unwrap_or(usize::MAX)
        }
        None => usize::MAX,
    }
}
