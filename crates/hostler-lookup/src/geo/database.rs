//! One MMDB file, mapped into memory. Knows no other file.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use filebuffer::FileBuffer;
use maxminddb::{LookupResult, MaxMindDbError, Metadata, Reader, WithinOptions};

use super::record::Record;
use crate::map::{MappedFile, Mapping};

/// How many records are read when a file is opened, to find out whether it has places.
const SAMPLE: usize = 32;

/// How many records are read to find out whether it has cities. The first addresses may have no city.
const CITY_SAMPLE: usize = 4096;

/// Why a file, or a record in it, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    /// The file is not an MMDB file, or is damaged.
    #[error("{0}")]
    Damaged(MaxMindDbError),
    /// The file has data, but no places. Holds its database type.
    #[error("it has no places: its type is {0:?}")]
    NoPlaces(String),
    /// The file has no cities, but the file that it would replace has them.
    #[error("it has no cities, but the database that it would replace has them: its type is {0:?}")]
    NoCities(String),
    /// The file is for neither IPv4 nor IPv6. Holds its IP version.
    #[error("it is for version {0} of IP, which does not exist")]
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

/// The layout of the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// MaxMind's layout: nested tables, with names in several languages.
    Nested,
    /// The layout of ip-location-db: one flat table of texts.
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

/// The metadata of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct About {
    /// Its path, as it was opened.
    pub path: PathBuf,
    /// For example `GeoLite2-City`.
    pub database_type: String,
    /// The description by language. Empty in the files of ip-location-db.
    pub description: BTreeMap<String, String>,
    /// When it was built, in seconds since 1970.
    pub build_epoch: u64,
    /// 4, or 6 for both families.
    pub ip_version: u16,
    /// The languages of its names.
    pub languages: Vec<String>,
    /// The layout of its records.
    pub schema: Schema,
    /// One of the first records has a city.
    pub has_cities: bool,
    /// Its size in bytes.
    pub size: u64,
    /// The number of nodes in its search tree.
    pub nodes: u32,
}

/// One file.
pub(super) struct Database {
    pub about: About,
    /// Why a copy of the file could not be made. One sentence.
    pub remark: Option<String>,
    reader: Reader<FileBuffer>,
}

impl Database {
    /// Maps a file, and reads a few of its records.
    pub fn open(path: &Path, mapping: Mapping<'_>) -> Result<Self, DatabaseError> {
        let MappedDatabase { reader, size, remark } = map(path, mapping)?;
        let (schema, has_cities) = (look(&reader)?, has_cities(&reader));
        let metadata = reader.metadata();
        if !matches!(metadata.ip_version, 4 | 6) {
            return Err(DatabaseError::IpVersion(metadata.ip_version));
        }
        Ok(Self { about: About { has_cities, ..about(path, size, metadata, schema) }, remark, reader })
    }

    /// An IPv6 address must not be looked up in a database for IPv4.
    pub fn find(&self, ip: IpAddr) -> Result<LookupResult<'_, FileBuffer>, MaxMindDbError> {
        self.reader.lookup(ip)
    }
}

/// A file whose metadata is valid.
pub(super) struct MappedDatabase {
    pub reader: Reader<FileBuffer>,
    pub size: u64,
    pub remark: Option<String>,
}

/// Maps a file. Checks its metadata, and that the sizes in it are right.
pub(super) fn map(path: &Path, mapping: Mapping<'_>) -> Result<MappedDatabase, DatabaseError> {
    let MappedFile { bytes, remark } = MappedFile::open(path, mapping)?;
    let size = bytes.len() as u64;
    Ok(MappedDatabase { reader: Reader::from_source(bytes)?, size, remark })
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

/// A damaged record counts as one without a city. Verification reports the damage.
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
