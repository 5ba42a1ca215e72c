//! The suspects of a pool: whose requests may have killed workers, and which are convicted. Plain data that gets the time from its caller;
//! knows no requests and no workers.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use super::death_count::DeathCount;
use super::identity::{IdentityKind, Keys, RequestIdentity};
use super::worker_hold::{HeldWorkers, WorkerHold};
use crate::exchange::Death;

/// How many suspects are remembered, at about 400 bytes each. A death adds one for each request of the worker, and a few more.
const MAX_SUSPECTS: usize = 2048;
/// How many convictions the status lists.
const MAX_LISTED: usize = 100;
/// A trial keeps similar requests waiting no longer than this. If the request is still in progress then, its answer takes long or it counts
/// as held.
const MAX_TURN: Duration = Duration::from_secs(60);

/// After how many deaths a request is convicted, and for how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    pub kills: usize,
    pub keep_off: Duration,
}

#[derive(Default)]
pub(super) struct Suspects {
    by_key: HashMap<u64, Suspect>,
    /// No suspect expires before this.
    earliest: Option<Instant>,
    turns: u64,
    /// Only one URL is tried at a time, in a pool whose workers have several requests at once.
    url_turn: Option<TrialTurn>,
}

struct Suspect {
    kind: IdentityKind,
    name: Arc<str>,
    deaths: DeathCount,
    last: Instant,
    until: Instant,
    kept_off: bool,
    /// It was convicted before, and that has expired: one more death convicts it again.
    paroled: bool,
    /// Workers that similar requests hold for too long.
    held: HeldWorkers,
    /// When a similar request was last answered. Kept up to date only until `watched_until`.
    answered: Option<Instant>,
    /// Until when a similar request is expected to take long.
    watched_until: Instant,
    turn: Option<TrialTurn>,
}

/// The trial in progress, and when it began.
#[derive(Clone, Copy)]
struct TrialTurn {
    number: u64,
    since: Instant,
}

pub(super) enum SuspectStanding {
    Unknown,
    Suspect,
    Convicted(Convicted),
}

/// Whether a suspect may go to a worker.
pub(super) enum Admission {
    /// Nothing is against it.
    Free,
    /// It may go, while similar requests wait. The number of its turn is for [`Suspects::leave`].
    Alone(u64),
    /// Not now. `risky`: similar requests have killed or held workers, so it must wait for its turn, however long that takes.
    Closed { risky: bool },
}

/// A request over which too many workers have died.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Convicted {
    /// The processes that died.
    pub killed: Vec<u32>,
    /// The name of all that is refused, and for how much longer. None: only this request is refused.
    pub kept_off: Option<(Arc<str>, Duration)>,
}

/// A conviction in the status.
#[derive(Debug, Clone, Serialize)]
pub struct KeptOff {
    /// Method and URL, or what else the requests have in common.
    pub request: Arc<str>,
    /// Which of these it is.
    pub kind: IdentityKind,
    /// The processes that died over it.
    pub killed: Vec<u32>,
    /// How much longer it is kept off.
    pub for_ms: u64,
}

/// The figures of suspects, for the status.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct SuspectsView {
    /// URLs, paths, routes and clients whose requests are let in one at a time.
    pub one_at_a_time: usize,
    /// Requests that wait for their turn.
    pub waiting: usize,
    /// Requests that were refused because their turn did not come, since the start.
    pub refused: u64,
    /// URLs, paths and clients that were convicted, since the start.
    pub convicted: u64,
}

impl Suspects {
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    pub fn standing(&mut self, keys: &Keys, now: Instant) -> SuspectStanding {
        self.forget_expired(now);
        let mut standing = SuspectStanding::Unknown;
        for suspect in keys.iter().filter_map(|key| self.by_key.get(key)) {
            if suspect.kept_off {
                return SuspectStanding::Convicted(suspect.convicted(now));
            }
            standing = SuspectStanding::Suspect;
        }
        standing
    }

    /// A similar request asks for a worker. `crowded`: workers have several requests at once.
    pub fn enter(&mut self, keys: &Keys, crowded: bool, now: Instant) -> Admission {
        let suspects = || keys.iter().filter_map(|key| self.by_key.get(key));
        let is_url_trial = crowded && self.by_key.get(&keys[0]).is_some_and(|url| url.deaths.total > 0);
        let watched = || suspects().filter(|suspect| suspect.is_gated());
        if !is_url_trial && watched().next().is_none() {
            return Admission::Free;
        }
        if watched().any(|suspect| suspect.is_closed() || is_taken(suspect.turn, now)) {
            return Admission::Closed { risky: true };
        }
        if is_url_trial && is_taken(self.url_turn, now) {
            return Admission::Closed { risky: watched().next().is_some() };
        }
        self.turns += 1;
        let turn = Some(TrialTurn { number: self.turns, since: now });
        if is_url_trial {
            self.url_turn = turn;
        }
        for key in keys {
            if let Some(suspect) = self.by_key.get_mut(key)
                && suspect.is_gated()
            {
                suspect.turn = turn;
            }
        }
        Admission::Alone(self.turns)
    }

    /// The turn with this number is over.
    pub fn leave(&mut self, keys: &Keys, number: u64) {
        let ends = |turn: &mut Option<TrialTurn>| {
            if turn.is_some_and(|turn| turn.number == number) {
                *turn = None;
            }
        };
        ends(&mut self.url_turn);
        for key in keys {
            if let Some(suspect) = self.by_key.get_mut(key) {
                ends(&mut suspect.turn);
            }
        }
    }

    /// A request takes long: until `until`, the time of each answer to a similar request is recorded.
    pub fn watch(&mut self, identity: &RequestIdentity, until: Instant, now: Instant) {
        for kind in [IdentityKind::Path, IdentityKind::Route, IdentityKind::Client] {
            let suspect = self.suspect(identity, kind, until, now);
            suspect.until = suspect.until.max(until);
            suspect.watched_until = suspect.watched_until.max(until);
        }
        self.note_expiry(until);
    }

    /// A request that was sent at `since` holds its worker for too long.
    pub fn hold(
        &mut self,
        identity: &RequestIdentity,
        hold: WorkerHold,
        since: Instant,
        until: Instant,
        now: Instant,
    ) {
        self.watch(identity, until, now);
        for key in &identity.keys[1..] {
            if let Some(suspect) = self.by_key.get_mut(key) {
                suspect.held.add(hold, since);
            }
        }
    }

    /// The request no longer holds a worker.
    pub fn release(&mut self, keys: &Keys, hold: WorkerHold) {
        for key in &keys[1..] {
            if let Some(suspect) = self.by_key.get_mut(key) {
                suspect.held.remove(hold);
            }
        }
    }

    /// A worker died over the request. `tried`: it was on trial, while similar requests waited. Returns the convictions that follow.
    pub fn record(
        &mut self,
        identity: &RequestIdentity,
        death: &Death,
        tried: bool,
        rule: Rule,
        now: Instant,
    ) -> Vec<(Arc<str>, Convicted)> {
        self.forget_expired(now);
        let until = now + rule.keep_off;
        let mut verdicts = Vec::new();
        for kind in IdentityKind::ALL {
            let suspect = self.suspect(identity, kind, until, now);
            if suspect.kept_off || !suspect.is_news(death, tried) {
                continue;
            }
            suspect.deaths.add(death);
            (suspect.last, suspect.until) = (death.at, suspect.until.max(until));
            suspect.answered = None;
            if suspect.is_guilty(rule.kills) {
                (suspect.kept_off, suspect.until) = (true, until);
                verdicts.push((suspect.name.clone(), suspect.convicted(now)));
            }
        }
        self.note_expiry(until);
        verdicts
    }

    /// A similar request has been answered.
    pub fn acquit(&mut self, keys: &Keys, now: Instant) {
        for key in keys {
            let Some(suspect) = self.by_key.get_mut(key) else { continue };
            suspect.deaths = DeathCount::default();
            suspect.paroled = false;
            suspect.answered = Some(now);
            if suspect.held.all == 0 && suspect.watched_until <= now {
                self.by_key.remove(key);
            }
        }
    }

    /// At most a hundred convictions.
    pub fn kept_off(&self, now: Instant) -> Vec<KeptOff> {
        let kept_off = self.by_key.values().filter(|suspect| suspect.kept_off && now < suspect.until);
        let view = |suspect: &Suspect| KeptOff {
            request: suspect.name.clone(),
            kind: suspect.kind,
            killed: suspect.deaths.pids.clone(),
            for_ms: (suspect.until - now).as_millis() as u64,
        };
        kept_off.map(view).take(MAX_LISTED).collect()
    }

    /// How many suspects are let in one at a time.
    pub fn gated(&self) -> usize {
        self.by_key.values().filter(|suspect| !suspect.kept_off && suspect.is_gated()).count()
    }

    fn suspect(
        &mut self,
        identity: &RequestIdentity,
        kind: IdentityKind,
        until: Instant,
        now: Instant,
    ) -> &mut Suspect {
        let (key, name) = (identity.keys[kind as usize], &identity.names[kind as usize]);
        if !self.by_key.contains_key(&key) {
            self.make_room();
        }
        self.by_key.entry(key).or_insert_with(|| Suspect::new(kind, name.clone(), until, now))
    }

    fn note_expiry(&mut self, until: Instant) {
        self.earliest = Some(self.earliest.map_or(until, |earliest| earliest.min(until)));
    }

    fn forget_expired(&mut self, now: Instant) {
        if self.earliest.is_some_and(|earliest| earliest <= now) {
            self.by_key.retain(|_, suspect| suspect.stays(now));
            self.earliest = self.by_key.values().map(|suspect| suspect.until).min();
        }
    }

    /// If the table is full, removes the suspect that would expire first.
    fn make_room(&mut self) {
        if self.by_key.len() >= MAX_SUSPECTS
            && let Some(&key) = self
                .by_key
                .iter()
                .min_by_key(|(_, suspect)| (suspect.held.all, suspect.until))
                .map(|(key, _)| key)
        {
            self.by_key.remove(&key);
        }
    }
}

fn is_taken(turn: Option<TrialTurn>, now: Instant) -> bool {
    turn.is_some_and(|turn| now.saturating_duration_since(turn.since) < MAX_TURN)
}

impl Suspect {
    fn new(kind: IdentityKind, name: Arc<str>, until: Instant, now: Instant) -> Self {
        let (deaths, last, watched_until, held) = (DeathCount::default(), now, now, HeldWorkers::default());
        let (kept_off, paroled, answered, turn) = (false, false, None, None);
        Self { kind, name, deaths, last, until, kept_off, paroled, held, answered, watched_until, turn }
    }

    /// Whether the death counts. It does not if the request was sent before the last death: then both have one cause, or one dying worker.
    /// If the first death of a URL was in a worker with other requests, further deaths count only in a trial, or if the request was alone.
    fn is_news(&self, death: &Death, tried: bool) -> bool {
        let counts = self.kind != IdentityKind::Request || tried || death.alone;
        self.deaths.total == 0 || counts && death.since >= self.last && !self.deaths.pids.contains(&death.pid)
    }

    fn is_guilty(&self, kills: usize) -> bool {
        match self.kind {
            IdentityKind::Request => self.deaths.is_enough(kills),
            _ if self.paroled => true,
            // The more requests share a key, the more deaths it takes.
            IdentityKind::Path => self.deaths.is_enough(kills + 1),
            IdentityKind::Client => self.deaths.is_enough(kills + 2),
            // A route is never convicted, because innocent requests use it too.
            IdentityKind::Route => false,
        }
    }

    /// Whether requests with this key are let in one at a time.
    fn is_gated(&self) -> bool {
        let weight = self.deaths.weight() + if self.is_held() { 2 * self.held.all } else { 0 };
        match self.kind {
            IdentityKind::Request => false,
            IdentityKind::Path => weight >= 2 || self.paroled,
            IdentityKind::Route | IdentityKind::Client => weight >= 4 || self.paroled,
        }
    }

    /// A similar request holds a worker, and none that was sent later was answered.
    fn is_held(&self) -> bool {
        self.held.since().is_some_and(|since| self.answered.is_none_or(|answered| answered < since))
    }

    /// Whether no request with this key is let in: the next one would block one more worker. A route still lets one in at a time, because
    /// innocent requests use it too.
    fn is_closed(&self) -> bool {
        self.kind != IdentityKind::Route && self.held.blocked > 0 && self.is_held()
    }

    /// Whether the suspect is still remembered. An expired conviction becomes a parole.
    fn stays(&mut self, now: Instant) -> bool {
        if now < self.until {
            return true;
        }
        let paroles = self.kept_off && self.kind != IdentityKind::Request;
        let stays = paroles || self.held.all > 0 || is_taken(self.turn, now);
        if paroles {
            (self.kept_off, self.paroled, self.deaths) = (false, true, DeathCount::default());
        }
        self.until = now + MAX_TURN;
        stays
    }

    fn convicted(&self, now: Instant) -> Convicted {
        let left = self.until.saturating_duration_since(now);
        Convicted { killed: self.deaths.pids.clone(), kept_off: Some((self.name.clone(), left)) }
    }
}

impl fmt::Display for Convicted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pids: Vec<String> = self.killed.iter().map(u32::to_string).collect();
        write!(f, "workers have died over it (pid {})", pids.join(", pid "))?;
        match &self.kept_off {
            Some((what, left)) => write!(f, "; Hostler refuses {what} for {} s", left.as_secs_f64().ceil()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
