//! A shared HTTP cache after RFC 9111: what may be stored and served, and where it is kept. It never fetches.

mod head;
mod status;

pub use head::{Head, Moment};
pub use status::{CacheStatus, Forward};
