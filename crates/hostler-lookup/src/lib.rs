//! Where an address is, and where a postal code is: tables in memory, and what is found in them.

pub mod geo;
pub mod postal;
