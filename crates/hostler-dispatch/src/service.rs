//! How long slots are held, as far as measured, and what follows for how long a wait is long; knows no queue.

use std::time::Duration;

/// The average forgets about a holding after this many others.
const MEMORY: u32 = 64;
/// With fewer holdings than these nothing is known.
const ENOUGH: u32 = 16;

/// The least a standing wait must be to count: below it are pauses of the garbage collector and of the scheduler.
const LEAST_TARGET: Duration = Duration::from_millis(50);
/// A queue of so many turns comes and goes by chance.
const TARGET_TURNS: f64 = 16.0;
/// How often the target fits into the interval, as in RFC 8289.
const TARGETS_AN_INTERVAL: u32 = 10;
/// The target and the interval are at most this part of what a request can wait.
const SHARE_OF_PATIENCE: u32 = 4;
/// Nobody is refused for having waited too long who has not waited for this part of what it can ...
const SHARE_TO_BE_HAD: u32 = 8;
/// ... and under overload everybody who has waited for this part.
const SHARE_TO_BE_LEFT: u32 = 2;
/// Those who wait may always wait for this many turns: fewer would now and then leave nobody to serve.
const LEAST_TURNS: f64 = 4.0;

/// Running averages of a slot's holding and of its square, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Service {
    mean: f64,
    square: f64,
    samples: u32,
}

impl Service {
    /// A slot was held so long and came back in the ordinary way. The first ones weigh equally, then the older fade.
    pub fn observe(&mut self, hold: Duration) {
        let hold = hold.as_secs_f64();
        self.samples = (self.samples + 1).min(MEMORY);
        let weight = 1.0 / f64::from(self.samples);
        self.mean += weight * (hold - self.mean);
        self.square += weight * (hold * hold - self.square);
    }

    /// The mean; none before enough has been measured.
    pub fn mean(&self) -> Option<Duration> {
        (self.samples >= ENOUGH).then(|| Duration::from_secs_f64(self.mean))
    }

    /// What it means for so many slots; none as long as nothing is known, or without slots.
    pub fn pace(&self, slots: usize) -> Option<Pace> {
        (slots > 0 && self.samples >= ENOUGH && self.mean > 0.0).then(|| Pace {
            hold: self.mean,
            turn: self.mean / slots as f64,
            unevenness: self.square / (self.mean * self.mean),
        })
    }
}

/// How fast a pool serves, and from that what a long wait is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    hold: f64,
    /// From one slot that comes free to the next.
    turn: f64,
    /// 1 if all holdings are equal, 2 if they are exponential, more the more they differ: by so much longer are the queues
    /// that come and go by chance.
    unevenness: f64,
}

impl Pace {
    /// How long a slot is held.
    pub fn hold(&self) -> Duration {
        Duration::from_secs_f64(self.hold)
    }

    /// See [`Pace::unevenness`].
    pub fn unevenness(&self) -> f64 {
        self.unevenness
    }

    /// A wait longer than this, should it stand, is too long.
    pub fn target(&self, time_limit: Option<Duration>) -> Duration {
        at_most(self.long(), time_limit, SHARE_OF_PATIENCE)
    }

    /// For how long it has to stand.
    pub fn interval(&self, time_limit: Option<Duration>) -> Duration {
        at_most(self.long() * TARGETS_AN_INTERVAL, time_limit, SHARE_OF_PATIENCE)
    }

    /// Who has waited longer than this under overload is refused. A machine that is slow for a second is overloaded, too, and
    /// what waits then can still be served once that is over: so nobody is refused at once who has much time left.
    pub fn limit(&self, time_limit: Option<Duration>) -> Duration {
        let long = self.long();
        let limit = time_limit.map_or(long, |time_limit| {
            long.clamp(time_limit / SHARE_TO_BE_HAD, time_limit / SHARE_TO_BE_LEFT)
        });
        limit.max(self.turns(LEAST_TURNS))
    }

    /// What is long for this pool, whatever those who wait think of it. To wait as long as one is served is not.
    fn long(&self) -> Duration {
        let natural = self.hold.max(TARGET_TURNS * self.turn * self.unevenness);
        Duration::from_secs_f64(natural).max(LEAST_TARGET)
    }

    /// The time until so many slots have come free.
    pub fn turns(&self, turns: f64) -> Duration {
        Duration::from_secs_f64(self.turn * turns)
    }
}

fn at_most(time: Duration, time_limit: Option<Duration>, part: u32) -> Duration {
    time_limit.map_or(time, |time_limit| time.min(time_limit / part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_refused_who_has_waited_for_less_than_an_eighth_of_what_it_can_wait() {
        let mut service = Service::default();
        (0..ENOUGH).for_each(|_| service.observe(Duration::from_millis(20)));
        let pace = service.pace(4).unwrap();
        let limit = |time_limit| pace.limit(Some(Duration::from_millis(time_limit))).as_millis();
        assert_eq!(pace.limit(None).as_millis(), 80, "sixteen turns of 5 ms");
        assert_eq!(limit(400), 80);
        assert_eq!(limit(5_000), 625);
        assert_eq!(limit(120), 60, "nor served who has waited for half of it");
    }
}
