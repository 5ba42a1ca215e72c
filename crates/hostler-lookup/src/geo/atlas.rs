//! All databases of a service: one for each family of addresses, or one for both. Knows not where a question comes from.

use std::net::IpAddr;
use std::path::PathBuf;

use filebuffer::FileBuffer;
use maxminddb::LookupResult;

use super::database::{About, Database, DatabaseError};
use super::place::Place;
use super::record::Record;

/// Databases that are opened, and replaced, together.
pub struct Atlas {
    databases: Vec<Database>,
    /// Which of them knows IPv4, and which IPv6.
    v4: Option<usize>,
    v6: Option<usize>,
}

/// Why databases cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// One of the files is no good.
    #[error("{}: {why}", path.display())]
    DatabaseError {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: DatabaseError,
    },
    /// Nobody could say which of the two to ask.
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
    /// The file that it is about.
    pub fn path(&self) -> &PathBuf {
        match self {
            Self::DatabaseError { path, .. } | Self::Twice { other: path, .. } => path,
        }
    }
}

/// Which record of which database: the same for all addresses that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordId(pub(super) u64);

/// What was found for an address.
pub struct Found<'a> {
    database: usize,
    result: LookupResult<'a, FileBuffer>,
}

impl Atlas {
    /// Maps files: one for all addresses, or one for each family.
    pub fn open(paths: &[PathBuf]) -> Result<Self, OpenError> {
        let broken = |path: &PathBuf, why| OpenError::DatabaseError { path: path.clone(), why };
        let open = |path: &PathBuf| Database::open(path).map_err(|why| broken(path, why));
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
        // A database for IPv6 has the IPv4 addresses too, unless there is one for them.
        Ok(Self { v4: v4.or(v6), v6, databases })
    }

    /// What each file says of itself.
    pub fn about(&self) -> impl Iterator<Item = &About> {
        self.databases.iter().map(|database| &database.about)
    }

    /// Looks an address up; none if no database is for its family. IPv4 must be written as IPv4.
    pub fn find(&self, ip: IpAddr) -> Result<Option<Found<'_>>, DatabaseError> {
        let Some(database) = (if ip.is_ipv4() { self.v4 } else { self.v6 }) else { return Ok(None) };
        let result = self.databases[database].find(ip)?;
        Ok(Some(Found { database, result }))
    }
}

impl<'a> Found<'a> {
    /// The record; none if the database has nothing for the address.
    pub fn record(&self) -> Option<RecordId> {
        // Two databases at most, none of them near 2^63 bytes long.
        self.result.offset().map(|offset| RecordId((offset as u64) << 1 | self.database as u64))
    }

    /// What the record says; nothing where there is none.
    pub fn place(&self) -> Result<Place<'a>, DatabaseError> {
        let record = self.result.decode::<Record<'a>>()?;
        Ok(record.map(Place::from).unwrap_or_default())
    }

    /// All addresses around it of which the same is known: an address and the length of the prefix.
    pub fn network(&self) -> Option<(IpAddr, u8)> {
        self.result.network().ok().map(|network| (network.ip(), network.prefix()))
    }
}
