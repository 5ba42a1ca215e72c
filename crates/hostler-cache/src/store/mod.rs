//! The store of entries in memory. The tier that several Hostlers share is behind it. Decides nothing about HTTP.

mod memory;

pub use memory::{Cache, Counts};
