//! Requests that kill workers, kept off their pool so that one URL or one client cannot take it down. Knows no queue.
//!
//! If a worker ends unexpectedly, every request that it held becomes a suspect: by its method and URL, its path, its route and its client.
//! When one request of a suspect is answered, the suspicion ends. So a conviction needs deaths *in a row*, each of a request that was sent
//! after the death before. Requests of a suspect that has killed, or that holds a worker for too long, go to workers one at a time
//! ([`super::wait`] waits for the turn). A suspect that has killed too often is refused for `keep_off`, without a worker. Decision 16 says
//! how much each death counts.

mod turn;

use std::any::Any;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::{Instant, sleep, timeout_at};

use super::death_count::DeathCount;
use super::identity::{IdentityKind, Keyring, Keys, RequestIdentity};
use super::poison_settings::PoisonSettings;
use super::refusal::Refusal;
use super::suspects::{Admission, Convicted, KeptOff, Rule, SuspectStanding, Suspects, SuspectsView};
use super::worker_hold::{WorkerHold, end_within};
use crate::exchange::{Death, Exchange, LoopWatch, PendingEnd, RequestFate};
use crate::journal::{Journal, Level};
use crate::proxy;
use turn::{Turn, TurnLine, TurnWait, as_turn, is_on_trial};

pub struct Poison {
    pool: Arc<str>,
    settings: ArcSwap<PoisonSettings>,
    journal: Journal,
    keyring: Keyring,
    /// The number of suspects. While it is 0, a request costs one load of this.
    known: AtomicUsize,
    suspects: Mutex<Suspects>,
    /// Notified when a turn or a suspicion has ended.
    changed: Notify,
    waiting: TurnLine,
    refused: Arc<AtomicU64>,
    convicted: Arc<AtomicU64>,
}

/// What is needed to wait for the end of a call that goes on after its exchange.
pub(super) struct Following {
    poison: Arc<Poison>,
    /// None if `poison.kills` is 0.
    identity: Option<RequestIdentity>,
    /// The turn of a request on trial. It ends with the call, however slowly the clients read.
    tried: Option<Box<dyn Any + Send + Sync>>,
}

impl Following {
    /// The name of the request for the log. None if `poison.kills` is 0.
    pub fn name(&self) -> Option<Arc<str>> {
        self.identity.as_ref().map(|identity| identity.name().clone())
    }

    /// The worker has answered the request whole.
    pub fn answered(self) {
        if let Some(identity) = &self.identity {
            self.poison.acquit(&identity.keys);
        }
    }

    /// Waits in a task for the end of the call.
    pub fn follow(self, pending_end: Option<PendingEnd>) {
        if let (Some(identity), Some(pending_end)) = (self.identity, pending_end) {
            self.poison.follow_up(identity, pending_end, self.tried, self.poison.settings().suspect_after);
        }
    }
}

impl Poison {
    /// Empty suspects for the pool with this name. `before`: those of the pool before a reload. Its counters go on, but its suspects are
    /// dropped, because they were found under other settings.
    pub fn new(pool: Arc<str>, settings: PoisonSettings, journal: Journal, before: Option<&Self>) -> Self {
        Self {
            pool,
            settings: ArcSwap::from_pointee(settings),
            journal,
            keyring: Keyring::default(),
            known: AtomicUsize::new(0),
            suspects: Mutex::default(),
            changed: Notify::new(),
            waiting: TurnLine::default(),
            refused: before.map(|before| before.refused.clone()).unwrap_or_default(),
            convicted: before.map(|before| before.convicted.clone()).unwrap_or_default(),
        }
    }

    /// Applies settings that differ only in times. All suspects are kept.
    pub fn follow(&self, settings: PoisonSettings) {
        self.settings.store(Arc::new(settings));
    }

    /// The settings of this moment.
    fn settings(&self) -> PoisonSettings {
        **self.settings.load()
    }

    /// The convicted requests that are refused now, at most a hundred.
    pub fn kept_off(&self) -> Vec<KeptOff> {
        self.with(|suspects| suspects.kept_off(Instant::now()))
    }

    pub fn view(&self) -> SuspectsView {
        SuspectsView {
            one_at_a_time: self.with(|suspects| suspects.gated()),
            waiting: self.waiting.len(),
            refused: self.refused.load(Ordering::Relaxed),
            convicted: self.convicted.load(Ordering::Relaxed),
        }
    }

    /// Refuses convicted requests, and marks suspects.
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

    /// A place among the requests that wait for their turn. There are a thousand, and no client gets all.
    pub(super) fn take_place(&self, exchange: &Exchange) -> Option<TurnWait<'_>> {
        TurnWait::begin(&self.waiting, self.keyring.keys(exchange)[IdentityKind::Client as usize])
    }

    /// Wakes when a turn or a suspicion has ended.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Whether the request may go on: because it has the turn, or because nothing is against it. `members`: so many does the pool have.
    pub(super) fn enter(
        self: &Arc<Self>,
        exchange: &mut Exchange,
        members: usize,
    ) -> Result<Admission, Refusal> {
        // Meanwhile a similar request may have been answered, or convicted.
        self.admit(exchange)?;
        if !exchange.is_suspect {
            return Ok(Admission::Free);
        }
        let (keys, crowded) = (self.keyring.keys(exchange), self.settings().crowded);
        let entry = self.with(|suspects| suspects.enter(&keys, crowded, members, Instant::now()));
        if let Admission::Alone(number) = entry {
            let poison = self.clone();
            exchange.turn = Some(Box::new(Turn::new(move || poison.leave(&keys, number))));
        }
        Ok(entry)
    }

    /// The request has got its slot. If it is on trial, its turn ends when it has run for longer than those over which workers died, or
    /// the `event_loop` of its worker turns: the answers of innocent ones may take long. Then `share` gives its worker to other requests.
    pub(super) fn begin_trial(
        &self,
        exchange: &Exchange,
        event_loop: Option<LoopWatch>,
        share: impl FnOnce() + Send + 'static,
    ) {
        let Some(turn) = as_turn(exchange.turn.as_deref()) else { return };
        let keys = self.keyring.keys(exchange);
        turn.end_after(self.with(|suspects| suspects.begin_trial(&keys)), event_loop, share);
    }

    /// The turn of a suspect is over.
    fn leave(&self, keys: &Keys, number: u64) {
        self.with(|suspects| suspects.leave(keys, number));
        self.changed.notify_waiters();
    }

    /// Counts a request whose turn did not come.
    pub(super) fn refuse(&self) -> Refusal {
        self.refused.fetch_add(1, Ordering::Relaxed);
        Refusal::Suspect
    }

    /// Whether the request must be alone with its worker: it is on trial, and workers hold several requests at once.
    pub(super) fn isolates(&self, exchange: &Exchange) -> bool {
        // The settings are read only for a request on trial: to load them takes two atomic operations.
        exchange.turn.is_some() && self.settings().crowded
    }

    /// To be called when the response to this request is late. From now on the time of each answer to a similar request is recorded.
    pub(super) fn watch(&self, exchange: &mut Exchange, until: Instant) {
        if self.settings().kills > 0 {
            let identity = self.identity(exchange);
            self.with(|suspects| suspects.watch(&identity, until, Instant::now()));
            exchange.is_suspect = true;
        }
    }

    /// Finds out whether a worker died over this request, and adds the death to `deaths`. An error is the refusal after too many deaths.
    /// `Ok(true)`: the worker ended by itself and had no other request.
    pub(super) async fn blame(
        self: &Arc<Self>,
        exchange: &mut Exchange,
        deaths: &mut DeathCount,
    ) -> Result<bool, Refusal> {
        let turn = exchange.turn.take();
        let tried = is_on_trial(turn.as_deref());
        let Some(pending_end) = self.pending_end(exchange) else { return Ok(false) };
        let identity = self.identity(exchange);
        if pending_end.is_lingering() {
            // No client waits for the answer any more, but the worker still works on it.
            self.follow_up(identity, pending_end, turn, Duration::ZERO);
            return Ok(false);
        }
        let Some(death) = pending_end.death().await else { return Ok(false) };
        exchange.is_suspect = true;
        if tried || death.alone || *deaths == DeathCount::default() {
            deaths.add(&death);
        }
        let verdict = self.record(&identity, &death, tried);
        let convicted = verdict.or_else(|| {
            let is_poison = deaths.is_enough(self.settings().kills);
            is_poison.then(|| Convicted { killed: deaths.pids.clone(), kept_off: None })
        });
        convicted.map_or(Ok(death.own && death.alone), |convicted| Err(Refusal::Poison(convicted)))
    }

    /// An exchange has ended. Follows up the call if it goes on. Ends the suspicion if a worker has answered the request whole, also if its
    /// client has left. A stored response that stands in for a refusal is no answer of a worker.
    pub(super) fn settle(self: &Arc<Self>, exchange: &mut Exchange) {
        let tried = exchange.turn.take();
        if let Some(pending_end) = self.pending_end(exchange) {
            let identity = self.identity(exchange);
            return self.follow_up(identity, pending_end, tried, self.settings().suspect_after);
        }
        let log_facts = &exchange.log_facts;
        let is_whole = log_facts.refusal.is_none() && log_facts.aborted.is_none();
        if exchange.is_suspect && (exchange.is_answered || log_facts.member_status.is_some() && is_whole) {
            self.acquit(&self.keyring.keys(exchange));
        }
    }

    /// The answer was 101. So the request counts as answered, whatever happens in the tunnel later.
    pub(super) fn settle_tunnel(self: &Arc<Self>, exchange: &mut Exchange) {
        self.settle(exchange);
        exchange.is_suspect = false;
    }

    /// The answer is a stream, which may go on for hours. If it lives for a moment, the request counts as answered, and its turn ends.
    pub(super) fn settle_stream(self: &Arc<Self>, exchange: &mut Exchange) {
        if !exchange.is_suspect {
            return;
        }
        let turn = Arc::new(Mutex::new(exchange.turn.take()));
        let (poison, keys, lives) = (self.clone(), self.keyring.keys(exchange), Arc::downgrade(&turn));
        exchange.turn = Some(Box::new(turn));
        tokio::spawn(async move {
            sleep(proxy::ALONE_TIME).await;
            if let Some(turn) = lives.upgrade() {
                drop(turn.lock().unwrap_or_else(PoisonError::into_inner).take());
                poison.acquit(&keys);
            }
        });
    }

    fn acquit(&self, keys: &Keys) {
        self.with(|suspects| suspects.acquit(keys, Instant::now()));
        self.changed.notify_waiters();
    }

    pub(super) fn identity(&self, exchange: &Exchange) -> RequestIdentity {
        self.keyring.identity(exchange, &self.journal)
    }

    fn pending_end(&self, exchange: &mut Exchange) -> Option<PendingEnd> {
        let pending_end = exchange.pending_end.take()?;
        if self.settings().kills > 0 {
            return Some(pending_end);
        }
        // Nothing follows from the end, but the log names the request if its worker is killed.
        pending_end.name_until_end(self.identity(exchange).name());
        None
    }

    /// For a call that outlives its exchange.
    pub(super) fn following(self: &Arc<Self>, exchange: &mut Exchange) -> Following {
        let identity = (self.settings().kills > 0).then(|| self.identity(exchange));
        Following { poison: self.clone(), identity, tried: exchange.turn.take() }
    }

    /// Waits for the end of a call. After `suspect_after`, the worker counts as held, unless its event loop turns.
    fn follow_up(
        self: &Arc<Self>,
        identity: RequestIdentity,
        pending_end: PendingEnd,
        tried: Option<Box<dyn Any + Send + Sync>>,
        suspect_after: Duration,
    ) {
        let poison = self.clone();
        let pending_end = pending_end.named(identity.name());
        let (since, event_loop) = (pending_end.since(), pending_end.event_loop());
        let may_close = pending_end.is_alone() && !identity.is_batch;
        let mut held = None;
        if suspect_after.is_zero() && pending_end.is_lingering() {
            // At once, before the client gets its refusal: a similar request may follow immediately.
            let hold = WorkerHold::of(event_loop.as_ref().is_some_and(LoopWatch::waits), may_close);
            self.hold(&identity, hold, since);
            held = Some(hold);
        }
        tokio::spawn(async move {
            if held == Some(WorkerHold::Blocks)
                && let Some(event_loop) = &event_loop
                && event_loop.turns().await
            {
                // It only computed for a moment.
                poison.hold(&identity, WorkerHold::Waits, since);
                held = Some(WorkerHold::Waits);
                poison.release(&identity, WorkerHold::Blocks);
            }
            let mut ended = pin!(pending_end.fate());
            // Answers to similar requests are recorded from then on, because a path that is answered is not closed.
            let may_hold = || {
                let (now, longest) = (Instant::now(), poison.settings().request_timeout);
                poison.with(|suspects| suspects.watch(&identity, now + longest, now));
            };
            let fate = match end_within(suspect_after, ended.as_mut(), may_hold).await {
                Ok(fate) => fate,
                Err(_) if held.is_some() => ended.await,
                Err(_) => {
                    let turns = match event_loop {
                        Some(event_loop) => event_loop.turns().await,
                        None => false,
                    };
                    let until = if turns { since + poison.settings().request_timeout } else { since };
                    match timeout_at(until, ended.as_mut()).await {
                        Ok(fate) => fate,
                        Err(_) => {
                            let hold = WorkerHold::of(turns, may_close);
                            poison.hold(&identity, hold, since);
                            held = Some(hold);
                            ended.await
                        }
                    }
                }
            };
            match fate {
                RequestFate::Deadly(death) => {
                    poison.record(&identity, &death, is_on_trial(tried.as_deref()));
                }
                // The end of one that has held its worker says nothing about those that still hold theirs.
                RequestFate::Finished if held.is_none() => poison.acquit(&identity.keys),
                RequestFate::Finished | RequestFate::Dropped => {}
            }
            // Only after the end: otherwise another suspect would go to the same worker.
            drop(tried);
            if let Some(hold) = held {
                poison.release(&identity, hold);
            }
            poison.changed.notify_waiters();
        });
    }

    /// A worker that got a similar request at `since` does not finish.
    pub(super) fn hold(&self, identity: &RequestIdentity, hold: WorkerHold, since: Instant) {
        let (now, settings) = (Instant::now(), self.settings());
        let until = now + settings.keep_off.max(settings.suspect_after);
        self.with(|suspects| suspects.hold(identity, hold, since, until, now));
    }

    /// The worker has finished, or is dead.
    pub(super) fn release(&self, identity: &RequestIdentity, hold: WorkerHold) {
        self.with(|suspects| suspects.release(&identity.keys, hold));
        self.changed.notify_waiters();
    }

    /// Records a death. Returns the conviction, if this was one death too many.
    pub(super) fn record(&self, identity: &RequestIdentity, death: &Death, tried: bool) -> Option<Convicted> {
        let PoisonSettings { kills, keep_off, .. } = self.settings();
        let rule = Rule { kills, keep_off };
        let verdicts = self.with(|suspects| suspects.record(identity, death, tried, rule, Instant::now()));
        self.convicted.fetch_add(verdicts.len() as u64, Ordering::Relaxed);
        for (name, convicted) in &verdicts {
            self.journal.event(Level::Warn, &format!("{}: poison request {name}: {convicted}", self.pool));
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use hostler_dispatch::{CpuClock, CpuReading};
    use tokio::sync::oneshot;
    use tokio::time::advance;

    use super::super::tests::{journal, request, seconds};
    use super::*;

    #[test]
    fn a_reload_that_changes_the_settings_keeps_the_counts() {
        let before = Poison::new("app".into(), PoisonSettings::OFF, journal(), None);
        before.convicted.fetch_add(2, Ordering::Relaxed);
        let settings = PoisonSettings { suspect_after: seconds(10), ..PoisonSettings::OFF };
        let changed = Poison::new("app".into(), settings, journal(), Some(&before));
        changed.convicted.fetch_add(1, Ordering::Relaxed);
        assert_eq!((before.view().convicted, changed.view().convicted), (3, 3));
    }

    #[tokio::test]
    async fn the_turn_of_a_request_whose_call_outlives_it_ends_with_the_call() {
        let settings = PoisonSettings { kills: 2, keep_off: seconds(60), ..PoisonSettings::OFF };
        let poison = Arc::new(Poison::new("app".into(), settings, journal(), None));
        let (mut exchange, mut next) = (request("192.0.2.1", ""), request("192.0.2.1", ""));
        poison.hold(&poison.identity(&exchange), WorkerHold::Waits, Instant::now());
        assert!(matches!(poison.enter(&mut exchange, 9), Ok(Admission::Alone(_))));
        let following = poison.following(&mut exchange);
        assert!(matches!(poison.enter(&mut next, 9), Ok(Admission::Closed { .. })));
        following.follow(None);
        assert!(matches!(poison.enter(&mut next, 9), Ok(Admission::Alone(_))));
    }

    #[tokio::test]
    async fn a_stored_response_in_place_of_a_refusal_ends_no_suspicion() {
        let settings = PoisonSettings { kills: 2, keep_off: seconds(60), ..PoisonSettings::OFF };
        let poison = Arc::new(Poison::new("app".into(), settings, journal(), None));
        let mut exchange = request("192.0.2.1", "");
        for pid in [1, 2] {
            let death = Death { pid, since: Instant::now(), at: Instant::now(), own: true, alone: true };
            poison.record(&poison.identity(&exchange), &death, false);
        }
        assert!(poison.admit(&mut exchange).is_err());
        poison.settle(&mut exchange);
        assert!(poison.admit(&mut exchange).is_err(), "no worker has answered");
        exchange.log_facts.member_status = Some(200);
        poison.settle(&mut exchange);
        assert!(poison.admit(&mut exchange).is_ok());
    }

    #[tokio::test]
    async fn an_answer_that_its_client_does_not_take_ends_the_suspicion_too() {
        let settings = PoisonSettings { kills: 2, keep_off: seconds(60), ..PoisonSettings::OFF };
        let poison = Arc::new(Poison::new("app".into(), settings, journal(), None));
        let (mut exchange, mut next) = (request("192.0.2.1", ""), request("192.0.2.2", ""));
        let mut is_suspect = || {
            next.is_suspect = false;
            assert!(poison.admit(&mut next).is_ok());
            next.is_suspect
        };
        let death = Death { pid: 1, since: Instant::now(), at: Instant::now(), own: true, alone: true };
        poison.record(&poison.identity(&exchange), &death, false);
        (exchange.is_suspect, exchange.log_facts.member_status) = (true, Some(200));
        (exchange.log_facts.refusal, exchange.log_facts.aborted) = (Some("client_left"), Some("client"));
        poison.settle(&mut exchange);
        assert!(is_suspect(), "the worker has not finished");
        exchange.is_answered = true;
        poison.settle(&mut exchange);
        assert!(!is_suspect());
        // A fetch for the cache, whose client has left.
        let death = Death { pid: 2, ..death };
        poison.record(&poison.identity(&exchange), &death, false);
        assert!(is_suspect());
        poison.following(&mut exchange).answered();
        assert!(!is_suspect());
    }

    #[tokio::test(start_paused = true)]
    async fn a_trial_that_runs_for_longer_than_the_deaths_took_lets_the_next_request_go() {
        let settings = PoisonSettings { kills: 2, keep_off: seconds(60), ..PoisonSettings::OFF };
        let poison = Arc::new(Poison::new("app".into(), settings, journal(), None));
        let (mut exchange, mut next) = (request("192.0.2.1", ""), request("192.0.2.2", ""));
        let since = Instant::now();
        advance(seconds(2)).await;
        let death = Death { pid: 1, since, at: Instant::now(), own: true, alone: true };
        assert!(poison.record(&poison.identity(&exchange), &death, false).is_none());
        assert!(matches!(poison.enter(&mut exchange, 9), Ok(Admission::Alone(_))));
        let (share, shared) = oneshot::channel();
        poison.begin_trial(&exchange, None, || share.send(()).unwrap());
        assert!(matches!(poison.enter(&mut next, 9), Ok(Admission::Closed { risky: true })));
        assert!(is_on_trial(exchange.turn.as_deref()));
        let began = Instant::now();
        shared.await.unwrap();
        let lasted = began.elapsed();
        assert!((seconds(4)..seconds(5)).contains(&lasted), "half as long again, and a second: {lasted:?}");
        assert!(!is_on_trial(exchange.turn.as_deref()));
        assert!(matches!(poison.enter(&mut next, 9), Ok(Admission::Alone(_))));
    }

    /// A main thread that waits for events, or does not.
    #[derive(Default)]
    struct TrialThread(AtomicBool);

    impl CpuClock for TrialThread {
        fn read(&self) -> Option<CpuReading> {
            None
        }

        fn waits(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn beside_a_blocked_worker_a_trial_ends_soon_if_the_event_loop_of_its_worker_turns() {
        let settings = PoisonSettings { kills: 2, keep_off: seconds(60), ..PoisonSettings::OFF };
        let poison = Arc::new(Poison::new("app".into(), settings, journal(), None));
        let (blocking, mut exchange) = (request("192.0.2.1", ""), request("192.0.2.2", ""));
        poison.hold(&poison.identity(&blocking), WorkerHold::Blocks, Instant::now());
        let thread = Arc::new(TrialThread::default());
        for (waits, least) in [(true, 4), (false, 60)] {
            thread.0.store(waits, Ordering::Relaxed);
            assert!(matches!(poison.enter(&mut exchange, 9), Ok(Admission::Alone(_))));
            let (share, shared) = oneshot::channel();
            let began = Instant::now();
            poison.begin_trial(&exchange, Some(LoopWatch::new(thread.clone())), || share.send(()).unwrap());
            shared.await.unwrap();
            let lasted = began.elapsed();
            assert!((seconds(least)..seconds(least + 1)).contains(&lasted), "{lasted:?}");
            exchange.turn = None;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn other_times_of_requests_hold_from_a_reload_on() {
        let poison = Poison::new("app".into(), PoisonSettings::OFF, journal(), None);
        poison.follow(PoisonSettings { suspect_after: seconds(10), ..PoisonSettings::OFF });
        let mut exchange = request("192.0.2.1", "");
        let identity = poison.identity(&exchange);
        poison.hold(&identity, WorkerHold::Blocks, Instant::now());
        poison.release(&identity, WorkerHold::Blocks);
        for (second, is_suspect) in [(5, true), (11, false)] {
            advance(seconds(second)).await;
            assert!(poison.admit(&mut exchange).is_ok());
            assert_eq!(exchange.is_suspect, is_suspect);
        }
    }
}
