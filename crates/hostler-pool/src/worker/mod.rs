//! Keeps Node processes alive as members of a pool; knows no HTTP.
//!
//! ```text
//! Supervisor --orders--> Keeper --events--> Lifecycle (pure) --actions--> Keeper --> process, channel, pool
//! tasks (turn, channel, health, output) --news--> Keeper --status--> the board --> snapshots
//! ```
//!
//! There is one keeper, and one task, for each worker; all decisions are the lifecycle's.

mod birth;
mod channel;
pub mod guard;
mod health;
mod inspector;
mod keeper;
mod lifecycle;
mod lines;
mod log;
mod message;
mod news;
mod process;
mod running;
mod settings;
mod snapshot;
mod supervisor;
mod yard;

pub use guard::GuardCommand;
pub use log::{Entry, Level, LogSink, Next, Record, Stream, WorkerEvent};
pub use settings::{Address, Bind, Probe, Probing, Recycling, Slots, WorkerFacts, WorkerSettings};
pub use snapshot::{WorkerSnapshot, WorkerState, resident_bytes};
pub use supervisor::Supervisor;
pub use yard::{Yard, YardError, YardSettings};
