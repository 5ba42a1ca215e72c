//! Looks at all of a file before anybody relies on it: seconds of work, for a thread that may take them. Knows no requests.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use filebuffer::FileBuffer;
use maxminddb::{Reader, WithinOptions};

use super::atlas::OpenError;
use super::database::{Broken, map};
use super::record::Record;

/// What is odd about files that are good.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Verified {
    /// One sentence each.
    pub warnings: Vec<String>,
}

/// Reads every node and every record. It maps the files anew: what is mapped counts as this process's memory once it was read, and here
/// that is all of it.
pub fn verify(paths: &[PathBuf]) -> Result<Verified, OpenError> {
    let mut verified = Verified::default();
    for path in paths {
        let warning = file(path).map_err(|why| OpenError::Broken { path: path.clone(), why })?;
        verified.warnings.extend(warning);
    }
    Ok(verified)
}

fn file(path: &Path) -> Result<Option<String>, Broken> {
    let (reader, _) = map(path)?;
    // The files of ip-location-db have no description. The library then looks no further, so the rest is looked at here.
    if reader.metadata().description.is_empty() {
        records(&reader)?;
        return Ok(Some(format!("{}: it does not say what it is (no description)", path.display())));
    }
    reader.verify()?;
    records(&reader)?;
    Ok(None)
}

/// Walks the tree and reads each record as it will be read.
fn records(reader: &Reader<FileBuffer>) -> Result<(), Broken> {
    let mut seen = HashSet::with_hasher(foldhash::fast::RandomState::default());
    for network in reader.networks(WithinOptions::default())? {
        let network = network?;
        if network.offset().is_some_and(|offset| seen.insert(offset)) {
            network.decode::<Record<'_>>()?;
        }
    }
    Ok(())
}
