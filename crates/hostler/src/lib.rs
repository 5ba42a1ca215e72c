//! Hostler, the program. `main.rs` is its table of contents.

pub mod exchange;
pub mod proxy;
