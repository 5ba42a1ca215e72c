//! The current databases, with cached results from them. They are replaced together. Knows no requests.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use hostler_address::{AddressKind, plain};
use hostler_config as config;
use hostler_lookup::Mapping;
use hostler_lookup::geo::{ByRecord, DatabaseError, GeoDatabases, OpenError};
use jiff::Timestamp;
use serde_json::json;

use super::facts::GeoFacts;
use super::headers::{GeoLines, Headers};

/// How many bodies of `/get_city` are cached: more than the cities with visitors at the same time, and a few megabytes at
/// most.
const CITIES: usize = 1 << 15;

/// How many sets of header fields for members are cached. These are larger.
const HEADERS: usize = 1 << 13;

/// The body if no city is known.
pub(super) const UNKNOWN: &[u8] = b"{\"city\":\"Unknown\"}\n";

/// Databases, and by record the cached bodies of `/get_city` and the fields for members.
pub(super) struct GeoDataset {
    pub databases: Arc<GeoDatabases>,
    pub since: Timestamp,
    cities: ByRecord<Bytes>,
    headers: Headers,
}

impl GeoDataset {
    pub fn open(settings: &config::Geo, mapping: Mapping<'_>) -> Result<Self, OpenError> {
        let databases = Arc::new(GeoDatabases::open(&settings.databases, mapping)?);
        Ok(Self::of(databases, Timestamp::now(), settings.decimals))
    }

    /// The same databases. Their files may be others by now, which are not used before they are verified.
    pub fn with_decimals(&self, decimals: u8) -> Self {
        Self::of(self.databases.clone(), self.since, decimals)
    }

    fn of(databases: Arc<GeoDatabases>, since: Timestamp, decimals: u8) -> Self {
        Self { databases, since, cities: ByRecord::new(CITIES), headers: Headers::new(HEADERS, decimals) }
    }

    /// Errors if a file has no cities any more, for example because a database of countries has replaced it.
    pub fn may_replace(&self, older: &Self, without_cities: &[PathBuf]) -> Result<(), OpenError> {
        let has_had =
            |path: &PathBuf| older.databases.about().any(|about| about.path == *path && about.has_cities);
        let has_lost = |path: &PathBuf| without_cities.contains(path) && has_had(path);
        match self.databases.about().find(|about| has_lost(&about.path)) {
            Some(about) => Err(OpenError::DatabaseError {
                path: about.path.clone(),
                why: DatabaseError::NoCities(about.database_type.clone()),
            }),
            None => Ok(()),
        }
    }

    /// The body with the city of an address. `None` if it is not known.
    pub fn city(&self, ip: IpAddr) -> Result<Option<Bytes>, DatabaseError> {
        // Databases have wrong entries for addresses without a place, for example Australia for those of documentation.
        if !AddressKind::of(ip).has_place() {
            return Ok(None);
        }
        let Some(found) = self.databases.find(plain(ip))? else { return Ok(None) };
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

    /// The fields for members about an address. `None` if nothing is known.
    pub fn headers(&self, ip: IpAddr) -> Result<Option<GeoLines>, DatabaseError> {
        self.headers.of(&self.databases, ip)
    }

    /// All facts about an address.
    pub fn facts(
        &self,
        ip: IpAddr,
        source: Option<&'static str>,
        decimals: u8,
    ) -> Result<GeoFacts<'_>, DatabaseError> {
        let mut facts = GeoFacts::unknown(ip, source, decimals);
        if facts.kind.has_place()
            && let Some(found) = self.databases.find(plain(ip))?
        {
            facts.network = found.network();
            facts.place = found.place()?;
        }
        Ok(facts)
    }
}
