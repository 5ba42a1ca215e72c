//! Hostler, the program. `main.rs` is its table of contents.

pub mod cli;
pub mod config;
