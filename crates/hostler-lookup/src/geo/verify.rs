//! Reads a whole file before it is used. This takes seconds of work, so it needs a thread of its own. Knows no requests.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use filebuffer::FileBuffer;
use maxminddb::{Reader, WithinOptions};

use super::database::{DatabaseError, map};
use super::databases::OpenError;
use super::record::Record;
use crate::Mapping;

/// Remarks about files that can be used.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Verified {
    /// One sentence each.
    pub warnings: Vec<String>,
    /// The files in which no record has a city.
    pub without_cities: Vec<PathBuf>,
}

/// Reads every node and every record. It maps the files again, because pages that were read from a map count as this
/// process's memory, and this reads all pages.
pub fn verify(paths: &[PathBuf], mapping: Mapping<'_>) -> Result<Verified, OpenError> {
    let mut verified = Verified::default();
    for path in paths {
        let (warning, cities) =
            file(path, mapping).map_err(|why| OpenError::DatabaseError { path: path.clone(), why })?;
        verified.warnings.extend(warning);
        if cities == 0 {
            verified.without_cities.push(path.clone());
        }
    }
    Ok(verified)
}

/// A remark about the file, and how many of its records have a city.
fn file(path: &Path, mapping: Mapping<'_>) -> Result<(Option<String>, usize), DatabaseError> {
    let reader = map(path, mapping)?.reader;
    // The files of ip-location-db have no description. The library stops at that point, so the rest is checked here.
    if reader.metadata().description.is_empty() {
        let warning = format!("{}: it has no description in its metadata", path.display());
        return Ok((Some(warning), records(&reader)?));
    }
    reader.verify()?;
    Ok((None, records(&reader)?))
}

/// Walks over the tree and reads each record in the way that lookups read it. Counts the records with a city.
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
