//! Tells whether the waiting requests of one class are a burst that drains or a standing overload. Knows neither queue
//! nor members.
//!
//! The first test is that of CoDel (Nichols and Jacobson; RFC 8289), with measures of this pool: for a whole interval,
//! every request that got a slot waited longer than the target. A busy pool without overload can show this too: a burst,
//! chance at 95 % load, or twenty clients that each wait for their answer. So a second condition must hold: clearly more
//! requests arrive than are served, or the last request in the queue will not be served in time.

use std::time::Duration;

use tokio::time::Instant;

use super::service::Pace;

/// How many requests must arrive for four that are served before the excess grows.
const FOURTHS_COME: u32 = 4;
const FOURTHS_SERVED: u32 = 5;
/// This many requests too many are more than chance, if all slots are held equally long.
const EXCESS: f64 = 32.0;
/// With fewer grants than this, the speed of the queue is not known.
const LEAST_GRANTS: u32 = 4;
/// An overload ends after this time without a refusal and without a waiting request.
const CALM: Duration = Duration::from_millis(500);
/// After this many intervals the overload must be shown again. Clients that come back as soon as they are refused look
/// like new ones. Without this limit they would be refused for ever, although all of them could wait for their turn.
const LONGEST_INTERVALS: u32 = 64;

/// What is known about the waits in one class.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OverloadDetector {
    standing: Option<StandingQueue>,
    overload: Option<Overload>,
}

/// The time since which every request that got a slot had waited too long.
#[derive(Clone, Copy, Debug)]
struct StandingQueue {
    since: Instant,
    grants: u32,
    /// By how much the arrivals exceed five for every four served, in fourths of a request.
    excess: u32,
}

#[derive(Clone, Copy, Debug)]
struct Overload {
    since: Instant,
    refused: Instant,
}

/// A waiting request that got a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServedWaits {
    pub waited: Duration,
    /// How long it could have waited. `None`: no limit.
    pub time_limit: Option<Duration>,
    /// How many requests of its class still wait.
    pub behind: usize,
}

impl OverloadDetector {
    /// A request joins the queue, or is refused because the queue is full.
    pub fn arrived(&mut self) {
        if let Some(standing) = &mut self.standing {
            standing.excess = standing.excess.saturating_add(FOURTHS_COME);
        }
    }

    pub fn served(&mut self, served: ServedWaits, pace: &Pace, now: Instant) {
        if self.overload.is_some() {
            return;
        }
        if served.waited <= pace.target(served.time_limit) || served.behind == 0 {
            self.standing = None;
            return;
        }
        let standing = self.standing.get_or_insert(StandingQueue { since: now, grants: 0, excess: 0 });
        standing.grants = standing.grants.saturating_add(1);
        // The bound makes sure that a flood that has ended is soon forgotten, however large it was.
        let bound = (2.0 * most_excess(pace)) as u32;
        standing.excess = standing.excess.min(bound).saturating_sub(FOURTHS_SERVED);
        if standing.is_overload(served, pace, now) {
            self.overload = Some(Overload { since: now, refused: now });
        }
    }

    /// Slots did not come free for a reason other than load, so the measurement starts again.
    pub fn interrupt(&mut self) {
        self.standing = None;
    }

    /// A request was refused under overload.
    pub fn refused(&mut self, now: Instant) {
        if let Some(overload) = &mut self.overload {
            overload.refused = now;
        }
    }

    /// A request arrives, and no other of this class waits.
    pub fn found_empty(&mut self, now: Instant) {
        self.standing = None;
        if !self.is_overload(true, now) {
            self.overload = None;
        }
    }

    /// Whether the newest request is served first and requests that would be too late are refused.
    pub fn is_overload(&self, empty: bool, now: Instant) -> bool {
        self.overload.is_some_and(|overload| !empty || now.saturating_duration_since(overload.refused) < CALM)
    }

    /// Ends an overload that has lasted long, so that it must be shown again.
    pub fn doubt(&mut self, pace: &Pace, now: Instant) {
        let longest = pace.interval(None) * LONGEST_INTERVALS;
        if self.overload.is_some_and(|overload| now.saturating_duration_since(overload.since) >= longest) {
            *self = Self::default();
        }
    }
}

/// The excess, in fourths of a request, above which it is more than chance.
fn most_excess(pace: &Pace) -> f64 {
    f64::from(FOURTHS_COME) * EXCESS * pace.unevenness()
}

impl StandingQueue {
    fn is_overload(&self, served: ServedWaits, pace: &Pace, now: Instant) -> bool {
        let stood = now.saturating_duration_since(self.since);
        if stood < pace.interval(served.time_limit) {
            return false;
        }
        let too_many = f64::from(self.excess) >= most_excess(pace);
        too_many || self.is_too_slow(served, stood)
    }

    /// Whether the last request in the queue will be too late, at the speed since the queue stands.
    fn is_too_slow(&self, served: ServedWaits, stood: Duration) -> bool {
        let Some(time_limit) = served.time_limit else { return false };
        let turn = stood.as_secs_f64() / f64::from(self.grants);
        self.grants >= LEAST_GRANTS
            && served.waited > time_limit / 2
            && turn * served.behind as f64 > time_limit.as_secs_f64()
    }
}
