//! The parts of a request that matter for a file. Knows no file system.

use std::sync::Arc;

use hostler_coding::{Coding, EncodingPlan};
use hostler_wire::Fields;

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
    /// How the route encodes responses, and the request fields on which that depends. Set only if `If-Range` has a date (see
    /// [`Conditions::compares_date_of_part`]). Boxed, because few requests have it.
    pub encoding: Option<Box<(Arc<EncodingPlan>, Fields)>>,
}
