//! The places of IP addresses and of postal codes: tables in memory, and lookups in them. Knows no HTTP and no
//! configuration.

pub mod geo;
mod map;
pub mod postal;

pub use map::{DataCopies, Mapping};
