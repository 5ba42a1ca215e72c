//! Tests of several parts of this crate together.

mod history;

pub use self::history::Bug;
pub use hostler_testkit::is_planted;
