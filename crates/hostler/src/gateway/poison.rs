//! Requests that workers die over, kept off their pool so that one URL cannot take it down. Knows no queue and no client.
//!
//! A worker that ends while it holds a request, and was not told to, makes a suspect of every method and URL that it held
//! (host and query included, as sent). A suspect that is answered is none any more: what is found here kills *in a row*, each
//! time sent after the last death. Where workers hold several requests, their neighbours are suspects as well; there suspects
//! are tried one at a time, and only what a worker died over in its trial is held against a suspect. With `kills` such deaths
//! it is refused for `keep_off`, without touching a worker.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::Refusal;
use super::suspects::{Convicted, Identity, KeptOff, Rule, Standing, Suspects};
use crate::exchange::{Aftermath, Death, Exchange};
use crate::journal::{Journal, Level};

/// What is kept of a URL, for people.
const LONGEST_URL: usize = 200;
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
    /// How many suspects there are: as long as it is none, a request costs a look at this.
    known: AtomicUsize,
    suspects: Mutex<Suspects>,
    trials: Arc<Semaphore>,
}

/// One try of a request; a suspect's may be a trial, and no other one begins before it is over.
pub(super) struct Trial {
    alone: bool,
    _turn: Option<OwnedSemaphorePermit>,
}

/// Whose call it is that outlives its exchange.
pub(super) struct Following {
    poison: Arc<Poison>,
    /// None where nobody minds.
    identity: Option<Identity>,
}

impl Following {
    /// Follows up what the call has left behind.
    pub fn follow(self, aftermath: Option<Aftermath>) {
        if let (Some(identity), Some(aftermath)) = (self.identity, aftermath) {
            let trial = Trial { alone: !self.poison.settings.crowded, _turn: None };
            self.poison.inquire_later(identity, aftermath, trial);
        }
    }
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
            trials: Arc::new(Semaphore::new(1)),
        }
    }

    /// What is kept off at this moment, at most a hundred of it.
    pub fn kept_off(&self) -> Vec<KeptOff> {
        self.with(|suspects| suspects.kept_off(Instant::now()))
    }

    /// Refuses what is kept off, and marks suspects.
    pub(super) fn admit(&self, exchange: &mut Exchange) -> Result<(), Refusal> {
        if self.known.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let key = self.key(exchange);
        let standing = self.with(|suspects| suspects.standing(key, Instant::now()));
        exchange.is_suspect = !matches!(standing, Standing::Unknown);
        match standing {
            Standing::Convicted(convicted) => Err(Refusal::Poison(convicted)),
            Standing::Unknown | Standing::Suspect => Ok(()),
        }
    }

    /// A try of this request. In a crowded pool a suspect waits for its turn, so that a worker's death says whose doing it was.
    pub(super) async fn trial(&self, exchange: &mut Exchange) -> Result<Trial, Refusal> {
        let crowded = self.settings.crowded;
        if !exchange.is_suspect || !crowded {
            return Ok(Trial { alone: !crowded, _turn: None });
        }
        let asked = Instant::now();
        let turn = timeout(TRIAL_WAIT, self.trials.clone().acquire_owned()).await.ok().and_then(Result::ok);
        exchange.timings.queue_wait += asked.elapsed();
        // Somebody with the same URL may have been answered meanwhile, or convicted.
        self.admit(exchange)?;
        let turn = turn.filter(|_| exchange.is_suspect);
        Ok(Trial { alone: turn.is_some(), _turn: turn })
    }

    /// Asks whether a worker died over this request, as its `killed` says of those before. One too many is a refusal.
    pub(super) async fn inquest(
        self: &Arc<Self>,
        exchange: &mut Exchange,
        trial: Trial,
        killed: &mut Vec<u32>,
    ) -> Result<(), Refusal> {
        let Some(aftermath) = self.aftermath(exchange) else { return Ok(()) };
        if aftermath.is_lingering() {
            self.inquire_later(self.identity(exchange), aftermath, trial);
            return Ok(());
        }
        let Some(death) = aftermath.death().await else { return Ok(()) };
        exchange.is_suspect = true;
        if (trial.alone || killed.is_empty()) && !killed.contains(&death.pid) {
            killed.push(death.pid);
        }
        let verdict = self.record(&self.identity(exchange), &death, trial.alone);
        let convicted = verdict.or_else(|| {
            let is_poison = killed.len() >= self.settings.kills;
            is_poison.then(|| Convicted { killed: killed.clone(), kept_off: None })
        });
        convicted.map_or(Ok(()), |convicted| Err(Refusal::Poison(convicted)))
    }

    /// An exchange has ended: what it left behind is followed up, and a suspect that was answered whole is none any more.
    pub(super) fn settle(self: &Arc<Self>, exchange: &mut Exchange) {
        if let Some(aftermath) = self.aftermath(exchange) {
            let trial = Trial { alone: !self.settings.crowded, _turn: None };
            return self.inquire_later(self.identity(exchange), aftermath, trial);
        }
        let trail = &exchange.trail;
        if exchange.is_suspect && trail.refusal.is_none() && trail.aborted.is_none() {
            let key = self.key(exchange);
            self.with(|suspects| suspects.acquit(key));
        }
    }

    fn aftermath(&self, exchange: &mut Exchange) -> Option<Aftermath> {
        exchange.aftermath.take().filter(|_| self.settings.kills > 0)
    }

    /// For a call that outlives its exchange.
    pub(super) fn following(self: &Arc<Self>, exchange: &Exchange) -> Following {
        let identity = (self.settings.kills > 0).then(|| self.identity(exchange));
        Following { poison: self.clone(), identity }
    }

    fn inquire_later(self: &Arc<Self>, identity: Identity, aftermath: Aftermath, trial: Trial) {
        let poison = self.clone();
        tokio::spawn(async move {
            if let Some(death) = aftermath.death().await {
                poison.record(&identity, &death, trial.alone);
            }
            // Not before: another suspect would end up with the same worker.
            drop(trial);
        });
    }

    /// Remembers a death; the verdict, if it was one too many.
    fn record(&self, identity: &Identity, death: &Death, alone: bool) -> Option<Convicted> {
        let rule = Rule { kills: self.settings.kills, keep_off: self.settings.keep_off };
        let verdict = self.with(|suspects| suspects.record(identity, death, alone, rule, Instant::now()));
        if let Some(convicted) = &verdict {
            let (pool, name) = (&self.pool, &identity.name);
            self.journal.event(Level::Warn, &format!("{pool}: poison request {name}: {convicted}"));
        }
        verdict
    }

    fn key(&self, exchange: &Exchange) -> u64 {
        self.hasher.hash_one((exchange.head.method(), exchange.host(), exchange.head.target()))
    }

    fn identity(&self, exchange: &Exchange) -> Identity {
        let [method, host, target] = [exchange.head.method(), exchange.host(), exchange.head.target()]
            .map(|bytes| String::from_utf8_lossy(bytes));
        let url: String = host.chars().chain(target.chars()).take(LONGEST_URL).collect();
        Identity { key: self.key(exchange), name: format!("{method} {url}").into() }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Suspects) -> T) -> T {
        let mut suspects = self.suspects.lock().unwrap_or_else(PoisonError::into_inner);
        let value = act(&mut suspects);
        self.known.store(suspects.len(), Ordering::Relaxed);
        value
    }
}
