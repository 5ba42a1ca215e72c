//! The databases as they are at the moment, with what was made of them: exchanged whole. Knows no requests.

use std::net::IpAddr;
use std::path::PathBuf;

use bytes::Bytes;
use hostler_address::{AddressKind, plain};
use hostler_lookup::geo::{Atlas, ByRecord, DatabaseError, OpenError};
use jiff::Timestamp;
use serde_json::json;

use super::facts::GeoFacts;
use super::headers::{GeoLines, Headers};

/// Cities whose answer is kept: far more than have visitors at the same time, and a few megabytes at most.
const CITIES: usize = 1 << 15;

/// The same for what members read; that is more text.
const HEADERS: usize = 1 << 13;

/// What is answered where no city is known.
pub(super) const UNKNOWN: &[u8] = b"{\"city\":\"Unknown\"}\n";

/// Databases, and by record the bodies of `/get_city` and what members read.
pub(super) struct Dataset {
    pub atlas: Atlas,
    pub since: Timestamp,
    cities: ByRecord<Bytes>,
    headers: Headers,
}

impl Dataset {
    pub fn open(databases: &[PathBuf], decimals: u8) -> Result<Self, OpenError> {
        Ok(Self {
            atlas: Atlas::open(databases)?,
            since: Timestamp::now(),
            cities: ByRecord::new(CITIES),
            headers: Headers::new(HEADERS, decimals),
        })
    }

    /// Not if a file of it has no cities any more: somebody has put a database of countries in its place.
    pub fn may_replace(&self, older: &Self, without_cities: &[PathBuf]) -> Result<(), OpenError> {
        let has_had =
            |path: &PathBuf| older.atlas.about().any(|about| about.path == *path && about.has_cities);
        match self.atlas.about().find(|about| without_cities.contains(&about.path) && has_had(&about.path)) {
            Some(about) => Err(OpenError::DatabaseError {
                path: about.path.clone(),
                why: DatabaseError::NoCities(about.database_type.clone()),
            }),
            None => Ok(()),
        }
    }

    /// The body that says in which city an address is; none where nobody knows.
    pub fn city(&self, ip: IpAddr) -> Result<Option<Bytes>, DatabaseError> {
        // Databases say things of addresses that are nowhere: some have Australia for those of documentation.
        if !AddressKind::of(ip).has_place() {
            return Ok(None);
        }
        let Some(found) = self.atlas.find(plain(ip))? else { return Ok(None) };
        let Some(record) = found.record() else { return Ok(None) };
        let body = self.cities.get(record, || {
            let place = found.place()?;
            let city = place.city(&["en"]);
            Ok::<_, DatabaseError>(
                city.map_or(Bytes::new(), |city| format!("{}\n", json!({ "city": city })).into()),
            )
        })?;
        Ok(Some(body).filter(|body| !body.is_empty()))
    }

    /// What members read of an address; nothing where nobody knows.
    pub fn headers(&self, ip: IpAddr) -> Result<Option<GeoLines>, DatabaseError> {
        self.headers.of(&self.atlas, ip)
    }

    /// All that is known of an address.
    pub fn facts(
        &self,
        ip: IpAddr,
        source: Option<&'static str>,
        decimals: u8,
    ) -> Result<GeoFacts<'_>, DatabaseError> {
        let mut facts = GeoFacts::unknown(ip, source, decimals);
        if facts.kind.has_place()
            && let Some(found) = self.atlas.find(plain(ip))?
        {
            facts.network = found.network();
            facts.place = found.place()?;
        }
        Ok(facts)
    }
}
