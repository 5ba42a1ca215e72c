//! The command line: what can be said, and the commands that need no server. Knows the configuration, nothing
//! that runs.

mod args;
mod check;
pub mod reference;
mod start;
mod status;

pub use args::{Args, Check, Command, Run, Start, Status};
pub use check::{check, summary};
pub use start::start;
pub use status::status;

#[cfg(test)]
mod tests;
