//! Whether those of one class that wait are a burst that drains or a standing overload; knows neither queue nor members.
//!
//! CoDel's question (Nichols and Jacobson; RFC 8289) with this pool's own measures: has nobody got a slot for a whole
//! interval without having waited longer than the target? A full house answers that with yes as well: a burst, chance at 95 % load,
//! twenty clients that each wait for their answer. So overload is only where besides clearly more come than are served, or where the last in line
//! will not be served in time.

use std::time::Duration;

use tokio::time::Instant;

use super::service::Pace;

/// What must come for each that is served, in fourths, to be clearly more.
const FOURTHS_COME: u32 = 4;
const FOURTHS_SERVED: u32 = 5;
/// So many requests too much are more than chance, where all holdings are equal.
const EXCESS: f64 = 32.0;
/// With fewer grants than these the speed of the line is not known.
const LEAST_GRANTS: u32 = 4;
/// So long nobody must have been refused, and nobody wait, for the overload to be over.
const CALM: Duration = Duration::from_millis(500);
/// After so many intervals it is asked anew. Clients that come back as soon as they are refused look like ever new ones,
/// and would be refused for ever, though all of them could wait their turn.
const LONGEST_INTERVALS: u32 = 64;

/// What is known about the waits of one class.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OverloadDetector {
    standing: Option<StandingQueue>,
    overload: Option<Overload>,
}

/// Since when nobody has got a slot without having waited too long.
#[derive(Clone, Copy, Debug)]
struct StandingQueue {
    since: Instant,
    grants: u32,
    /// By how much more came than five for every four that were served; in fourths of a request.
    excess: u32,
}

#[derive(Clone, Copy, Debug)]
struct Overload {
    since: Instant,
    refused: Instant,
}

/// One that came out of the queue with a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServedWaits {
    pub waited: Duration,
    /// How long it could have waited, if not for ever.
    pub time_limit: Option<Duration>,
    /// How many of its class still wait.
    pub behind: usize,
}

impl OverloadDetector {
    /// One joins those who wait, or is refused because too many do.
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
        // Bounded, so that a flood that has ended is soon forgotten, however large it was.
        let bound = (2.0 * most_excess(pace)) as u32;
        standing.excess = standing.excess.min(bound).saturating_sub(FOURTHS_SERVED);
        if standing.is_overload(served, pace, now) {
            self.overload = Some(Overload { since: now, refused: now });
        }
    }

    /// Slots do not come free for another reason than that they are in use.
    pub fn interrupt(&mut self) {
        self.standing = None;
    }

    /// A request was refused under overload.
    pub fn refused(&mut self, now: Instant) {
        if let Some(overload) = &mut self.overload {
            overload.refused = now;
        }
    }

    /// Nobody of this class waits, and one comes.
    pub fn found_empty(&mut self, now: Instant) {
        self.standing = None;
        if !self.is_overload(true, now) {
            self.overload = None;
        }
    }

    /// Whether newest first is the order, and who cannot make it is refused.
    pub fn is_overload(&self, empty: bool, now: Instant) -> bool {
        self.overload.is_some_and(|overload| !empty || now.saturating_duration_since(overload.refused) < CALM)
    }

    /// An overload that has lasted long has to prove itself again.
    pub fn doubt(&mut self, pace: &Pace, now: Instant) {
        let longest = pace.interval(None) * LONGEST_INTERVALS;
        if self.overload.is_some_and(|overload| now.saturating_duration_since(overload.since) >= longest) {
            *self = Self::default();
        }
    }
}

/// The excess, in fourths of a request, that is more than chance.
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

    /// Whether the last in line will be too late, at the speed of the line since it stands.
    fn is_too_slow(&self, served: ServedWaits, stood: Duration) -> bool {
        let Some(time_limit) = served.time_limit else { return false };
        let turn = stood.as_secs_f64() / f64::from(self.grants);
        self.grants >= LEAST_GRANTS
            && served.waited > time_limit / 2
            && turn * served.behind as f64 > time_limit.as_secs_f64()
    }
}
