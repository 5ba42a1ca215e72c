//! One MMDB file, mapped into memory. Knows no other file.
//!
//! The map shows what becomes of the file: whoever writes into it, or cuts it off, takes the ground from under us. A newer
//! file has to take its name by a rename.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use filebuffer::FileBuffer;
use maxminddb::{LookupResult, MaxMindDbError, Metadata, Reader, WithinOptions};

use super::record::Record;

/// So many records are looked at when a file is opened: enough to see that it is no database of places.
const SAMPLE: usize = 32;

/// The same, to see that it has cities: of the first addresses, some may be in none that is known.
const CITY_SAMPLE: usize = 4096;

/// A file that is no good, or a record in it.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// It cannot be read at all.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    /// It is no MMDB file, or a damaged one.
    #[error("{0}")]
    Damaged(MaxMindDbError),
    /// There are only other things in it.
    #[error("it has no places in it: its type is {0:?}")]
    NoPlaces(String),
    /// What it would replace has cities.
    #[error("it has no cities, and what it would replace has them: its type is {0:?}")]
    NoCities(String),
    /// It is for neither IPv4 nor IPv6.
    #[error("it is for version {0} of IP, which there is not")]
    IpVersion(u16),
}

impl From<MaxMindDbError> for DatabaseError {
    fn from(error: MaxMindDbError) -> Self {
        match error {
            MaxMindDbError::Io(error) => Self::Unreadable(error),
            other => Self::Damaged(other),
        }
    }
}

/// How records are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// MaxMind's: tables in tables, names in several languages.
    Nested,
    /// That of ip-location-db: one table of texts.
    Flat,
}

impl Schema {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nested => "nested",
            Self::Flat => "flat",
        }
    }
}

/// What a file says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct About {
    /// Its name, as it was opened.
    pub path: PathBuf,
    /// As `GeoLite2-City`.
    pub database_type: String,
    /// By language; empty in the files of ip-location-db.
    pub description: BTreeMap<String, String>,
    /// When it was made, in seconds since 1970.
    pub build_epoch: u64,
    /// 4, or 6 for both.
    pub ip_version: u16,
    /// Languages of its names.
    pub languages: Vec<String>,
    /// How records are laid out.
    pub schema: Schema,
    /// One of the first records names a city.
    pub has_cities: bool,
    /// Bytes.
    pub size: u64,
    /// Nodes of its search tree.
    pub nodes: u32,
}

/// One file.
pub(super) struct Database {
    pub about: About,
    reader: Reader<FileBuffer>,
}

impl Database {
    /// Maps a file, and looks at a few of its records.
    pub fn open(path: &Path) -> Result<Self, DatabaseError> {
        let (reader, size) = map(path)?;
        let (schema, has_cities) = (look(&reader)?, has_cities(&reader));
        let metadata = reader.metadata();
        if !matches!(metadata.ip_version, 4 | 6) {
            return Err(DatabaseError::IpVersion(metadata.ip_version));
        }
        Ok(Self { about: About { has_cities, ..about(path, size, metadata, schema) }, reader })
    }

    /// An IPv6 address must not be looked for where there are none.
    pub fn find(&self, ip: IpAddr) -> Result<LookupResult<'_, FileBuffer>, MaxMindDbError> {
        self.reader.lookup(ip)
    }
}

/// Maps a file; its metadata and the sizes that they give are right.
pub(super) fn map(path: &Path) -> Result<(Reader<FileBuffer>, u64), DatabaseError> {
    let file = FileBuffer::open(path)?;
    let size = file.len() as u64;
    Ok((Reader::from_source(file)?, size))
}

fn look(reader: &Reader<FileBuffer>) -> Result<Schema, DatabaseError> {
    let (mut seen, mut flat, mut places) = (0, false, 0);
    for network in reader.networks(WithinOptions::default())?.take(SAMPLE) {
        let Some(record) = network?.decode::<Record<'_>>()? else { continue };
        seen += 1;
        flat |= record.is_flat();
        places += usize::from(record.is_place());
    }
    if seen > 0 && places == 0 {
        return Err(DatabaseError::NoPlaces(reader.metadata().database_type.clone()));
    }
    Ok(if flat { Schema::Flat } else { Schema::Nested })
}

/// What is damaged further on names none; whoever verifies the file says so.
fn has_cities(reader: &Reader<FileBuffer>) -> bool {
    let networks = reader.networks(WithinOptions::default()).into_iter().flatten().take(CITY_SAMPLE);
    let names_one = |network: LookupResult<'_, FileBuffer>| {
        network.decode::<Record<'_>>().is_ok_and(|record| record.is_some_and(|record| record.has_city()))
    };
    networks.map_while(Result::ok).any(names_one)
}

fn about(path: &Path, size: u64, metadata: &Metadata, schema: Schema) -> About {
    About {
        path: path.to_owned(),
        database_type: metadata.database_type.clone(),
        description: metadata.description.clone(),
        build_epoch: metadata.build_epoch,
        ip_version: metadata.ip_version,
        languages: metadata.languages.clone(),
        schema,
        has_cities: false,
        size,
        nodes: metadata.node_count,
    }
}
