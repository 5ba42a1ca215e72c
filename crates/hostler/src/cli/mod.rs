//! The command line: what can be said, and the commands that need no server. Knows the configuration, nothing
//! that runs.

mod admin;
mod args;
mod check;
mod order;
mod pack;
pub mod reference;
mod routes;
mod start;
mod status;

pub use args::{Args, Ask, Check, Command, Pack, Pause, Purge, Restart, Resume, Routes, Run, Start, Status};
pub use check::{check, summary};
pub use order::{pause, purge, reload, restart, resume, upgrade};
pub use pack::pack;
pub use routes::routes;
pub use start::start;
pub use status::status;

#[cfg(test)]
mod tests;
