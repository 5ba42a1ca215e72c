//! Where entries lie: in memory, and behind it in a tier that several Hostlers share. Decides nothing about HTTP.

mod memory;

pub use memory::{Cache, Counts};
