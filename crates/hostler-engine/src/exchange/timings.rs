//! The times of an exchange, for the log and the statistics. Knows no clocks but that of the wake-up.

use std::time::Duration;

use hostler_dispatch::SlotCost;
use tokio::time::Instant;

use super::clock;

/// The times of an exchange.
#[derive(Debug, Clone, Copy)]
pub struct Timings {
    /// When the head had arrived: the time of the wake-up that brought its last bytes.
    pub started: Instant,
    /// The wait for slots, over all attempts.
    pub queue_wait: Duration,
    /// The time to connect to members, over all attempts.
    pub connecting: Duration,
    /// When the last slot was granted. None if no slot was held.
    pub slot_since: Option<Instant>,
    /// How long slots were held, over all attempts. None if no slot was held, or one is still held.
    pub slot_hold: Option<Duration>,
    /// From the first byte to the worker until the head of its answer.
    pub worker_time: Option<Duration>,
    /// The CPU time that workers used for the request, over all attempts. None if it is not known.
    pub worker_cpu: Option<Duration>,
}

impl Timings {
    /// A slot was given back, and has cost this much. None: nothing is known of it yet.
    pub fn note_cost(&mut self, cost: Option<SlotCost>) {
        let Some(SlotCost { hold, cpu }) = cost else { return };
        self.slot_hold = Some(hold);
        if let Some(cpu) = cpu {
            self.worker_cpu = Some(self.worker_cpu.unwrap_or_default() + cpu);
        }
    }

    pub(super) fn now() -> Self {
        Self {
            started: clock::now(),
            queue_wait: Duration::ZERO,
            connecting: Duration::ZERO,
            slot_since: None,
            slot_hold: None,
            worker_time: None,
            worker_cpu: None,
        }
    }
}
