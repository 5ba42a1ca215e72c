//! How long slots are held, as measured, and from that which wait is long. Knows no queue.

use std::time::Duration;

/// After this many newer holdings the average has forgotten an old one.
const MEMORY: u32 = 64;
/// With fewer holdings than this, nothing is known.
const ENOUGH: u32 = 16;

/// A standing wait shorter than this never counts: the garbage collector and the scheduler cause such pauses.
const LEAST_TARGET: Duration = Duration::from_millis(50);
/// A queue of this many turns comes and goes by chance.
const TARGET_TURNS: f64 = 16.0;
/// The interval is this many times the target, as in RFC 8289.
const TARGETS_AN_INTERVAL: u32 = 10;
/// The target and the interval are at most this fraction (1/4) of the time that a request can wait.
const SHARE_OF_TIME_LIMIT: u32 = 4;
/// A request is refused for waiting too long only after this fraction (1/8) of the time it can wait ...
const SHARE_TO_BE_HAD: u32 = 8;
/// ... and under overload every request is refused after this fraction (1/2).
const SHARE_TO_BE_LEFT: u32 = 2;
/// A request may always wait for this many turns. With fewer, a slot would sometimes find no waiting request.
const LEAST_TURNS: f64 = 4.0;

/// Running averages of the time that a slot is held and of its square, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Service {
    mean: f64,
    square: f64,
    samples: u32,
}

impl Service {
    /// A slot was held for this time and came back normally. The first holdings weigh equally; later, older ones fade.
    pub fn observe(&mut self, hold: Duration) {
        let hold = hold.as_secs_f64();
        self.samples = (self.samples + 1).min(MEMORY);
        let weight = 1.0 / f64::from(self.samples);
        self.mean += weight * (hold - self.mean);
        self.square += weight * (hold * hold - self.square);
    }

    /// The mean time. `None` until enough holdings were measured.
    pub fn mean(&self) -> Option<Duration> {
        (self.samples >= ENOUGH).then(|| Duration::from_secs_f64(self.mean))
    }

    /// The speed with this many slots. `None` without slots or before enough holdings were measured.
    pub fn pace(&self, slots: usize) -> Option<Pace> {
        (slots > 0 && self.samples >= ENOUGH && self.mean > 0.0).then(|| Pace {
            hold: self.mean,
            turn: self.mean / slots as f64,
            unevenness: self.square / (self.mean * self.mean),
        })
    }
}

/// How fast a pool serves requests, and from that which wait is long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    hold: f64,
    /// Seconds between two slots that come free.
    turn: f64,
    /// 1 if all holdings are equal, 2 if they are exponentially distributed, more if they differ more. Queues that come
    /// and go by chance are longer by this factor.
    unevenness: f64,
}

impl Pace {
    /// The mean time that a slot is held.
    pub fn hold(&self) -> Duration {
        Duration::from_secs_f64(self.hold)
    }

    /// See [`Pace::unevenness`].
    pub fn unevenness(&self) -> f64 {
        self.unevenness
    }

    /// A wait longer than this is too long, if it persists.
    pub fn target(&self, time_limit: Option<Duration>) -> Duration {
        at_most(self.long(), time_limit, SHARE_OF_TIME_LIMIT)
    }

    /// How long such a wait must persist to be an overload.
    pub fn interval(&self, time_limit: Option<Duration>) -> Duration {
        at_most(self.long() * TARGETS_AN_INTERVAL, time_limit, SHARE_OF_TIME_LIMIT)
    }

    /// Under overload, a request that has waited longer than this is refused.
    ///
    /// A machine that is slow for a second is overloaded too, and can serve the waiting requests afterwards. So a request
    /// with much time left is not refused at once.
    pub fn limit(&self, time_limit: Option<Duration>) -> Duration {
        let long = self.long();
        let limit = time_limit.map_or(long, |time_limit| {
            long.clamp(time_limit / SHARE_TO_BE_HAD, time_limit / SHARE_TO_BE_LEFT)
        });
        limit.max(self.turns(LEAST_TURNS))
    }

    /// The wait that is long for this pool, without regard to the time limits of the requests. A wait as short as the mean service
    /// time is never long.
    fn long(&self) -> Duration {
        let natural = self.hold.max(TARGET_TURNS * self.turn * self.unevenness);
        Duration::from_secs_f64(natural).max(LEAST_TARGET)
    }

    /// The time until this many slots have come free.
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
    fn no_request_is_refused_before_an_eighth_of_its_time_limit() {
        let mut service = Service::default();
        (0..ENOUGH).for_each(|_| service.observe(Duration::from_millis(20)));
        let pace = service.pace(4).unwrap();
        let limit = |time_limit| pace.limit(Some(Duration::from_millis(time_limit))).as_millis();
        assert_eq!(pace.limit(None).as_millis(), 80, "sixteen turns of 5 ms");
        assert_eq!(limit(400), 80);
        assert_eq!(limit(5_000), 625);
        assert_eq!(limit(120), 60, "a request that has waited for half of it is not served");
    }
}
