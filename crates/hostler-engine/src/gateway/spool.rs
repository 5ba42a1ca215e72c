//! Reads a request's body whole before a slot is taken: into memory, and above a limit into a temporary file. Knows no routes and no pools.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::sync::Arc;

use hostler_wire::BodyLength;
use rustix::io::Errno;

use crate::exchange::{Body, BodyError, Downstream, InMemory, MemoryAccount, SpoolAccount, SpoolFile};

/// How many bytes are read from the client at a time, whatever the limit for memory is.
const PIECE: usize = 64 * 1024;
/// This many bytes of each body are not counted in the memory budget: each connection uses as much anyway.
const UNCOUNTED: usize = 4 * 1024;

#[derive(Debug, Clone)]
pub struct SpoolSettings {
    /// Bytes of one body that stay in memory. The rest goes to a file. `usize::MAX`: never use a file.
    pub memory: usize,
}

/// Reads the body whole. The client's side limits its size while it reads.
pub async fn read_whole<D: Downstream>(
    client: &mut D,
    length: BodyLength,
    settings: &SpoolSettings,
    account: &Arc<MemoryAccount>,
) -> Result<(Body, u64), BodyError> {
    if length == BodyLength::Known(0) {
        return Ok((Body::None, 0));
    }
    check_length(client, length, settings)?;
    let mut spill = None;
    // Allocates for what the client has sent, not for the length that it announces.
    let mut piece = Vec::new();
    let mut reservation = account.reservation();
    loop {
        let ended = poll_fn(|cx| client.poll_body(cx, &mut piece, PIECE)).await?;
        let has_memory = piece.len() <= UNCOUNTED || reservation.resize(piece.capacity() as u64);
        if !has_memory && settings.memory == usize::MAX {
            return Err(BodyError::NoMemory);
        }
        if piece.len() > settings.memory || !has_memory || (ended && spill.is_some()) {
            let account = client.spool().ok_or(BodyError::Storage(ErrorKind::Unsupported))?;
            let mut file = spill.unwrap_or_else(|| account.file());
            claim(&mut file, &account, piece.len() as u64, length)?;
            let appending = file.threads().run(move || file.append(&piece).map(|()| file));
            // Boxed, so that requests without a file do not carry the room for it.
            spill = Some(Box::pin(appending).await.map_err(failure)?);
            piece = Vec::new();
            // Shrinking never fails.
            let _ = reservation.resize(0);
        }
        match (ended, spill.take()) {
            (true, Some(file)) => {
                let size = file.len();
                return Ok((Body::Spilled(Arc::new(file), size), size));
            }
            (true, None) => {
                let size = piece.len() as u64;
                return Ok((Body::Memory(Arc::new(InMemory::new(piece, reservation))), size));
            }
            (false, file) => spill = file,
        }
    }
}

/// Refuses a body that can never be stored before its client sends it. A body over the limit for memory goes into the file from its first byte on.
fn check_length<D: Downstream>(
    client: &mut D,
    length: BodyLength,
    settings: &SpoolSettings,
) -> Result<(), BodyError> {
    let BodyLength::Known(length) = length else { return Ok(()) };
    if length <= settings.memory as u64 {
        return Ok(());
    }
    match client.spool().map(|account| account.most()) {
        Some(most) if length > most => Err(BodyError::LargerThanSpool(most)),
        _ => Ok(()),
    }
}

/// Reserves room for the next bytes of a body of that length. If even an empty spool were too small, the error says that the body is too
/// large.
fn claim(
    file: &mut SpoolFile,
    account: &SpoolAccount,
    bytes: u64,
    length: BodyLength,
) -> Result<(), BodyError> {
    file.claim(bytes).map_err(|full| {
        let known = file.len() + bytes;
        let wanted = match length {
            BodyLength::Known(length) => length.max(known),
            _ => known,
        };
        let most = account.most();
        if wanted > most { BodyError::LargerThanSpool(most) } else { full.into() }
    })
}

/// Why a body could not be stored.
fn failure(error: std::io::Error) -> BodyError {
    match is_full(&error) {
        true => BodyError::DiskFull(error.kind()),
        false => BodyError::Storage(error.kind()),
    }
}

/// Whether there is no room at the moment: on the disk, in the quota, or for another file descriptor.
fn is_full(error: &std::io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOSPC | Errno::DQUOT | Errno::MFILE | Errno::NFILE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::refusal::Refusal;

    #[test]
    fn a_full_disk_is_overload_and_another_failure_of_it_is_not() {
        for (errno, status, reason) in [(Errno::NOSPC, 503, "spool_full"), (Errno::ACCESS, 500, "storage")] {
            let facts = Refusal::Body(failure(errno.into())).facts();
            assert_eq!((facts.status, facts.reason), (status, reason));
        }
    }
}
