//! Looks at all of a file before anybody relies on it: seconds of work, for a thread that may take them. Knows no requests.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use filebuffer::FileBuffer;
use maxminddb::{Reader, WithinOptions};

use super::atlas::OpenError;
use super::database::{DatabaseError, map};
use super::record::Record;

/// What is odd about files that are good.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Verified {
    /// One sentence each.
    pub warnings: Vec<String>,
    /// The files in which no record names a city.
    pub without_cities: Vec<PathBuf>,
}

/// Reads every node and every record. It maps the files anew: what is mapped counts as this process's memory once it was read, and here
/// that is all of it.
pub fn verify(paths: &[PathBuf]) -> Result<Verified, OpenError> {
    let mut verified = Verified::default();
    for path in paths {
        let (warning, cities) =
            file(path).map_err(|why| OpenError::DatabaseError { path: path.clone(), why })?;
        verified.warnings.extend(warning);
        if cities == 0 {
            verified.without_cities.push(path.clone());
        }
    }
    Ok(verified)
}

/// What is odd about it, and how many of its records name a city.
fn file(path: &Path) -> Result<(Option<String>, usize), DatabaseError> {
    let (reader, _) = map(path)?;
    // The files of ip-location-db have no description. The library then looks no further, so the rest is looked at here.
    if reader.metadata().description.is_empty() {
        let warning = format!("{}: it does not say what it is (no description)", path.display());
        return Ok((Some(warning), records(&reader)?));
    }
    reader.verify()?;
    Ok((None, records(&reader)?))
}

/// Walks the tree and reads each record as it will be read; counts those that name a city.
fn records(reader: &Reader<FileBuffer>) -> Result<usize, DatabaseError> {
    let mut cities = 0;
    let mut seen = HashSet::with_hasher(foldhash::fast::RandomState::default());
    for network in reader.networks(WithinOptions::default())? {
        let network = network?;
        if network.offset().is_some_and(|offset| seen.insert(offset)) {
            let record = network.decode::<Record<'_>>()?;
            cities += usize::from(record.is_some_and(|record| record.has_city()));
        }
    }
    Ok(cities)
}
