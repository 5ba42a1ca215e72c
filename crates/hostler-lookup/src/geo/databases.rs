//! All databases of a service: one for each family of addresses, or one for both. Does not know where a query comes from.

use std::net::IpAddr;
use std::path::PathBuf;

use filebuffer::FileBuffer;
use maxminddb::LookupResult;

use super::database::{About, Database, DatabaseError};
use super::place::GeoPlace;
use super::record::Record;
use crate::Mapping;

/// Databases that are opened and replaced together.
pub struct GeoDatabases {
    databases: Vec<Database>,
    /// The indices of the databases for IPv4 and for IPv6.
    v4: Option<usize>,
    v6: Option<usize>,
}

/// Why databases cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// One of the files cannot be used.
    #[error("{}: {why}", path.display())]
    DatabaseError {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: DatabaseError,
    },
    /// Two files are for the same family of addresses.
    #[error("{} and {} are both for IPv{family}", one.display(), other.display())]
    Twice {
        /// The first file.
        one: PathBuf,
        /// The second.
        other: PathBuf,
        /// 4 or 6.
        family: u8,
    },
}

impl OpenError {
    /// Whether a file could not be read at all, whatever is in it.
    pub fn is_unreadable(&self) -> bool {
        matches!(self, Self::DatabaseError { why: DatabaseError::Unreadable(_), .. })
    }

    /// The file with the error.
    pub fn path(&self) -> &PathBuf {
        match self {
            Self::DatabaseError { path, .. } | Self::Twice { other: path, .. } => path,
        }
    }
}

/// The number of a record in one of the databases. All addresses with the same record have the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordId(pub(super) u64);

/// The result for an address.
pub struct Found<'a> {
    database: usize,
    result: LookupResult<'a, FileBuffer>,
}

impl GeoDatabases {
    /// Maps the files: one for all addresses, or one for each family.
    pub fn open(paths: &[PathBuf], mapping: Mapping<'_>) -> Result<Self, OpenError> {
        let broken = |path: &PathBuf, why| OpenError::DatabaseError { path: path.clone(), why };
        let open = |path: &PathBuf| Database::open(path, mapping).map_err(|why| broken(path, why));
        let databases = paths.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let of = |version: u16, family: u8| {
            let mut found = databases.iter().enumerate().filter(|(_, it)| it.about.ip_version == version);
            match (found.next(), found.next()) {
                (Some((_, one)), Some((_, other))) => Err(OpenError::Twice {
                    one: one.about.path.clone(),
                    other: other.about.path.clone(),
                    family,
                }),
                (first, _) => Ok(first.map(|(index, _)| index)),
            }
        };
        let (v4, v6) = (of(4, 4)?, of(6, 6)?);
        // A database for IPv6 contains IPv4 addresses too. They are used unless another database is for IPv4.
        Ok(Self { v4: v4.or(v6), v6, databases })
    }

    /// The metadata of each file.
    pub fn about(&self) -> impl Iterator<Item = &About> {
        self.databases.iter().map(|database| &database.about)
    }

    /// One sentence for each file of which no copy could be made.
    pub fn remarks(&self) -> impl Iterator<Item = &str> {
        self.databases.iter().filter_map(|database| database.remark.as_deref())
    }

    /// Looks up an address. `None` if no database is for its family. The address must not be an IPv4-mapped one.
    pub fn find(&self, ip: IpAddr) -> Result<Option<Found<'_>>, DatabaseError> {
        let Some(database) = (if ip.is_ipv4() { self.v4 } else { self.v6 }) else { return Ok(None) };
        let result = self.databases[database].find(ip)?;
        Ok(Some(Found { database, result }))
    }
}

impl<'a> Found<'a> {
    /// The number of the record. `None` if the database has no record for the address.
    pub fn record(&self) -> Option<RecordId> {
        // There are at most two databases, and none of them is near 2^63 bytes long.
        self.result.offset().map(|offset| RecordId((offset as u64) << 1 | self.database as u64))
    }

    /// The place in the record. Empty if there is no record.
    pub fn place(&self) -> Result<GeoPlace<'a>, DatabaseError> {
        let record = self.result.decode::<Record<'a>>()?;
        Ok(record.map(GeoPlace::from).unwrap_or_default())
    }

    /// The network of all addresses around it with the same record: an address and the length of the prefix.
    pub fn network(&self) -> Option<(IpAddr, u8)> {
        self.result.network().ok().map(|network| (network.ip(), network.prefix()))
    }
}
