//! A worker's figures of one moment, as plain data.

use std::sync::Arc;
use std::time::Duration;

use hostler_dispatch::MemberId;
use hostler_dispatch::json::milliseconds;
use serde::Serialize;
use tokio::time::Instant;

use super::concurrency::ConcurrencyTuner;
use super::lifecycle::Standing;
use super::rollout::WorkerTaskId;
use super::vitals::Vitals;

/// What a worker is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkerState {
    /// It waits for its turn to boot, or boots.
    Booting,
    /// It is asked for its warm-up paths.
    Warming,
    /// It gets requests.
    Ready,
    /// A spare: it is ready and gets no requests until a worker is missing.
    Standby,
    /// It gets no more requests and finishes those that it has.
    Retiring,
    /// It is ending.
    Stopping,
    /// It has crashed and rests.
    #[serde(rename = "backing off")]
    BackingOff,
    /// It has ended for good.
    Stopped,
}

/// One worker's figures of one moment. Durations are milliseconds in JSON.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerSnapshot {
    /// Its number in the pool, from 1.
    pub index: usize,
    /// How many times a worker of this number has been started, this time included.
    pub generation: u64,
    /// The process that listens, or else the one that was started.
    pub pid: Option<u32>,
    /// What it is doing.
    pub state: WorkerState,
    /// Since its process was started.
    #[serde(rename = "uptime_ms", serialize_with = "milliseconds")]
    pub uptime: Option<Duration>,
    /// How many times it has been started again.
    pub restarts: u64,
    /// Crashes in a row; a worker that has been ready for ten seconds has none.
    pub crashes: u32,
    /// Until it boots again, while it rests.
    #[serde(rename = "restarts_in_ms", serialize_with = "milliseconds")]
    pub restarts_in: Option<Duration>,
    /// How its process ended the last time.
    pub last_exit: Option<String>,
    /// What was wrong with it the last time.
    pub last_error: Option<String>,
    /// Why a worker of this number was recycled the last time.
    pub recycled: Option<Arc<str>>,
    /// Where it was when it hung the last time, the innermost call first; none if that could not be told.
    pub stack: Option<Vec<String>>,
    /// Since it hung the last time.
    #[serde(rename = "hung_ago_ms", serialize_with = "milliseconds")]
    pub hung_ago: Option<Duration>,
    /// The share of time that its event loop is at work; asked for only while it has requests.
    pub utilisation: Option<f64>,
    /// Why it may have so many requests at once, if Hostler chooses that.
    pub slots_reason: Option<String>,
    /// Times that it has collected garbage between requests.
    pub collections: u64,
    /// How long that took in all.
    #[serde(rename = "collecting_ms", serialize_with = "milliseconds")]
    pub collecting: Option<Duration>,
    /// Resident memory in bytes.
    pub memory: Option<u64>,
    /// Which member of the pool it is.
    pub member: Option<MemberId>,
}

/// What a pool's restart is doing, or how the last one went. Durations are milliseconds in JSON.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RolloutSnapshot {
    /// Since a restart was ordered that is still under way.
    #[serde(rename = "running_ms", serialize_with = "milliseconds")]
    pub running: Option<Duration>,
    /// How many workers are of the newest generation.
    pub done: usize,
    /// How many workers there are.
    pub total: usize,
    /// The worker that is being replaced, by a restart or by recycling.
    pub replacing: Option<usize>,
    /// How the last restart ended.
    pub last: Option<LastRollout>,
}

/// How a restart ended.
#[derive(Clone, Debug, Serialize)]
pub struct LastRollout {
    /// Whether all workers were replaced.
    pub succeeded: bool,
    /// In words.
    pub result: String,
    /// How long ago.
    #[serde(rename = "ago_ms", serialize_with = "milliseconds")]
    pub ago: Duration,
}

/// What a pool supervisor says of its plan; a snapshot is made from it when asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct RolloutStatus {
    pub since: Option<Instant>,
    pub done: usize,
    pub total: usize,
    pub replacing: Option<usize>,
    pub last: Option<(Instant, Result<String, String>)>,
}

impl RolloutStatus {
    pub fn snapshot(&self, now: Instant) -> RolloutSnapshot {
        let last = self.last.as_ref().map(|(at, result)| LastRollout {
            succeeded: result.is_ok(),
            result: result.clone().unwrap_or_else(|error| error),
            ago: now.saturating_duration_since(*at),
        });
        let running = self.since.map(|since| now.saturating_duration_since(since));
        RolloutSnapshot { running, done: self.done, total: self.total, replacing: self.replacing, last }
    }
}

/// What a worker task says of its worker whenever something has changed; a snapshot is made from it when asked for.
#[derive(Clone, Debug)]
pub(super) struct WorkerStatus {
    pub task: WorkerTaskId,
    pub standing: Standing,
    /// It was hired as a spare.
    pub spare: bool,
    /// How many restarts had been ordered when it was hired.
    pub release: u64,
    /// Since when it is ready, or stands by.
    pub ready_at: Option<Instant>,
    /// Which part of the recycling limits is its own, drawn anew at each start.
    pub share: f64,
    pub recycled: Option<Arc<str>>,
    pub index: usize,
    pub generation: u64,
    pub pid: Option<u32>,
    pub state: WorkerState,
    pub started: Option<Instant>,
    pub crashes: u32,
    pub restarts_at: Option<Instant>,
    pub last_exit: Option<String>,
    pub last_error: Option<String>,
    pub stack: Option<Vec<String>>,
    pub hung_at: Option<Instant>,
    pub vitals: Arc<Vitals>,
    pub concurrency: Option<Arc<ConcurrencyTuner>>,
    pub member: Option<MemberId>,
}

impl WorkerStatus {
    pub fn new(task: WorkerTaskId, index: usize, standing: Standing, release: u64) -> Self {
        Self {
            task,
            standing,
            spare: standing == Standing::Spare,
            release,
            ready_at: None,
            share: 1.0,
            recycled: None,
            index,
            generation: 0,
            pid: None,
            state: WorkerState::Booting,
            started: None,
            crashes: 0,
            restarts_at: None,
            last_exit: None,
            last_error: None,
            stack: None,
            hung_at: None,
            vitals: Arc::default(),
            concurrency: None,
            member: None,
        }
    }

    pub fn snapshot(&self, now: Instant) -> WorkerSnapshot {
        let (collections, collecting) = self.vitals.collections();
        WorkerSnapshot {
            index: self.index,
            generation: self.generation,
            pid: self.pid,
            state: self.state,
            uptime: self.started.map(|started| now.saturating_duration_since(started)),
            restarts: self.generation.saturating_sub(1),
            crashes: self.crashes,
            restarts_in: self.restarts_at.map(|at| at.saturating_duration_since(now)),
            last_exit: self.last_exit.clone(),
            last_error: self.last_error.clone(),
            recycled: self.recycled.clone(),
            stack: self.stack.clone(),
            hung_ago: self.hung_at.map(|at| now.saturating_duration_since(at)),
            utilisation: self.vitals.utilisation(),
            slots_reason: self.concurrency.as_ref().map(|concurrency| concurrency.reason()),
            collections,
            collecting: (collections > 0).then_some(collecting),
            memory: self.pid.and_then(resident_bytes),
            member: self.member,
        }
    }
}

/// A process's resident memory in bytes, while it lives: the second figure of its statm, which counts pages.
pub fn resident_bytes(pid: u32) -> Option<u64> {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
