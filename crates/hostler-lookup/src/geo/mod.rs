//! The places of addresses: MMDB files, mapped into memory, and the lookups in them. Knows no HTTP and no configuration.

mod by_record;
mod database;
mod databases;
mod place;
mod record;
mod verify;

pub use by_record::ByRecord;
pub use database::{About, DatabaseError, Schema};
pub use databases::{Found, GeoDatabases, OpenError, RecordId};
pub use place::{GeoPlace, Named};
pub use verify::{Verified, verify};
