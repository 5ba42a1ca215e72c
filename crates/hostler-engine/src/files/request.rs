//! The parts of a request that matter for a file. Knows no file system.

use hostler_coding::Coding;

use super::conditions::Conditions;
use super::place::FilePath;

/// The parts of a request that matter for a file.
pub(super) struct FileRequest {
    pub place: FilePath,
    /// True for GET, false for HEAD.
    pub wants_body: bool,
    pub conditions: Conditions,
    /// In order of preference.
    pub codings: Vec<Coding>,
    pub takes_page: bool,
}
