//! Finds how many workers a pool has: measures, asks the policy, and lets the pool sleep. Starts and stops no worker.

mod look;
mod machine;
mod policy;
mod resources;

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};

use super::rollout::WorkerReport;
use super::settings::WorkerSettings;
use super::shared::PoolShared;
use super::snapshot::ScalingSnapshot;
pub(super) use policy::ScalingReason;
use policy::{ScalingLimits, ScalingLook, ScalingPolicy, ScalingVerdict};
pub(super) use resources::Resources;
use resources::Tenant;
pub use resources::WorkerMemory;

/// Between two looks at a pool that has workers.
const LOOK: Duration = Duration::from_millis(250);

/// A new number of workers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scaled {
    pub workers: usize,
    pub why: ScalingReason,
}

/// Why the scaler acts.
#[derive(Clone, Copy, Debug)]
pub(super) enum ScalingCall {
    /// A request waits in the sleeping pool.
    WakeRequested,
    /// Another pool needs memory.
    Evicted,
    /// It is time for a look, or memory was freed.
    Look,
}

/// Finds the number of workers of one pool.
pub(super) struct Scaler {
    limits: Option<ScalingLimits>,
    count: usize,
    policy: ScalingPolicy,
    /// Notified by the first request of a sleeping pool.
    wake_requested: Arc<Notify>,
    resources: Arc<Resources>,
    tenant: Arc<Tenant>,
    freed: watch::Receiver<()>,
    /// A request waits, and there is no room for a worker.
    is_blocked: bool,
    granted: u64,
    next_look: Instant,
    /// Why the number has last changed.
    changed: Option<ScalingReason>,
    /// Why it does not grow now, although there are too few workers.
    held: Option<ScalingReason>,
}

impl Scaler {
    /// Starts with the least number of workers, or with the number that the pool had in the process before.
    pub fn new<E: Send + Sync + 'static>(shared: &PoolShared<E>) -> Self {
        let settings = Arc::clone(&shared.settings.borrow());
        let resources = Arc::clone(shared.context.resources());
        let now = Instant::now();
        let mut scaler = Self {
            limits: limits(&settings),
            count: settings.count,
            policy: ScalingPolicy::new(now),
            wake_requested: Arc::default(),
            tenant: resources.enter(shared.board.subscribe()),
            freed: resources.freed(),
            resources,
            is_blocked: false,
            granted: 0,
            next_look: now + LOOK,
            changed: None,
            held: None,
        };
        if let Some(limits) = scaler.limits {
            let before = shared.context.workers_before(shared.pool.name()).unwrap_or(limits.least);
            scaler.count = before.clamp(limits.least, limits.most);
            if scaler.count == 0 {
                // A new pool has no request.
                shared.pool.fall_asleep(&scaler.wake_requested);
            }
        }
        scaler.show(shared);
        scaler
    }

    /// How many workers there should be.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Waits until there is something to do.
    pub async fn next(&mut self) -> ScalingCall {
        let looks = self.limits.is_some() && (self.count > 0 || self.is_blocked);
        tokio::select! {
            biased;
            () = self.wake_requested.notified() => ScalingCall::WakeRequested,
            () = self.tenant.evicted.notified() => ScalingCall::Evicted,
            Ok(()) = self.freed.changed(), if self.is_blocked => ScalingCall::Look,
            () = sleep_until(self.next_look), if looks => ScalingCall::Look,
        }
    }

    /// Decides. Returns the new number if it changes.
    pub fn act<E: Send + Sync + 'static>(
        &mut self,
        shared: &PoolShared<E>,
        call: ScalingCall,
    ) -> Option<Scaled> {
        let limits = self.limits?;
        let now = Instant::now();
        self.next_look = now + LOOK;
        if self.count == 0 {
            return self.wake(shared, call, now);
        }
        let look = self.look(shared, now);
        self.tenant.measure();
        let verdict = match call {
            ScalingCall::Evicted => self.policy.evicted(limits, self.count, look, now),
            ScalingCall::WakeRequested | ScalingCall::Look => self.policy.step(limits, self.count, look, now),
        };
        self.tenant.set_idle(self.policy.idle_since(limits, self.count, look));
        match verdict {
            ScalingVerdict::Shrink { to: 0, .. } if !shared.pool.fall_asleep(&self.wake_requested) => None,
            ScalingVerdict::Shrink { to, why } => Some(self.scale(shared, to, why)),
            ScalingVerdict::Grow { to, why } => match self.resources.fitting(&self.tenant, to - self.count) {
                0 => {
                    self.policy.hold(ScalingReason::NoRoom);
                    self.hold(shared, self.policy.held());
                    None
                }
                more => {
                    self.policy.grows(self.count, self.count + more);
                    Some(self.scale(shared, self.count + more, why))
                }
            },
            ScalingVerdict::Stay => {
                self.hold(shared, self.policy.held());
                None
            }
        }
    }

    /// The settings have changed. Returns the new number if it changes.
    pub fn adopt<E: Send + Sync + 'static>(&mut self, shared: &PoolShared<E>) -> Option<Scaled> {
        let settings = Arc::clone(&shared.settings.borrow());
        self.limits = limits(&settings);
        let least = self.limits.map_or(settings.count, |limits| limits.least);
        let count = self.count.clamp(least, settings.count);
        if count == self.count {
            self.show(shared);
            return None;
        }
        Some(self.scale(shared, count, ScalingReason::Configured))
    }

    /// A worker has reported.
    pub fn heard<E: Send + Sync + 'static>(&mut self, shared: &PoolShared<E>, report: &WorkerReport) {
        match report {
            // From now on requests wait as in every pool.
            WorkerReport::Ready if self.count > 0 => shared.pool.wake_up(),
            WorkerReport::Died { .. } if self.count > 0 => shared.pool.wake_up(),
            WorkerReport::Ended { .. } => self.resources.memory_was_freed(),
            WorkerReport::Ready
            | WorkerReport::Died { .. }
            | WorkerReport::Left
            | WorkerReport::Aside
            | WorkerReport::Blocked(_)
            | WorkerReport::NotListening(_)
            | WorkerReport::TookOver => {}
        }
    }

    /// A request waits in the sleeping pool, or has waited before and there was no room.
    fn wake<E: Send + Sync + 'static>(
        &mut self,
        shared: &PoolShared<E>,
        call: ScalingCall,
        now: Instant,
    ) -> Option<Scaled> {
        self.tenant.set_idle(None);
        if !matches!(call, ScalingCall::WakeRequested) && !self.is_blocked {
            return None;
        }
        // All requests have left. The next one requests a worker again.
        if self.is_blocked && shared.pool.fall_asleep(&self.wake_requested) {
            self.is_blocked = false;
            self.hold(shared, None);
            return None;
        }
        self.freed.mark_unchanged();
        self.is_blocked = !self.resources.make_room(&self.tenant, now);
        if self.is_blocked {
            self.hold(shared, Some(ScalingReason::NoRoom));
            return None;
        }
        self.policy.woken(now);
        Some(self.scale(shared, 1, ScalingReason::Woken))
    }

    fn look<E: Send + Sync + 'static>(&mut self, shared: &PoolShared<E>, now: Instant) -> ScalingLook {
        let look = look::take(shared, self.granted, self.resources.look(now));
        self.granted = look.granted;
        look
    }

    fn scale<E: Send + Sync + 'static>(
        &mut self,
        shared: &PoolShared<E>,
        workers: usize,
        why: ScalingReason,
    ) -> Scaled {
        let is_more = workers > self.count;
        self.count = workers;
        if workers == 0 {
            self.tenant.set_idle(None);
        }
        (self.changed, self.held) = (Some(why), None);
        self.show(shared);
        if let Some(shown) = board(shared).as_mut() {
            shown.grown += u64::from(is_more);
            shown.shrunk += u64::from(!is_more);
            shown.woken += u64::from(why == ScalingReason::Woken);
        }
        Scaled { workers, why }
    }

    /// Why there are not more workers now, although there are too few.
    fn hold<E>(&mut self, shared: &PoolShared<E>, held: Option<ScalingReason>) {
        if self.held != held {
            self.held = held;
            self.show(shared);
        }
    }

    fn show<E>(&self, shared: &PoolShared<E>) {
        let mut shown = board(shared);
        let counts = shown.as_ref().map(|before| (before.grown, before.shrunk, before.woken));
        let (grown, shrunk, woken) = counts.unwrap_or_default();
        *shown = self.limits.map(|limits| ScalingSnapshot {
            wanted: self.count,
            min: limits.least,
            max: limits.most,
            grown,
            shrunk,
            woken,
            reason: self.held.or(self.changed).map(|why| why.to_string()),
        });
    }
}

fn board<E>(shared: &PoolShared<E>) -> std::sync::MutexGuard<'_, Option<ScalingSnapshot>> {
    shared.scaling.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The limits, if the number of workers is not fixed.
fn limits(settings: &WorkerSettings) -> Option<ScalingLimits> {
    let least = settings.least.filter(|least| *least < settings.count)?;
    Some(ScalingLimits { least, most: settings.count, shrink_after: settings.shrink_after })
}
