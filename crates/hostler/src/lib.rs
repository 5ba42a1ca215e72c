//! The modules of the program. `main.rs` calls them.
#![expect(
    missing_docs,
    reason = "the modules of a program have no users outside; a comment stands where it explains something"
)]

pub mod admin;
pub mod cli;
mod html;
pub mod listen;
pub mod server;
pub mod traces;
