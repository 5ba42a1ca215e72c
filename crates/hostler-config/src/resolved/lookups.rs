//! The meaning of `[geo]` and `[postal]`: plain data that has been checked.

use std::path::PathBuf;
use std::time::Duration;

use crate::file::Lookups;
use crate::value::Origin;

/// The `[geo]` section. [`crate::file::Geo`] describes each key.
#[derive(Clone, Debug, PartialEq)]
pub struct Geo {
    /// At least one. Absolute if the file's folder is.
    pub databases: Vec<PathBuf>,
    /// Which clients may look up other addresses.
    pub lookups: Lookups,
    /// Decimals of coordinates.
    pub decimals: u8,
    /// How long caches may keep responses about addresses in the path.
    pub max_age: Duration,
    /// The origins whose pages may read responses. Empty: none.
    pub cors: Vec<Origin>,
    /// The attribution of the data.
    pub attribution: Option<String>,
}

/// The `[postal]` section. [`crate::file::Postal`] describes each key.
#[derive(Clone, Debug, PartialEq)]
pub struct Postal {
    /// At least one. Absolute if the file's folder is.
    pub data: Vec<PathBuf>,
    /// Whether the old paths answer exactly as the old service did.
    pub compat_strings: bool,
    /// Whether the old paths answer with scripts.
    pub jsonp: bool,
    /// The origins whose pages may read responses. Empty: none.
    pub cors: Vec<Origin>,
}
