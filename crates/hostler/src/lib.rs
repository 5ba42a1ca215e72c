//! Hostler, the program. `main.rs` is its table of contents.

pub mod admin;
pub mod announce;
pub mod cache;
pub mod cli;
pub mod exchange;
pub mod files;
pub mod gateway;
pub mod journal;
pub mod listen;
pub mod nats;
pub mod proxy;
pub mod registrar;
pub mod route;
pub mod server;
