//! Keeps Node processes alive as members of a pool. Knows no HTTP.
//!
//! ```text
//! Supervisor --commands--> PoolSupervisor --events--> Plan (pure) --actions--> PoolSupervisor --starts, commands--> WorkerTasks
//! PoolSupervisor --commands--> WorkerTask --events--> Lifecycle (pure) --actions--> WorkerTask --> process, channel, pool
//! tasks (turn, channel, health, output) --news--> WorkerTask --reports--> PoolSupervisor
//!                                             WorkerTask --status--> the board --> snapshots
//! ```
//!
//! Each pool has one pool supervisor and each worker has one worker task; both are tasks of the runtime. The lifecycle
//! decides what happens to one worker. The plan decides which workers exist.

#[macro_use(planted)]
extern crate hostler_dispatch;

mod boot_gate;
mod budget;
mod capacity;
mod channel;
mod collecting;
mod compile_cache;
mod concurrency;
mod context;
mod control_groups;
mod cpus;
mod development;
mod exit_watch;
mod failed_boot;
mod foreign_process;
pub mod guard;
mod health;
mod heartbeat;
mod inspection;
mod inspector;
mod leaving;
mod lifecycle;
mod lines;
mod log;
mod main_thread;
mod memory_group;
mod message;
mod message_sender;
mod news;
mod node_channel;
mod node_figures;
mod own_children;
mod pool_supervisor;
mod port_owner;
mod process;
mod process_end;
mod process_files;
mod recycling;
mod recycling_watch;
mod rollout;
mod rotation;
mod running;
mod runtime_folder;
mod scaling;
mod settings;
mod shared;
mod snapshot;
mod spawn;
mod start_files;
mod supervisor;
#[cfg(test)]
mod tests;
mod vitals;
mod worker_task;

pub use budget::Boots;
pub use context::{SupervisorContext, SupervisorContextError, SupervisorContextSettings};
pub use control_groups::{ControlGroups, GroupCpu};
pub use cpus::{CpuList, CpuSetting, CpuTicks, FreeCpus, usable_cpus};
pub use development::Development;
pub use exit_watch::{ExitCause, ExitWatch, UnfinishedRequest};
pub use failed_boot::{FailedBoot, NeverReady};
pub use guard::GuardCommand;
pub use inspection::{InspectionEvent, InspectionKind};
pub use log::{LogEntry, LogSink, NextLine, OutputStream, WorkerEvent, WorkerLogLevel, WorkerRecord};
pub use memory_group::{GroupMemory, MemoryGroups};
pub use node_figures::{CollectionTimes, GarbageCollections, HeapUse, LoopDelay, NodeFigures};
pub use own_children::{OwnChild, reap_orphans};
pub use process_files::resident_bytes;
pub use recycling::HeavyStart;
pub use rollout::{Reached, RestartError, Restarted};
pub use rotation::Rotation;
pub use runtime_folder::{can_hold_sockets, is_abandoned};
pub use scaling::WorkerMemory;
pub use settings::{
    Bind, CompileCache, Probe, Probing, Recycling, SettingsChange, Slots, Spares, WorkerAddress, WorkerFacts,
    WorkerSettings,
};
pub use snapshot::{LastRollout, RolloutSnapshot, ScalingSnapshot, WorkerSnapshot, WorkerState};
pub use supervisor::{NewRestart, Supervisor};
