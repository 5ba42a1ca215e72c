//! A shared HTTP cache after RFC 9111: what may be stored and served, and where it is kept. It never fetches.

mod entry;
mod flight;
mod head;
mod purge;
mod status;
mod store;

pub use entry::{Entry, Form, Variants};
pub use flight::{Flight, Flights, Landed, Outcome, Role, Waiting};
pub use head::{Head, Moment};
pub use purge::Purge;
pub use status::{CacheStatus, Forward};
pub use store::{Cache, Counts};
