//! What `[geo]` and `[postal]` mean: plain data in which everything has been checked.

use std::path::PathBuf;
use std::time::Duration;

use crate::file::Lookups;
use crate::value::Origin;

/// The `[geo]` section. Each field is described at its key: [`crate::file::Geo`].
#[derive(Clone, Debug, PartialEq)]
pub struct Geo {
    /// At least one; absolute if the file's folder is.
    pub databases: Vec<PathBuf>,
    /// Who may ask about others.
    pub lookups: Lookups,
    /// Of coordinates.
    pub decimals: u8,
    /// Of answers about named addresses.
    pub max_age: Duration,
    /// None: nobody's pages may ask.
    pub cors: Vec<Origin>,
    /// Whom to thank.
    pub attribution: Option<String>,
}

/// The `[postal]` section. Each field is described at its key: [`crate::file::Postal`].
#[derive(Clone, Debug, PartialEq)]
pub struct Postal {
    /// At least one; absolute if the file's folder is.
    pub data: Vec<PathBuf>,
    /// The old paths answer in the old words.
    pub compat_strings: bool,
    /// The old paths answer with scripts.
    pub jsonp: bool,
    /// None: nobody's pages may ask.
    pub cors: Vec<Origin>,
}
