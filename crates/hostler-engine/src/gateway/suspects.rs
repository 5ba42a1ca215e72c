//! The suspects of a pool: whose requests may have killed workers, and which are convicted. Plain data that gets the time from its caller;
//! knows no requests and no workers.

mod trial_turn;
mod words;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::death_count::DeathCount;
use super::identity::{IdentityKind, Keys, RequestIdentity, own_keys, with_own};
use super::worker_hold::{HeldWorkers, WorkerHold};
use crate::exchange::Death;
use trial_turn::{MAX_TURN, SHOWS_BLOCK, TrialTurn, is_taken, trial_time};

pub(super) use words::{Admission, Rule, SuspectStanding};
pub use words::{Convicted, KeptOff, SuspectsView};

/// How many suspects are remembered, at about 400 bytes each. A death adds one for each request of the worker, and a few more.
const MAX_SUSPECTS: usize = 2048;
/// How many convictions the status lists.
const MAX_LISTED: usize = 100;

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
    /// The client of all these deaths. None if there were several.
    client: Option<Arc<str>>,
    /// The longest time from a request to its death.
    slowest: Duration,
    /// Trials since the last death.
    trials: u32,
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

impl Suspects {
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    pub fn standing(&mut self, keys: &Keys, now: Instant) -> SuspectStanding {
        self.forget_expired(now);
        let mut standing = SuspectStanding::Unknown;
        for suspect in with_own(keys).filter_map(|key| self.by_key.get(&key)) {
            if suspect.kept_off {
                return SuspectStanding::Convicted(suspect.convicted(now));
            }
            standing = SuspectStanding::Suspect;
        }
        standing
    }

    /// A similar request asks for a worker. `crowded`: workers have several requests at once. `members`: also blocked ones that have left.
    pub fn enter(&mut self, keys: &Keys, crowded: bool, members: usize, now: Instant) -> Admission {
        let suspects = || with_own(keys).filter_map(|key| self.by_key.get(&key));
        let is_url_trial = crowded && self.by_key.get(&keys[0]).is_some_and(|url| url.deaths.total > 0);
        let watched = || suspects().filter(|suspect| suspect.is_gated());
        if !is_url_trial && watched().next().is_none() {
            return Admission::Free;
        }
        let client = keys[IdentityKind::Client as usize];
        if watched().any(|suspect| suspect.is_closed(client, members, now) || is_taken(suspect.turn, now)) {
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
        for key in with_own(keys) {
            if let Some(suspect) = self.by_key.get_mut(&key)
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
            turn.take_if(|turn| turn.number == number);
        };
        ends(&mut self.url_turn);
        for key in with_own(keys) {
            if let Some(suspect) = self.by_key.get_mut(&key) {
                ends(&mut suspect.turn);
            }
        }
    }

    /// A similar request has got its slot. Returns how long its trial lasts if the event loop of its worker turns, and if it does not.
    pub fn begin_trial(&mut self, keys: &Keys) -> (Duration, Duration) {
        let (mut least, mut most) = (Duration::ZERO, Duration::ZERO);
        for key in with_own(keys) {
            if let Some(suspect) = self.by_key.get_mut(&key)
                && (suspect.is_gated() || suspect.kind == IdentityKind::Request)
            {
                let time = suspect.trial_time();
                least = least.max(time);
                most = most.max(if suspect.is_held() { MAX_TURN } else { time });
                suspect.trials += 1;
            }
        }
        (least, most)
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
        let client = identity.keys[IdentityKind::Client as usize];
        for key in &identity.keys[1..] {
            if let Some(suspect) = self.by_key.get_mut(key) {
                suspect.held.add(hold, client, since);
            }
        }
    }

    /// The request no longer holds a worker.
    pub fn release(&mut self, keys: &Keys, hold: WorkerHold) {
        for key in &keys[1..] {
            if let Some(suspect) = self.by_key.get_mut(key) {
                suspect.held.remove(hold, keys[IdentityKind::Client as usize]);
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
        for (kind, own) in IdentityKind::ALL.into_iter().zip(own_keys(&identity.keys)) {
            let before = own.and_then(|own| self.by_key.get(&own));
            let (refused, paroled) = before.map_or((false, false), |own| (own.kept_off, own.paroled));
            let suspect = self.suspect(identity, kind, until, now);
            if refused || suspect.kept_off || !suspect.is_news(death, tried) {
                continue;
            }
            suspect.add(death, &identity.names[IdentityKind::Client as usize]);
            suspect.until = suspect.until.max(until);
            if !suspect.is_guilty(rule.kills) && !paroled {
                continue;
            }
            let name = suspect.name.clone();
            let convicted = match (own, suspect.of_client(until, now)) {
                (Some(own), Some(of_client)) => {
                    let convicted = of_client.convicted(now);
                    self.insert(own, of_client);
                    convicted
                }
                _ => {
                    (suspect.kept_off, suspect.until) = (true, until);
                    suspect.convicted(now)
                }
            };
            verdicts.push((name, convicted));
        }
        self.note_expiry(until);
        verdicts
    }

    /// A similar request has been answered.
    pub fn acquit(&mut self, keys: &Keys, now: Instant) {
        for key in with_own(keys) {
            let Some(suspect) = self.by_key.get_mut(&key) else { continue };
            (suspect.deaths, suspect.slowest, suspect.trials) = (DeathCount::default(), Duration::ZERO, 0);
            suspect.paroled = false;
            suspect.answered = Some(now);
            if suspect.held.all == 0 && suspect.watched_until <= now {
                self.by_key.remove(&key);
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

    fn insert(&mut self, key: u64, suspect: Suspect) {
        self.make_room();
        self.by_key.insert(key, suspect);
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

impl Suspect {
    fn new(kind: IdentityKind, name: Arc<str>, until: Instant, now: Instant) -> Self {
        let (deaths, last, watched_until, held) = (DeathCount::default(), now, now, HeldWorkers::default());
        let (client, slowest, trials, kept_off, paroled) = (None, Duration::ZERO, 0, false, false);
        let (answered, turn) = (None, None);
        Self {
            kind,
            name,
            deaths,
            client,
            slowest,
            trials,
            last,
            until,
            kept_off,
            paroled,
            held,
            answered,
            watched_until,
            turn,
        }
    }

    /// Counts a death over a request of this client.
    fn add(&mut self, death: &Death, client: &Arc<str>) {
        let is_first = self.deaths.total == 0 && !self.paroled;
        self.client = (is_first || self.client.as_ref() == Some(client)).then(|| client.clone());
        self.deaths.add(death);
        self.slowest = self.slowest.max(death.at.saturating_duration_since(death.since));
        (self.last, self.answered, self.trials) = (death.at, None, 0);
    }

    /// A conviction of the only client whose requests have killed workers: it must not close a URL or a path for the others. None if there
    /// were several.
    fn of_client(&self, until: Instant, now: Instant) -> Option<Self> {
        let name = format!("{} from {}", self.name, self.client.as_ref()?).into();
        let (deaths, slowest) = (self.deaths.clone(), self.slowest);
        Some(Self { kept_off: true, deaths, slowest, ..Self::new(self.kind, name, until, now) })
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

    /// While a worker is held, a trial must show whether the next request holds one too.
    fn trial_time(&self) -> Duration {
        match self.is_held() {
            true if self.held.some_wait() => MAX_TURN,
            true => trial_time(self.slowest.max(SHOWS_BLOCK), self.trials),
            false => trial_time(self.slowest, self.trials),
        }
    }

    /// A similar request holds a worker, and none that was sent later was answered.
    fn is_held(&self) -> bool {
        self.held.since().is_some_and(|since| self.answered.is_none_or(|answered| answered < since))
    }

    /// Whether no request of this client is let in: the next one would block one more worker, or could block the last one. A route still
    /// lets one in at a time, because innocent requests use it too.
    fn is_closed(&self, client: u64, members: usize, now: Instant) -> bool {
        self.kind != IdentityKind::Route && self.is_held() && self.held.closes_for(client, members, now)
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

#[cfg(test)]
mod tests;
