//! Keeps Node processes alive as members of a pool; knows no HTTP.
//!
//! ```text
//! Supervisor --commands--> Foreman --events--> Plan (pure) --actions--> Foreman --hires, orders--> Keepers
//! Foreman --orders--> Keeper --events--> Lifecycle (pure) --actions--> Keeper --> process, channel, pool
//! tasks (turn, channel, health, output) --news--> Keeper --reports--> Foreman
//!                                                 Keeper --status--> the board --> snapshots
//! ```
//!
//! There is one foreman for each pool, and one keeper for each worker, each of them one task. What becomes of one worker the
//! lifecycle decides; who is there at all, the plan.

mod birth;
mod budget;
mod channel;
mod collecting;
mod concurrency;
mod crew;
mod fate;
mod foreman;
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
mod pulse;
mod recycling;
mod rollout;
mod running;
mod settings;
mod snapshot;
mod supervisor;
mod vitals;
mod yard;

pub use budget::Boots;
pub use fate::{Cause, Fate};
pub use guard::GuardCommand;
pub use log::{Entry, Level, LogSink, Next, Record, Stream, WorkerEvent};
pub use rollout::RestartError;
pub use settings::{
    Address, Bind, Change, Probe, Probing, Recycling, Slots, Spares, WorkerFacts, WorkerSettings,
};
pub use snapshot::{LastRollout, RolloutSnapshot, WorkerSnapshot, WorkerState, resident_bytes};
pub use supervisor::{Restarted, Supervisor};
pub use yard::{Yard, YardError, YardSettings};
