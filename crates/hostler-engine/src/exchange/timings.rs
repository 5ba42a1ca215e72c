//! The times of an exchange, for the log and the statistics. Knows no clocks but that of the wake-up.

use std::time::Duration;

use hostler_dispatch::SlotCost;
use tokio::time::Instant;

use super::clock;
use super::log_facts::LogFacts;

/// The times of an exchange.
#[derive(Debug, Clone, Copy)]
pub struct Timings {
    /// When the head had arrived: the time of the wake-up that brought its last bytes.
    pub started: Instant,
    /// The wait for slots, over all attempts.
    pub queue_wait: Duration,
    /// The time to connect to members, over all attempts.
    pub connecting: Duration,
    /// The tries that got no answer: each from its slot until the request could be sent again or was refused.
    pub failed_tries: Duration,
    /// When the last slot was granted. None if no slot was held.
    pub slot_since: Option<Instant>,
    /// How long the last slot was held. None if no slot was held, it is still held, or its try got no answer.
    pub slot_hold: Option<Duration>,
    /// From when until when it waited after that for another slot, or for its turn to get one. None if it got one.
    pub vain_wait: Option<(Instant, Instant)>,
    /// From the first byte to the worker until the head of its answer.
    pub worker_time: Option<Duration>,
    /// The CPU time that workers used for the request, over all attempts. None if it is not known.
    pub worker_cpu: Option<Duration>,
}

impl Timings {
    /// A wait that began at `asked` has brought a slot.
    pub fn note_slot(&mut self, asked: Instant, since: Instant) {
        self.queue_wait += since.saturating_duration_since(asked);
        (self.slot_since, self.vain_wait) = (Some(since), None);
    }

    /// A wait that began at `asked` ends now, and has brought no slot. Another wait may follow it.
    pub fn note_vain_wait(&mut self, asked: Instant) {
        let until = Instant::now();
        self.queue_wait += until.saturating_duration_since(asked);
        let from = self.vain_wait.map_or(asked, |(from, _)| from);
        self.vain_wait = Some((from, until));
    }

    /// A slot was given back, and has cost this much. None: nothing is known of it yet.
    pub fn note_cost(&mut self, cost: Option<SlotCost>) {
        let Some(SlotCost { hold, cpu }) = cost else { return };
        self.slot_hold = Some(hold);
        if let Some(cpu) = cpu {
            self.worker_cpu = Some(self.worker_cpu.unwrap_or_default() + cpu);
        }
    }

    /// The last try has failed, and the search for a death of its worker is over.
    pub fn note_failed_try(&mut self) {
        self.failed_tries += self.slot_since.map_or(Duration::ZERO, |since| since.elapsed());
    }

    /// How long an exchange took that has ended now. A tunnel or a stream took the time until it was open: for how long it was open then says
    /// nothing about how slow it was, and is often longer than any request takes.
    pub fn total(&self, log_facts: &LogFacts, now: Instant) -> Duration {
        let is_lasting = log_facts.member_status == Some(101) || log_facts.stream_end.is_some();
        let ended = match (self.slot_since, self.slot_hold) {
            (Some(since), Some(hold)) if is_lasting => since + hold,
            _ => now,
        };
        ended.saturating_duration_since(self.started)
    }

    pub(super) fn now() -> Self {
        Self {
            started: clock::now(),
            queue_wait: Duration::ZERO,
            connecting: Duration::ZERO,
            failed_tries: Duration::ZERO,
            slot_since: None,
            slot_hold: None,
            vain_wait: None,
            worker_time: None,
            worker_cpu: None,
        }
    }
}
