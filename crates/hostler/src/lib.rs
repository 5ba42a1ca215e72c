//! Hostler, the program. `main.rs` is its table of contents.

pub mod admin;
pub mod announce;
pub mod cli;
pub mod listen;
pub mod nats;
pub mod registrar;
pub mod server;
