//! Requests that workers die over, kept off their pool so that one URL cannot take it down. Knows no queue and no client.
//!
//! A worker's death makes a suspect of every method and URL that it held. A suspect that is answered is none any more: what is
//! found here kills *in a row*, each time sent after the last death. Where workers hold several requests, their
//! neighbours are suspects as well; there suspects are tried one at a time, and only what a worker died over in its trial is
//! held against a suspect. With `kills` such deaths it is refused for `keep_off`, without touching a worker.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

use super::Refusal;
use crate::exchange::{Aftermath, Death, Exchange};
use crate::journal::{Journal, Level};

/// Suspects that are remembered, at about 400 bytes each. A death makes as many as the worker had slots.
const MOST_SUSPECTS: usize = 2048;
/// What is kept of a URL, for people.
const LONGEST_URL: usize = 200;
/// How many are listed in the status.
const MOST_LISTED: usize = 100;
/// How long a suspect waits for its trial; then it goes on in company, and proves nothing.
const TRIAL_WAIT: Duration = Duration::from_secs(5);

/// What of it can be set.
#[derive(Debug, Clone, Copy)]
pub struct PoisonSettings {
    /// Deaths over one request; 0: never mind.
    pub kills: usize,
    /// How long it is kept off.
    pub keep_off: Duration,
    /// Workers hold several requests at once.
    pub crowded: bool,
}

/// The suspects of one pool.
pub struct Poison {
    pool: Arc<str>,
    settings: PoisonSettings,
    journal: Journal,
    /// Keyed at random, so that nobody can choose URLs that collide.
    hasher: RandomState,
    /// How many suspects there are: as long as it is none, a request costs one look at this.
    known: AtomicUsize,
    suspects: Mutex<Suspects>,
    trials: Semaphore,
}

#[derive(Default)]
struct Suspects {
    by_key: HashMap<u64, Suspect>,
    /// None is to be forgotten before.
    earliest: Option<Instant>,
}

struct Suspect {
    name: Arc<str>,
    killed: Vec<u32>,
    last: Instant,
    until: Instant,
    kept_off: bool,
}

/// A request's method and URL.
struct Identity {
    key: u64,
    name: Arc<str>,
}

/// A request that has killed too many.
#[derive(Debug, Clone)]
pub struct Convicted {
    killed: Vec<u32>,
    kept_off: Option<Duration>,
}

/// What is kept off, for the status.
#[derive(Debug, Clone, Serialize)]
pub struct KeptOff {
    /// Method and URL.
    pub request: Arc<str>,
    /// The processes that died over it.
    pub killed: Vec<u32>,
    /// For how much longer.
    pub for_ms: u64,
}

/// One try of a request; a suspect's may be a trial.
pub(super) struct Trial<'a> {
    alone: bool,
    _turn: Option<SemaphorePermit<'a>>,
}

impl Poison {
    /// For a pool of this name.
    pub fn new(pool: Arc<str>, settings: PoisonSettings, journal: Journal) -> Self {
        Self {
            pool,
            settings,
            journal,
            hasher: RandomState::new(),
            known: AtomicUsize::new(0),
            suspects: Mutex::default(),
            trials: Semaphore::new(1),
        }
    }

    /// What is kept off at this moment, at most a hundred of it.
    pub fn kept_off(&self) -> Vec<KeptOff> {
        let now = Instant::now();
        let suspects = self.lock();
        let kept_off = suspects.by_key.values().filter(|suspect| suspect.kept_off && now < suspect.until);
        let view = |suspect: &Suspect| KeptOff {
            request: suspect.name.clone(),
            killed: suspect.killed.clone(),
            for_ms: (suspect.until - now).as_millis() as u64,
        };
        kept_off.map(view).take(MOST_LISTED).collect()
    }

    /// Refuses what is kept off, and marks suspects.
    pub(super) fn admit(&self, exchange: &mut Exchange) -> Result<(), Refusal> {
        if self.known.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let now = Instant::now();
        let key = self.key(exchange);
        let mut suspects = self.lock();
        self.forget_expired(&mut suspects, now);
        let Some(suspect) = suspects.by_key.get(&key) else { return Ok(()) };
        exchange.is_suspect = true;
        suspect.refusal(now).map_or(Ok(()), Err)
    }

    /// A try of this request. In a crowded pool a suspect waits for its turn, so that a worker's death says whose doing it was.
    pub(super) async fn trial(&self, exchange: &mut Exchange) -> Trial<'_> {
        if !exchange.is_suspect || !self.settings.crowded {
            return Trial { alone: !self.settings.crowded, _turn: None };
        }
        let asked = Instant::now();
        let turn = timeout(TRIAL_WAIT, self.trials.acquire()).await.ok().and_then(Result::ok);
        exchange.timings.queue_wait += asked.elapsed();
        // Somebody with the same URL may have been answered meanwhile.
        exchange.is_suspect = self.lock().by_key.contains_key(&self.key(exchange));
        match exchange.is_suspect {
            true => Trial { alone: turn.is_some(), _turn: turn },
            false => Trial { alone: false, _turn: None },
        }
    }

    /// Asks whether a worker died over this request, as its `killed` says of those before. One too many is a refusal.
    pub(super) async fn inquest(
        self: &Arc<Self>,
        exchange: &mut Exchange,
        trial: &Trial<'_>,
        killed: &mut Vec<u32>,
    ) -> Result<(), Refusal> {
        let Some(aftermath) = self.aftermath(exchange) else { return Ok(()) };
        if aftermath.is_lingering() {
            self.inquire_later(exchange, aftermath, trial.alone);
            return Ok(());
        }
        let identity = self.identity(exchange);
        let Some(death) = aftermath.death().await else { return Ok(()) };
        exchange.is_suspect = true;
        if (trial.alone || killed.is_empty()) && !killed.contains(&death.pid) {
            killed.push(death.pid);
        }
        let kept_off = self.record(&identity, &death, trial.alone);
        let convicted = kept_off.or_else(|| {
            let is_poison = killed.len() >= self.settings.kills;
            is_poison.then(|| Convicted { killed: killed.clone(), kept_off: None })
        });
        convicted.map_or(Ok(()), |convicted| Err(Refusal::Poison(convicted)))
    }

    /// An exchange has ended: what it left behind is followed up, and a suspect that was answered whole is none any more.
    pub(super) fn settle(self: &Arc<Self>, exchange: &mut Exchange) {
        if let Some(aftermath) = self.aftermath(exchange) {
            return self.inquire_later(exchange, aftermath, !self.settings.crowded);
        }
        let trail = &exchange.trail;
        if exchange.is_suspect && trail.refusal.is_none() && trail.aborted.is_none() {
            let key = self.key(exchange);
            let mut suspects = self.lock();
            suspects.by_key.remove(&key);
            self.known.store(suspects.by_key.len(), Ordering::Relaxed);
        }
    }

    fn aftermath(&self, exchange: &mut Exchange) -> Option<Aftermath> {
        exchange.aftermath.take().filter(|_| self.settings.kills > 0)
    }

    fn inquire_later(self: &Arc<Self>, exchange: &Exchange, aftermath: Aftermath, alone: bool) {
        let (poison, identity) = (self.clone(), self.identity(exchange));
        tokio::spawn(async move {
            if let Some(death) = aftermath.death().await {
                poison.record(&identity, &death, alone);
            }
        });
    }

    /// Remembers a death; the verdict, if it was one too many.
    fn record(&self, identity: &Identity, death: &Death, alone: bool) -> Option<Convicted> {
        let (now, rule) = (Instant::now(), self.settings);
        let mut suspects = self.lock();
        self.forget_expired(&mut suspects, now);
        if let Some(suspect) = suspects.by_key.get_mut(&identity.key) {
            // Sent before the last death, it met another worker in the same accident; or the same worker, which was dying.
            let is_news = death.since >= suspect.last && !suspect.killed.contains(&death.pid);
            if !alone || !is_news || suspect.kept_off {
                return None;
            }
            suspect.killed.push(death.pid);
            (suspect.last, suspect.until) = (death.at, now + rule.keep_off);
        } else {
            make_room(&mut suspects.by_key);
            let suspect = Suspect {
                name: identity.name.clone(),
                killed: vec![death.pid],
                last: death.at,
                until: now + rule.keep_off,
                kept_off: false,
            };
            suspects.by_key.insert(identity.key, suspect);
            suspects.earliest.get_or_insert(now + rule.keep_off);
            self.known.store(suspects.by_key.len(), Ordering::Relaxed);
        }
        let suspect = suspects.by_key.get_mut(&identity.key)?;
        if suspect.killed.len() < rule.kills {
            return None;
        }
        suspect.kept_off = true;
        let convicted = suspect.convicted(now);
        drop(suspects);
        let (pool, name) = (&self.pool, &identity.name);
        self.journal.event(Level::Warn, &format!("{pool}: poison request {name}: {convicted}"));
        Some(convicted)
    }

    fn forget_expired(&self, suspects: &mut Suspects, now: Instant) {
        if suspects.earliest.is_some_and(|earliest| earliest <= now) {
            suspects.by_key.retain(|_, suspect| now < suspect.until);
            suspects.earliest = suspects.by_key.values().map(|suspect| suspect.until).min();
            self.known.store(suspects.by_key.len(), Ordering::Relaxed);
        }
    }

    fn key(&self, exchange: &Exchange) -> u64 {
        self.hasher.hash_one((exchange.head.method(), exchange.host(), exchange.head.target()))
    }

    fn identity(&self, exchange: &Exchange) -> Identity {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let (method, host) = (text(exchange.head.method()), text(exchange.host()));
        let url: String = (host + &text(exchange.head.target())).chars().take(LONGEST_URL).collect();
        Identity { key: self.key(exchange), name: format!("{method} {url}").into() }
    }

    fn lock(&self) -> MutexGuard<'_, Suspects> {
        self.suspects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Suspect {
    fn refusal(&self, now: Instant) -> Option<Refusal> {
        self.kept_off.then(|| Refusal::Poison(self.convicted(now)))
    }

    fn convicted(&self, now: Instant) -> Convicted {
        Convicted { killed: self.killed.clone(), kept_off: Some(self.until - now) }
    }
}

/// The one that would be forgotten first makes room for another.
fn make_room(suspects: &mut HashMap<u64, Suspect>) {
    if suspects.len() >= MOST_SUSPECTS
        && let Some(&key) = suspects.iter().min_by_key(|(_, suspect)| suspect.until).map(|(key, _)| key)
    {
        suspects.remove(&key);
    }
}

impl fmt::Display for Convicted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pids: Vec<String> = self.killed.iter().map(u32::to_string).collect();
        write!(f, "workers have died over it (pid {})", pids.join(", pid "))?;
        match self.kept_off {
            Some(left) => write!(f, "; it is kept off for {} s", left.as_secs_f64().ceil()),
            None => Ok(()),
        }
    }
}
