//! The figures of a worker and of a restart at one moment, as plain data. Decides nothing.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hostler_dispatch::MemberId;
use hostler_dispatch::json::milliseconds;
use serde::Serialize;
use tokio::time::Instant;

use super::capacity::Capacity;
use super::cpus::ShownPlace;
use super::inspection::InspectionKind;
use super::lifecycle::{Drain, LifecycleState, PoolRole, is_forgiven};
use super::node_figures::NodeFigures;
use super::process_files::resident_bytes;
use super::recycling::HeavyStart;
use super::rollout::WorkerTaskId;
use super::settings::Slots;
use super::vitals::Vitals;

/// The state of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
pub enum WorkerState {
    /// It waits for its turn to boot, or boots.
    Booting,
    /// Its warm-up paths are being requested.
    Warming,
    /// It gets requests.
    Ready,
    /// A spare: it is ready and gets no requests until a worker is missing or blocked.
    Standby,
    /// It gets no requests and comes back: it is drained, or a heap snapshot is taken.
    OutOfRotation,
    /// It gets no more requests and finishes its running ones.
    Retiring,
    /// It is stopping.
    Stopping,
    /// It has crashed and waits before it boots again.
    BackingOff,
    /// It has stopped for good.
    Stopped,
}

impl From<LifecycleState> for WorkerState {
    fn from(state: LifecycleState) -> Self {
        match state {
            LifecycleState::Queued | LifecycleState::Booting { .. } => Self::Booting,
            LifecycleState::Warming { .. } => Self::Warming,
            LifecycleState::Ready => Self::Ready,
            LifecycleState::Standby => Self::Standby,
            LifecycleState::Retiring { .. } | LifecycleState::SteppingBack => Self::Retiring,
            LifecycleState::Aside { .. } => Self::OutOfRotation,
            LifecycleState::Diagnosing { .. }
            | LifecycleState::Stopping { .. }
            | LifecycleState::Killed { .. } => Self::Stopping,
            LifecycleState::BackingOff { .. } => Self::BackingOff,
            LifecycleState::Stopped => Self::Stopped,
        }
    }
}

impl WorkerState {
    /// All states, in the order of a worker's life.
    pub const ALL: [Self; 9] = [
        Self::Booting,
        Self::Warming,
        Self::Ready,
        Self::Standby,
        Self::OutOfRotation,
        Self::Retiring,
        Self::Stopping,
        Self::BackingOff,
        Self::Stopped,
    ];

    /// The name in the status and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Booting => "booting",
            Self::Warming => "warming",
            Self::Ready => "ready",
            Self::Standby => "standby",
            Self::OutOfRotation => "out of rotation",
            Self::Retiring => "retiring",
            Self::Stopping => "stopping",
            Self::BackingOff => "backing off",
            Self::Stopped => "stopped",
        }
    }
}

impl From<WorkerState> for &'static str {
    fn from(state: WorkerState) -> Self {
        state.name()
    }
}

/// The figures of one worker at one moment. JSON has durations in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerSnapshot {
    /// Its number in the pool, from 1.
    pub index: usize,
    /// How many times a worker of this number has been started, this time included.
    pub generation: u64,
    /// The process that listens, or else the process that Hostler started.
    pub pid: Option<u32>,
    /// Its state.
    pub state: WorkerState,
    /// What is taken of it: `profile` or `heap snapshot`.
    pub inspection: Option<&'static str>,
    /// The time since an operator has drained it.
    #[serde(rename = "drained_ms", serialize_with = "milliseconds")]
    pub drained: Option<Duration>,
    /// The time until it is back in rotation by itself.
    #[serde(rename = "drain_ends_in_ms", serialize_with = "milliseconds")]
    pub drain_ends_in: Option<Duration>,
    /// The time since its process was started.
    #[serde(rename = "uptime_ms", serialize_with = "milliseconds")]
    pub uptime: Option<Duration>,
    /// How many times it has been started again.
    pub restarts: u64,
    /// Crashes in a row. After ten seconds in the pool, this is 0 again.
    pub crashes: u32,
    /// The time until it boots again, while it waits after a crash.
    #[serde(rename = "restarts_in_ms", serialize_with = "milliseconds")]
    pub restarts_in: Option<Duration>,
    /// How its process ended the last time.
    pub last_exit: Option<String>,
    /// What went wrong then: why its boot failed, or why Hostler killed it. `None`: neither.
    pub last_error: Option<String>,
    /// Why a worker of this number was recycled the last time.
    pub recycled: Option<Arc<str>>,
    /// Where it was stuck when it last hung, the innermost call first. `None` if that is not known.
    pub stack: Option<Vec<String>>,
    /// The time since it last hung.
    #[serde(rename = "hung_ago_ms", serialize_with = "milliseconds")]
    pub hung_ago: Option<Duration>,
    /// The share of time that its event loop works. Measured only while it has requests.
    pub utilisation: Option<f64>,
    /// What its Node process tells about itself. Asked only while it has requests.
    #[serde(flatten)]
    pub node: NodeFigures,
    /// The time for which its event loop has not turned although it has requests. `None`: less than three seconds.
    #[serde(rename = "blocked_ms", serialize_with = "milliseconds")]
    pub blocked: Option<Duration>,
    /// Why it has this number of slots, if Hostler chooses the number.
    pub slots_reason: Option<String>,
    /// The CPUs of its main thread. `None`: all that Hostler may use.
    pub cpus: Option<String>,
    /// Why it has these CPUs, if Hostler chooses them.
    pub cpus_reason: Option<String>,
    /// How many times it has collected garbage between requests.
    pub collections: u64,
    /// The total time of these collections.
    #[serde(rename = "collecting_ms", serialize_with = "milliseconds")]
    pub collecting: Option<Duration>,
    /// Resident memory in bytes.
    pub memory: Option<u64>,
    /// The number of its member in the pool.
    pub member: Option<MemberId>,
    /// Requests that its process got under earlier memberships. A drain or a heap snapshot ends the membership, and the process goes on.
    #[serde(skip)]
    pub earlier_requests: u64,
}

/// The state of a pool's restart, or the result of the last one. JSON has durations in milliseconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RolloutSnapshot {
    /// The time since the restart in progress was ordered.
    #[serde(rename = "running_ms", serialize_with = "milliseconds")]
    pub running: Option<Duration>,
    /// How many workers are of the newest generation.
    pub done: usize,
    /// How many workers there are.
    pub total: usize,
    /// The number of the worker that is being replaced, by a restart or by recycling.
    pub replacing: Option<usize>,
    /// A worker takes more than `max_memory` from its start on.
    pub heavy_start: Option<HeavyStart>,
    /// How the last restart ended.
    pub last: Option<LastRollout>,
}

/// How a restart ended.
#[derive(Clone, Debug, Serialize)]
pub struct LastRollout {
    /// Whether all workers were replaced.
    pub succeeded: bool,
    /// The result as text.
    pub result: String,
    /// The time since it ended.
    #[serde(rename = "ago_ms", serialize_with = "milliseconds")]
    pub ago: Duration,
    /// When it ended. Another restart has another moment.
    #[serde(skip)]
    pub at: Instant,
}

/// The number of workers of a pool, if Hostler finds it. JSON has it in the status.
#[derive(Clone, Debug, Serialize)]
pub struct ScalingSnapshot {
    /// How many workers there should be now.
    pub wanted: usize,
    /// The least number.
    pub min: usize,
    /// The greatest number.
    pub max: usize,
    /// How many times the number was raised.
    pub grown: u64,
    /// How many times it was lowered.
    pub shrunk: u64,
    /// How many times a request has woken the pool.
    pub woken: u64,
    /// Why the number was changed last, or why it is not raised although the pool is short of workers.
    pub reason: Option<String>,
}

/// What the supervisor shows of it. `None`: the number is fixed.
pub(super) type ScalingBoard = Mutex<Option<ScalingSnapshot>>;

/// What a pool supervisor publishes about its plan. Snapshots are made from it.
#[derive(Clone, Debug, Default)]
pub(super) struct RolloutStatus {
    pub since: Option<Instant>,
    pub done: usize,
    pub total: usize,
    pub replacing: Option<usize>,
    pub heavy_start: Option<HeavyStart>,
    pub last: Option<(Instant, Result<String, String>)>,
}

impl RolloutStatus {
    pub fn snapshot(&self, now: Instant) -> RolloutSnapshot {
        let last = self.last.as_ref().map(|(at, result)| LastRollout {
            succeeded: result.is_ok(),
            result: result.clone().unwrap_or_else(|error| error),
            ago: now.saturating_duration_since(*at),
            at: *at,
        });
        let running = self.since.map(|since| now.saturating_duration_since(since));
        let Self { done, total, replacing, heavy_start, .. } = *self;
        RolloutSnapshot { running, done, total, replacing, heavy_start, last }
    }
}

/// What a worker task publishes about its worker after each change. Snapshots are made from it.
#[derive(Clone, Debug)]
pub(super) struct WorkerStatus {
    pub task: WorkerTaskId,
    pub role: PoolRole,
    /// It was started as a spare.
    pub spare: bool,
    /// How many restarts had been ordered when it was started.
    pub release: u64,
    /// Since when it is ready or stands by.
    pub ready_at: Option<Instant>,
    /// The worker's own part of the recycling limits, drawn at each start.
    pub share: f64,
    pub recycled: Option<Arc<str>>,
    pub index: usize,
    pub generation: u64,
    pub pid: Option<u32>,
    pub state: WorkerState,
    pub inspection: Option<InspectionKind>,
    pub drain: Option<Drain>,
    pub started: Option<Instant>,
    /// Crashes in a row at its last death.
    pub crashes: u32,
    /// Boots in a row that have failed.
    pub failed_boots: u32,
    /// It has had a request, or has been ready for a while. Or a worker before it has had a request.
    pub has_worked: bool,
    pub restarts_at: Option<Instant>,
    pub last_exit: Option<String>,
    pub last_error: Option<String>,
    pub stack: Option<Vec<String>>,
    pub hung_at: Option<Instant>,
    /// Since when its event loop has not turned, once that counts.
    pub blocked_since: Option<Instant>,
    pub vitals: Arc<Vitals>,
    pub capacity: Option<Arc<Capacity>>,
    /// The CPUs of its process.
    pub cpus: Option<ShownPlace>,
    /// The settings to which the capacity belongs.
    pub slots: Slots,
    pub member: Option<MemberId>,
    /// Requests that its process got as members that have left the pool.
    pub earlier_requests: u64,
}

impl WorkerStatus {
    pub fn new(task: WorkerTaskId, index: usize, role: PoolRole, release: u64) -> Self {
        Self {
            task,
            role,
            spare: role == PoolRole::Spare,
            release,
            ready_at: None,
            share: 1.0,
            recycled: None,
            index,
            generation: 0,
            pid: None,
            state: WorkerState::Booting,
            inspection: None,
            drain: None,
            started: None,
            crashes: 0,
            failed_boots: 0,
            has_worked: false,
            restarts_at: None,
            last_exit: None,
            last_error: None,
            stack: None,
            hung_at: None,
            blocked_since: None,
            vitals: Arc::default(),
            capacity: None,
            cpus: None,
            slots: Slots::default(),
            member: None,
            earlier_requests: 0,
        }
    }

    pub fn snapshot(&self, now: Instant) -> WorkerSnapshot {
        let (collections, collecting) = self.vitals.collections();
        let ready_for = self.ready_at.map(|at| now.saturating_duration_since(at));
        let (cpus, cpus_reason) = self.cpus.as_ref().map_or((None, None), ShownPlace::read);
        WorkerSnapshot {
            index: self.index,
            generation: self.generation,
            pid: self.pid,
            state: self.state,
            inspection: self.inspection.map(InspectionKind::name),
            drained: self.drain.map(|drain| now.saturating_duration_since(drain.since)),
            drain_ends_in: self
                .drain
                .and_then(|drain| drain.until)
                .map(|until| until.saturating_duration_since(now)),
            uptime: self.started.map(|started| now.saturating_duration_since(started)),
            restarts: self.generation.saturating_sub(1),
            crashes: if is_forgiven(ready_for) { 0 } else { self.crashes },
            restarts_in: self.restarts_at.map(|at| at.saturating_duration_since(now)),
            last_exit: self.last_exit.clone(),
            last_error: self.last_error.clone(),
            recycled: self.recycled.clone(),
            stack: self.stack.clone(),
            hung_ago: self.hung_at.map(|at| now.saturating_duration_since(at)),
            blocked: self.blocked_since.map(|since| now.saturating_duration_since(since)),
            utilisation: self.vitals.utilisation(),
            node: self.vitals.node(),
            slots_reason: self
                .capacity
                .as_ref()
                .and_then(|capacity| capacity.reason(self.slots, &self.vitals)),
            cpus,
            cpus_reason,
            collections,
            collecting: (collections > 0).then_some(collecting),
            memory: self.pid.and_then(resident_bytes),
            member: self.member,
            earlier_requests: self.earlier_requests,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crashes_in_a_row_are_forgotten_after_ten_seconds_of_work() {
        let now = Instant::now();
        let new = WorkerStatus::new(WorkerTaskId(1), 1, PoolRole::Regular, 0);
        let status = WorkerStatus { crashes: 3, ready_at: Some(now), ..new };
        let crashes = |seconds| status.snapshot(now + Duration::from_secs(seconds)).crashes;
        assert_eq!([0, 9, 10, 9999].map(crashes), [3, 3, 0, 0]);
        assert_eq!(WorkerStatus { ready_at: None, ..status }.snapshot(now).crashes, 3, "it boots");
    }
}
