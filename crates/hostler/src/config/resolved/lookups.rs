//! What `[geo]` and `[postal]` mean: plain data in which everything has been checked.

use std::path::PathBuf;

use crate::config::file::Lookups;

/// The `[geo]` section. Each field is described at its key: [`crate::config::file::Geo`].
#[derive(Clone, Debug, PartialEq)]
pub struct Geo {
    /// At least one; absolute if the file's folder is.
    pub databases: Vec<PathBuf>,
    /// Who may ask about others.
    pub lookups: Lookups,
}

/// The `[postal]` section. Each field is described at its key: [`crate::config::file::Postal`].
#[derive(Clone, Debug, PartialEq)]
pub struct Postal {
    /// At least one; absolute if the file's folder is.
    pub data: Vec<PathBuf>,
}
