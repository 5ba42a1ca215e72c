//! Notices that a number of slots, as it was set, does not fit the app. Pure: knows no process and no log.

use std::time::Duration;

use tokio::time::Instant;

/// Rounds of half a second in a row that must agree.
const AGREE: u32 = 20;
/// A loop that is less busy than this, while requests wait for a slot, could do much more.
const IDLE: f64 = 0.5;
/// In a loop that is busier than this, requests wait inside Node.
const FULL: f64 = 0.95;
/// Advice that no round has confirmed for this time is not shown any more: a worker may run for months.
const LASTS: Duration = Duration::from_secs(600);

/// What was noticed about one worker.
#[derive(Debug, Default)]
pub(super) struct Advice {
    too_few: u32,
    too_many: u32,
    noticed: Option<Noticed>,
}

#[derive(Debug)]
struct Noticed {
    sentence: String,
    /// The number of slots that the sentence is about. It is dropped when this or `fair` changes.
    slots: usize,
    /// Whether the pool was fair.
    fair: bool,
    /// When a round last confirmed it.
    at: Instant,
}

/// What a worker did in one round.
#[derive(Clone, Copy, Debug)]
pub(super) struct AdviceRound {
    /// Its number of slots, as it was set.
    pub slots: usize,
    /// The share of time (0 to 1) in which its event loop computed or waited for a CPU.
    pub utilisation: f64,
    /// How many slots were in use, on average.
    pub leases: f64,
    /// How long a slot was in use, on average.
    pub hold: Duration,
    /// A request had to wait for a slot.
    pub short: bool,
    /// The pool is fair. There, `"auto"` would give many slots to one key whose requests first wait and then compute. So a small number of slots
    /// is right, even if it fills the event loop.
    pub fair: bool,
}

impl Advice {
    /// Takes in one round, which ends now.
    pub fn observe(&mut self, round: &AdviceRound, now: Instant) {
        let is_full = round.leases > 0.8 * round.slots as f64;
        let count = |noticed: u32, is_so: bool| if is_so { noticed + 1 } else { 0 };
        self.too_few = count(self.too_few, round.short && is_full && round.utilisation < IDLE);
        self.too_many = count(self.too_many, round.leases >= 2.0 && round.utilisation > FULL && !round.fair);
        let AdviceRound { slots, utilisation, hold, fair, .. } = *round;
        let (busy, hold) = (utilisation * 100.0, hold.as_millis());
        if self.noticed.as_ref().is_some_and(|noticed| (noticed.slots, noticed.fair) != (slots, fair)) {
            self.noticed = None;
        }
        let remedy = if fair { "use a higher number in concurrency" } else { "use concurrency = \"auto\"" };
        let sentence = if self.too_few >= AGREE {
            Some(format!(
                "requests wait for one of {slots} slots, which are held for {hold} ms each while the event loop is {busy:.0} % \
                 busy: {remedy}"
            ))
        } else if self.too_many >= AGREE {
            Some(format!(
                "the event loop is {busy:.0} % busy with {:.0} requests at once, so they wait inside the worker: {remedy}",
                round.leases
            ))
        } else {
            None
        };
        if let Some(sentence) = sentence {
            self.noticed = Some(Noticed { sentence, slots, fair, at: now });
        }
    }

    /// The advice, if there is any.
    pub fn sentence(&self, now: Instant) -> Option<&str> {
        let noticed = self.noticed.as_ref()?;
        (now.saturating_duration_since(noticed.at) < LASTS).then_some(noticed.sentence.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(rounds: u32, round: AdviceRound) -> Option<String> {
        let (mut advice, now) = (Advice::default(), Instant::now());
        (0..rounds).for_each(|_| advice.observe(&round, now));
        advice.sentence(now).map(str::to_owned)
    }

    const WAITS: AdviceRound = AdviceRound {
        slots: 1,
        utilisation: 0.01,
        leases: 0.99,
        hold: Duration::from_millis(200),
        short: true,
        fair: false,
    };

    #[test]
    fn slots_that_are_held_while_the_loop_is_idle_are_too_few() {
        assert_eq!(after(AGREE - 1, WAITS), None);
        assert_eq!(
            after(AGREE, WAITS).unwrap(),
            "requests wait for one of 1 slots, which are held for 200 ms each while the event loop is 1 % busy: use \
             concurrency = \"auto\""
        );
        assert_eq!(after(99, AdviceRound { short: false, ..WAITS }), None, "no request waits");
        assert_eq!(after(99, AdviceRound { utilisation: 0.9, ..WAITS }), None, "the loop has no time");
        assert_eq!(after(99, AdviceRound { slots: 4, ..WAITS }), None, "this worker has free slots");
    }

    #[test]
    fn slots_whose_requests_wait_inside_the_worker_are_too_many() {
        let full = AdviceRound { slots: 8, utilisation: 0.99, leases: 7.6, ..WAITS };
        assert_eq!(
            after(AGREE, full).unwrap(),
            "the event loop is 99 % busy with 8 requests at once, so they wait inside the worker: use concurrency = \"auto\""
        );
        assert_eq!(after(99, AdviceRound { slots: 1, leases: 1.0, ..full }), None, "one at a time");
    }

    #[test]
    fn in_a_fair_pool_a_number_is_right_and_may_be_too_low() {
        let full = AdviceRound { slots: 8, utilisation: 0.99, leases: 7.6, fair: true, ..WAITS };
        assert_eq!(after(99, full), None);
        let few = after(99, AdviceRound { fair: true, ..WAITS }).unwrap();
        assert!(few.ends_with(": use a higher number in concurrency"), "{few}");
    }

    #[test]
    fn what_was_noticed_is_over_after_a_while_and_with_another_number_of_slots() {
        let (mut advice, mut now) = (Advice::default(), Instant::now());
        (0..AGREE).for_each(|_| advice.observe(&WAITS, now));
        let good = AdviceRound { short: false, ..WAITS };
        now += LASTS - Duration::from_secs(1);
        advice.observe(&good, now);
        assert!(advice.sentence(now).is_some(), "it may come again");
        now += Duration::from_secs(1);
        assert_eq!(advice.sentence(now), None, "also if the worker rests");
        (0..AGREE).for_each(|_| advice.observe(&WAITS, now));
        assert!(advice.sentence(now).is_some());
        advice.observe(&AdviceRound { slots: 4, ..good }, now);
        assert_eq!(advice.sentence(now), None, "a reload has set another number");
    }
}
