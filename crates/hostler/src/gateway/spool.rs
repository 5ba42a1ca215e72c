//! Reads a request's body whole before a slot is taken: in memory, past a limit in a temporary file. Knows no routes and no pools.

use std::fs::File;
use std::future::poll_fn;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hostler_wire::BodyLength;

use crate::exchange::{Body, BodyError, Downstream};

/// What is taken from the client at a time, whatever may stay in memory.
const PIECE: usize = 64 * 1024;

/// Where bodies go.
#[derive(Debug, Clone)]
pub struct SpoolSettings {
    /// Bytes of one body that stay in memory; more go to a file.
    pub memory: usize,
    /// The folder for the file.
    pub folder: PathBuf,
}

/// Reads the body whole. The limit on its size is the client's side's business, which counts as it reads.
pub async fn read_whole<D: Downstream>(
    client: &mut D,
    length: BodyLength,
    settings: &SpoolSettings,
) -> Result<(Body, u64), BodyError> {
    if length == BodyLength::Known(0) {
        return Ok((Body::None, 0));
    }
    let mut spill = None;
    let mut spilled = 0;
    // What a stranger announces is no reason to allocate; what it has sent is.
    let mut piece = Vec::new();
    loop {
        let ended = poll_fn(|cx| client.poll_body(cx, &mut piece, PIECE)).await?;
        if piece.len() > settings.memory || (ended && spill.is_some()) {
            spilled += piece.len() as u64;
            let folder = settings.folder.clone();
            spill = Some(blocking(move || write(spill, piece, &folder)).await?);
            piece = Vec::new();
        }
        match (ended, spill.take()) {
            (true, Some(file)) => return Ok((Body::Spilled(Arc::new(file), spilled), spilled)),
            (true, None) => {
                let size = piece.len() as u64;
                return Ok((Body::Memory(Arc::new(piece)), size));
            }
            (false, file) => spill = file,
        }
    }
}

/// The file has no name: nobody else can open it, and it is gone when we are.
fn write(file: Option<File>, piece: Vec<u8>, folder: &Path) -> std::io::Result<File> {
    let mut file = match file {
        Some(file) => file,
        None => tempfile::tempfile_in(folder)?,
    };
    file.write_all(&piece)?;
    Ok(file)
}

async fn blocking<T: Send + 'static>(
    act: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, BodyError> {
    match tokio::task::spawn_blocking(act).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(BodyError::Storage(error.kind())),
        Err(_) => Err(BodyError::Storage(std::io::ErrorKind::Other)),
    }
}
