//! Measures how long slots are held. From that it computes how fast the pool is, and which wait is long. Knows no queue.

use std::time::Duration;

use tokio::time::Instant;

/// After this many newer holdings the average has forgotten an old one.
const MEMORY: u32 = 256;
/// The same for the long-term average. If the average above is higher, the pool is slow for a moment.
const LONG_MEMORY: u32 = 4096;
/// With fewer holdings than this, nothing is known.
const ENOUGH: u32 = 16;

/// The average time between two slots forgets an old one after this many.
const TURN_MEMORY: u32 = 64;

/// A wait shorter than this, in seconds, is never long: the garbage collector and the scheduler cause such pauses.
const LEAST_TARGET: f64 = 0.05;
/// A turn is the time between two slots that come free. A wait of up to this many turns may be due to chance.
const TARGET_TURNS: f64 = 16.0;
/// The target is at most this part (1/4) of the time that a request can wait ...
const SHARE_OF_TIME_LIMIT: f64 = 4.0;
/// ... but at least this many turns. With fewer, a slot would sometimes find no waiting request.
const LEAST_TURNS: f64 = 4.0;
/// A request behind others of its own key may wait for this many targets. So a page and what a browser loads with it, twelve requests, are
/// served beside four crawlers.
const TARGETS_OF_KEY: f64 = 4.0;

/// Running averages of the time that a slot is held and of its square, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Service {
    mean: f64,
    square: f64,
    usual: f64,
    samples: u32,
    turns: SlotTurns,
}

/// The time between two slots for waiting requests, in seconds, as measured.
#[derive(Clone, Copy, Debug, Default)]
struct SlotTurns {
    last: Option<Instant>,
    mean: f64,
    samples: u32,
}

impl Service {
    /// A slot was held for this time and came back normally. The first holdings weigh equally; later, older ones fade.
    pub fn observe(&mut self, hold: Duration) {
        let hold = hold.as_secs_f64();
        self.samples = (self.samples + 1).min(LONG_MEMORY);
        self.usual += (hold - self.usual) / f64::from(self.samples);
        let weight = 1.0 / f64::from(self.samples.min(MEMORY));
        self.mean += weight * (hold - self.mean);
        self.square += weight * (hold * hold - self.square);
    }

    /// The mean time. `None` until enough holdings were measured.
    pub fn mean(&self) -> Option<Duration> {
        (self.samples >= ENOUGH).then(|| Duration::from_secs_f64(self.mean))
    }

    /// A request begins to wait, and no other waits.
    pub fn begins_to_wait(&mut self, now: Instant) {
        self.turns.last = Some(now);
    }

    /// A waiting request got a slot.
    pub fn takes_turn(&mut self, now: Instant) {
        let turns = &mut self.turns;
        let Some(last) = turns.last.replace(now) else { return };
        turns.samples = (turns.samples + 1).min(TURN_MEMORY);
        let time = now.saturating_duration_since(last).as_secs_f64();
        turns.mean += (time - turns.mean) / f64::from(turns.samples);
    }

    /// The speed with this many slots. `None` without slots or before enough holdings were measured.
    pub fn pace(&self, slots: usize) -> Option<Pace> {
        (slots > 0).then(|| self.pace_of(slots as f64, true)).flatten()
    }

    /// The speed of members whose slots are not a number: a member takes the next request as soon as its event loop waits. So their speed is
    /// the measured time between two slots, and they are at least as fast as their present requests show. `None` before enough was measured.
    pub fn observed_pace(&self, in_use: usize) -> Option<Pace> {
        let is_known = self.turns.samples >= ENOUGH && self.turns.mean > 0.0;
        let slots = is_known.then(|| (self.mean / self.turns.mean).max(in_use as f64).max(1.0));
        self.pace_of(slots?, false)
    }

    fn pace_of(&self, slots: f64, is_certain: bool) -> Option<Pace> {
        (self.samples >= ENOUGH && self.mean > 0.0).then(|| Pace {
            hold: self.mean,
            slots,
            slowness: (self.mean / self.usual).max(1.0),
            turn: self.mean / slots,
            unevenness: self.square / (self.mean * self.mean),
            is_certain,
        })
    }
}

/// How fast a pool serves requests, and from that which wait is long. All times are seconds: each request that waits asks for some of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    hold: f64,
    slots: f64,
    /// How many times longer than usual slots are held at present.
    slowness: f64,
    /// Seconds between two slots that come free.
    turn: f64,
    /// 1 if all holdings are equal, 2 if they are exponentially distributed, more if they differ more. Queues that come
    /// and go by chance are longer by this factor.
    unevenness: f64,
    /// The number of slots is known, not measured.
    is_certain: bool,
}

impl Pace {
    /// The mean time that a slot is held.
    pub fn hold(&self) -> f64 {
        self.hold
    }

    /// The time that this work takes if the pool is as fast as usual.
    pub fn usual(&self, work: f64) -> f64 {
        work / self.slowness
    }

    /// The number of slots.
    pub fn slots(&self) -> f64 {
        self.slots
    }

    /// How many requests get a slot in this time.
    pub fn served_in(&self, time: Duration) -> usize {
        (time.as_secs_f64() / self.turn) as usize
    }

    /// Whether the number of slots is known, and not measured.
    pub fn is_certain(&self) -> bool {
        self.is_certain
    }

    /// The longest wait, in seconds, that may be due to chance. Under overload, requests that would wait longer are refused.
    pub fn target(&self, time_limit: f64) -> f64 {
        let least = self.turn * LEAST_TURNS;
        self.long().min(time_limit / SHARE_OF_TIME_LIMIT).max(least).min(time_limit)
    }

    /// The same for a request behind others of its own key. They delay no other key, so a client may send several at once.
    pub fn target_of_key(&self, time_limit: f64) -> f64 {
        let target = self.target(time_limit);
        (target * TARGETS_OF_KEY).min(time_limit / SHARE_OF_TIME_LIMIT).max(target)
    }

    /// The wait that is long for this pool, without regard to the time limits of the requests. A wait as short as the mean service
    /// time is never long.
    pub fn long(&self) -> f64 {
        self.hold.max(TARGET_TURNS * self.turn * self.unevenness).max(LEAST_TARGET)
    }

    /// The standard deviation of the wait that random arrivals add in this time, if as much work comes as the slots can do.
    pub fn deviation(&self, time: f64) -> f64 {
        (self.turn * self.unevenness * time).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_at_most_a_quarter_of_the_time_limit() {
        let mut service = Service::default();
        (0..ENOUGH).for_each(|_| service.observe(Duration::from_millis(20)));
        let pace = service.pace(4).unwrap();
        let target = |millis: u32| (pace.target(f64::from(millis) / 1000.0) * 1000.0).round();
        assert_eq!(target(5_000), 80.0, "sixteen turns of 5 ms");
        assert_eq!(target(200), 50.0);
        assert_eq!(target(40), 20.0, "four turns");
        assert_eq!(target(10), 10.0, "no longer than the request can wait");
    }

    #[test]
    fn chance_adds_more_wait_if_the_times_differ() {
        let (mut even, mut uneven) = (Service::default(), Service::default());
        (0..64).for_each(|_| even.observe(Duration::from_millis(10)));
        (0..64).for_each(|index| uneven.observe(Duration::from_millis(if index % 2 == 0 { 0 } else { 20 })));
        let deviation = |service: Service| (service.pace(1).unwrap().deviation(1.0) * 1000.0).round();
        assert_eq!((deviation(even), deviation(uneven)), (100.0, 141.0));
    }

    #[test]
    fn an_observed_pool_is_as_fast_as_its_waiting_requests_got_slots() {
        let mut service = Service::default();
        (0..ENOUGH).for_each(|_| service.observe(Duration::from_millis(200)));
        assert!(service.observed_pace(1).is_none(), "no request has waited");
        let began = Instant::now();
        service.begins_to_wait(began);
        (1..=ENOUGH).for_each(|turn| service.takes_turn(began + turn * Duration::from_millis(1)));
        assert_eq!(service.observed_pace(1).unwrap().slots().round(), 200.0);
        assert_eq!(service.observed_pace(300).unwrap().slots(), 300.0, "so many are under way");
        assert!(!service.observed_pace(1).unwrap().is_certain());
        assert!(service.pace(1).unwrap().is_certain());
    }
}
