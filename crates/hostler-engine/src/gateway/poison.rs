//! Requests that workers die over, kept off their pool so that one URL or one client cannot take it down. Knows no queue.
//!
//! A worker that ends while it holds a request, and was not told to, makes a suspect of every request that it held: of its method
//! and URL, of its path, its route and its client. A suspect of which one is answered is none any more: what is found here
//! kills *in a row*, each time sent after the last death. What has killed, or holds a worker for too long, is let in one at a
//! time ([`super::wait`] waits for its turn). What has killed too often is refused for `keep_off`, without touching a worker.
//! Decision 16 says what counts how much.

use std::any::Any;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::{Instant, timeout};

use super::identity::{Keyring, Keys, RequestIdentity};
use super::refusal::Refusal;
use super::suspects::{Admission, Convicted, KeptOff, Rule, SuspectStanding, Suspects};
use super::toll::Toll;
use crate::exchange::{Death, Exchange, PendingEnd};
use crate::journal::{Journal, Level};

/// So many may wait for theirs.
const MOST_WAITING: usize = 100;

/// What of it can be set.
#[derive(Debug, Clone, Copy)]
pub struct PoisonSettings {
    /// Deaths over one request; 0: never mind.
    pub kills: usize,
    /// How long it is kept off.
    pub keep_off: Duration,
    /// Workers hold several requests at once.
    pub crowded: bool,
    /// How long a worker may be held by a request for which nobody waits any more.
    pub suspect_after: Duration,
}

/// What is known of suspects, for the Status.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct SuspectsView {
    /// URLs, paths, routes and clients that are let in one at a time.
    pub one_at_a_time: usize,
    /// Requests that wait for their turn.
    pub waiting: usize,
    /// Requests that were refused because their turn did not come; ever.
    pub refused: u64,
    /// URLs, paths and clients that were kept off; ever.
    pub convicted: u64,
}

/// The suspects of one pool.
pub struct Poison {
    pool: Arc<str>,
    settings: PoisonSettings,
    journal: Journal,
    keyring: Keyring,
    /// How many suspects there are: as long as it is none, a request costs a look at this.
    known: AtomicUsize,
    suspects: Mutex<Suspects>,
    /// A turn has ended, or somebody is no suspect any more.
    changed: Notify,
    waiting: AtomicUsize,
    refused: AtomicU64,
    convicted: AtomicU64,
}

/// A suspect's turn: until this is dropped, those like it wait.
struct Turn {
    poison: Arc<Poison>,
    keys: Keys,
    number: u64,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.poison.with(|suspects| suspects.leave(&self.keys, self.number));
        self.poison.changed.notify_waiters();
    }
}

/// One that waits for its turn; so many may.
struct TurnWait<'a>(&'a AtomicUsize);

impl Drop for TurnWait<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whose call it is that outlives its exchange.
pub(super) struct Following {
    poison: Arc<Poison>,
    /// None where nobody minds.
    identity: Option<RequestIdentity>,
}

impl Following {
    /// Follows up what the call has left behind.
    pub fn follow(self, pending_end: Option<PendingEnd>) {
        if let (Some(identity), Some(pending_end)) = (self.identity, pending_end) {
            let suspect_after = self.poison.settings.suspect_after;
            self.poison.inquire_later(identity, pending_end, None, suspect_after);
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
            keyring: Keyring::default(),
            known: AtomicUsize::new(0),
            suspects: Mutex::default(),
            changed: Notify::new(),
            waiting: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            convicted: AtomicU64::new(0),
        }
    }

    /// What is kept off at this moment, at most a hundred of it.
    pub fn kept_off(&self) -> Vec<KeptOff> {
        self.with(|suspects| suspects.kept_off(Instant::now()))
    }

    /// The figures of this moment.
    pub fn view(&self) -> SuspectsView {
        SuspectsView {
            one_at_a_time: self.with(|suspects| suspects.gated()),
            waiting: self.waiting.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            convicted: self.convicted.load(Ordering::Relaxed),
        }
    }

    /// Refuses what is kept off, and marks suspects.
    pub(super) fn admit(&self, exchange: &mut Exchange) -> Result<(), Refusal> {
        if self.known.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let keys = self.keyring.keys(exchange);
        let standing = self.with(|suspects| suspects.standing(&keys, Instant::now()));
        exchange.is_suspect = !matches!(standing, SuspectStanding::Unknown);
        match standing {
            SuspectStanding::Convicted(convicted) => Err(Refusal::Poison(convicted)),
            SuspectStanding::Unknown | SuspectStanding::Suspect => Ok(()),
        }
    }

    /// A place among those that wait for their turn; so many have one.
    pub(super) fn line_up(&self) -> Result<impl Drop + '_, Refusal> {
        let place = TurnWait(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= MOST_WAITING {
            return Err(self.refuse());
        }
        Ok(place)
    }

    /// A turn has ended, or somebody is no suspect any more.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Whether it may go on: as the one of its kind, or because nothing is against it.
    pub(super) fn enter(self: &Arc<Self>, exchange: &mut Exchange) -> Result<Admission, Refusal> {
        // Somebody like it may have been answered meanwhile, or convicted.
        self.admit(exchange)?;
        if !exchange.is_suspect {
            return Ok(Admission::Free);
        }
        let (keys, crowded) = (self.keyring.keys(exchange), self.settings.crowded);
        let entry = self.with(|suspects| suspects.enter(&keys, crowded, Instant::now()));
        if let Admission::Alone(number) = entry {
            exchange.turn = Some(Box::new(Turn { poison: self.clone(), keys, number }));
        }
        Ok(entry)
    }

    /// Counts one whose turn did not come.
    pub(super) fn refuse(&self) -> Refusal {
        self.refused.fetch_add(1, Ordering::Relaxed);
        Refusal::Suspect
    }

    /// Workers have several requests at once: one that is tried is to be alone with its worker.
    pub(super) fn isolates(&self, exchange: &Exchange) -> bool {
        self.settings.crowded && exchange.turn.is_some()
    }

    /// The answer to this request is late: which of those like it are answered meanwhile is worth to be known.
    pub(super) fn watch(&self, exchange: &mut Exchange, until: Instant) {
        if self.settings.kills > 0 {
            let identity = self.identity(exchange);
            self.with(|suspects| suspects.watch(&identity, until, Instant::now()));
            exchange.is_suspect = true;
        }
    }

    /// Asks whether a worker died over this request, as `toll` says of those before. One too many is a refusal. True if the worker ended
    /// by its own doing and had no other request.
    pub(super) async fn blame(
        self: &Arc<Self>,
        exchange: &mut Exchange,
        toll: &mut Toll,
    ) -> Result<bool, Refusal> {
        let tried = exchange.turn.take();
        let Some(pending_end) = self.pending_end(exchange) else { return Ok(false) };
        let identity = self.identity(exchange);
        if pending_end.is_lingering() {
            // Nobody waits for it any more, but the worker is still at it.
            self.inquire_later(identity, pending_end, tried, Duration::ZERO);
            return Ok(false);
        }
        let Some(death) = pending_end.death().await else { return Ok(false) };
        exchange.is_suspect = true;
        if tried.is_some() || death.alone || *toll == Toll::default() {
            toll.add(death.pid, death.own, death.alone);
        }
        let verdict = self.record(&identity, &death, tried.is_some());
        let convicted = verdict.or_else(|| {
            let is_poison = toll.is_enough(self.settings.kills);
            is_poison.then(|| Convicted { killed: toll.pids.clone(), kept_off: None })
        });
        convicted.map_or(Ok(death.own && death.alone), |convicted| Err(Refusal::Poison(convicted)))
    }

    /// An exchange has ended: what it left behind is followed up, and a suspect that was answered whole is none any more.
    pub(super) fn settle(self: &Arc<Self>, exchange: &mut Exchange) {
        let tried = exchange.turn.take();
        if let Some(pending_end) = self.pending_end(exchange) {
            let identity = self.identity(exchange);
            return self.inquire_later(identity, pending_end, tried, self.settings.suspect_after);
        }
        let log_facts = &exchange.log_facts;
        if exchange.is_suspect && log_facts.refusal.is_none() && log_facts.aborted.is_none() {
            self.acquit(&self.keyring.keys(exchange));
        }
    }

    /// The answer was 101. The request has been answered, whatever becomes of the tunnel, and however long that takes.
    pub(super) fn settle_tunnel(self: &Arc<Self>, exchange: &mut Exchange) {
        self.settle(exchange);
        exchange.is_suspect = false;
    }

    fn acquit(&self, keys: &Keys) {
        self.with(|suspects| suspects.acquit(keys, Instant::now()));
        self.changed.notify_waiters();
    }

    /// What it has in common with others.
    pub(super) fn identity(&self, exchange: &Exchange) -> RequestIdentity {
        self.keyring.identity(exchange)
    }

    fn pending_end(&self, exchange: &mut Exchange) -> Option<PendingEnd> {
        exchange.pending_end.take().filter(|_| self.settings.kills > 0)
    }

    /// For a call that outlives its exchange.
    pub(super) fn following(self: &Arc<Self>, exchange: &Exchange) -> Following {
        let identity = (self.settings.kills > 0).then(|| self.identity(exchange));
        Following { poison: self.clone(), identity }
    }

    /// Waits for the end of what was left behind. From `suspect_after` on, the worker counts as held.
    fn inquire_later(
        self: &Arc<Self>,
        identity: RequestIdentity,
        pending_end: PendingEnd,
        tried: Option<Box<dyn Any + Send + Sync>>,
        suspect_after: Duration,
    ) {
        let poison = self.clone();
        let since = pending_end.since();
        let mut is_held = suspect_after.is_zero() && pending_end.is_lingering();
        if is_held {
            // Before its client knows that it has waited in vain: the next one like it may come at once.
            self.hold(&identity, since);
        }
        tokio::spawn(async move {
            let mut dying = pin!(pending_end.death());
            let death = match timeout(suspect_after, dying.as_mut()).await {
                Ok(death) => death,
                Err(_) => {
                    if !is_held {
                        poison.hold(&identity, since);
                        is_held = true;
                    }
                    dying.await
                }
            };
            if let Some(death) = &death {
                poison.record(&identity, death, tried.is_some());
            }
            // Not before the end: another suspect would end up with the same worker.
            drop(tried);
            if is_held {
                poison.release(&identity);
            }
            poison.changed.notify_waiters();
        });
    }

    /// A worker that got a request like this at `since` does not finish.
    pub(super) fn hold(&self, identity: &RequestIdentity, since: Instant) {
        let now = Instant::now();
        let until = now + self.settings.keep_off.max(self.settings.suspect_after);
        self.with(|suspects| suspects.hold(identity, since, until, now));
    }

    /// It has finished, or is dead.
    pub(super) fn release(&self, identity: &RequestIdentity) {
        self.with(|suspects| suspects.release(&identity.keys));
        self.changed.notify_waiters();
    }

    /// Remembers a death; the verdict, if it was one too many.
    fn record(&self, identity: &RequestIdentity, death: &Death, tried: bool) -> Option<Convicted> {
        let rule = Rule { kills: self.settings.kills, keep_off: self.settings.keep_off };
        let verdicts = self.with(|suspects| suspects.record(identity, death, tried, rule, Instant::now()));
        self.convicted.fetch_add(verdicts.len() as u64, Ordering::Relaxed);
        for (name, convicted) in &verdicts {
            let pool = &self.pool;
            self.journal.event(Level::Warn, &format!("{pool}: poison request {name}: {convicted}"));
        }
        verdicts.into_iter().next().map(|(_, convicted)| convicted)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Suspects) -> T) -> T {
        let mut suspects = self.suspects.lock().unwrap_or_else(PoisonError::into_inner);
        let value = act(&mut suspects);
        self.known.store(suspects.len(), Ordering::Relaxed);
        value
    }
}
