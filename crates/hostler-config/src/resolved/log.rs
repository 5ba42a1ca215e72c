//! The meaning of `[log]`: plain data that has been checked.

use std::path::PathBuf;
use std::time::Duration;

use crate::file::LogLevel;

/// The `[log]` section. [`crate::file::Log`] describes each key.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// The lowest level of events.
    pub level: LogLevel,
    /// One of so many ordinary requests, at least 1.
    pub sample: u32,
    /// Slower requests are not ordinary.
    pub slow: Duration,
    /// More names of secret parameters.
    pub redact: Vec<String>,
    /// A file in an existing folder. `None`: standard output.
    pub file: Option<PathBuf>,
}
