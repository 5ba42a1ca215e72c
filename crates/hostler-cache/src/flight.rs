//! One fetch for several equal requests: which request leads, which ones wait, and what each of them gets. Knows neither
//! requests nor responses.

mod alone;

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::hash::BuildHasher;
use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::Tick;
use alone::{AloneKeys, RECALL_MS};

type Map<V> = HashMap<Arc<[u8]>, V, foldhash::quality::RandomState>;

/// Keys are spread over this many locks, so different keys rarely wait for each other.
const SHARDS: usize = 16;

/// For how many waiting requests there is room at first.
const LEAST_ROOM: usize = 8;

/// The fetches in progress. `T` is what each waiting request gets a clone of.
pub struct Flights<T> {
    shards: Box<[Mutex<FlightShard<T>>]>,
    hasher: foldhash::quality::RandomState,
    alone_ms: u64,
}

struct FlightShard<T> {
    flights: Map<NumberedFlight<T>>,
    /// The requests that wait for flights which no other request joins any more, by the number of the flight.
    set_aside: HashMap<u64, VecDeque<oneshot::Sender<FlightResult<T>>>>,
    /// The number of the latest flight.
    latest: u64,
    /// Keys whose responses cannot be shared.
    alone: AloneKeys,
}

/// A fetch under way. A later one for the same key has another number.
struct NumberedFlight<T> {
    number: u64,
    begun: Tick,
    turn: Arc<AtomicU64>,
    progress: FlightProgress<T>,
}

/// The progress of a fetch.
enum FlightProgress<T> {
    /// There is nothing yet for the waiting requests, which are kept in order.
    Waiting(VecDeque<oneshot::Sender<FlightResult<T>>>),
    /// The response is arriving. All requests can read it from now on.
    Arriving(T),
}

/// The role of a request.
pub enum FlightRole<T> {
    /// Fetch, for itself and for all requests that join meanwhile.
    Leader(Flight<T>),
    /// Wait for the request that fetches.
    Follower(FlightWait<T>),
    /// Read the response that is arriving.
    Arriving(T),
    /// Fetch for itself only: a recent response under this key could not be shared.
    Alone,
}

/// The result of a flight for a waiting request.
pub enum FlightResult<T> {
    /// The response.
    Shared(T),
    /// Each request has to fetch for itself.
    Alone,
    /// The leader has left without a result. This request leads now.
    Lead(Flight<T>),
}

/// How a flight ends.
pub enum FlightOutcome<T> {
    /// All waiting requests get a clone of this.
    Shared(T),
    /// No other request can use the response. All waiting requests fetch for themselves, and so do those that come later,
    /// until a response can be shared. Otherwise they would queue one behind the other.
    Alone,
    /// As `Alone`, for this many milliseconds: the next response is certain to be like this one.
    AloneFor(u64),
    /// The fetch failed. The first waiting request tries once more for all. If that fails too, each request fetches for
    /// itself.
    ///
    /// One failure may be chance, or caused by the leader's own request, so a crowd of requests must not hit the member
    /// at once. After two failures in a row, requests that try one after the other would wait for all failures before
    /// theirs. This problem is known from Varnish's waiting lists; nginx limits it with `proxy_cache_lock_timeout`. Nor
    /// may a request get the failure of another (RFC 9111 section 4). So all requests go to the queue of the pool, which
    /// can handle a crowd.
    Failed,
}

impl<T: Clone> Flights<T> {
    /// No fetch is in progress. After `alone_ms` milliseconds one request finds out whether a key can be shared now.
    pub fn new(alone_ms: u64) -> Arc<Self> {
        let shard = || Mutex::new(FlightShard::new());
        Arc::new(Self {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            hasher: foldhash::quality::RandomState::default(),
            alone_ms,
        })
    }

    /// Joins the flight of this key, or starts one.
    pub fn join(self: &Arc<Self>, key: &[u8], now: Tick) -> FlightRole<T> {
        self.join_unless(key, now, |_, _, _| false)
    }

    /// As [`join`](Self::join), but does not join a flight if `is_void` returns true for the time when it began, for its
    /// response if that arrives already, and for the [`turn`](Flight::turn) of its leader. Only the requests that wait for it
    /// or read it already get it.
    pub fn join_unless(
        self: &Arc<Self>,
        key: &[u8],
        now: Tick,
        is_void: impl FnOnce(Tick, Option<&T>, u64) -> bool,
    ) -> FlightRole<T> {
        let hash = self.hash(key);
        let mut shard = self.shard(hash);
        let is_under_way = shard.flights.contains_key(key);
        if shard.alone.takes(hash, now, self.alone_ms, is_under_way) {
            return FlightRole::Alone;
        }
        if shard.flights.get(key).is_some_and(|NumberedFlight { begun, turn, progress, .. }| {
            is_void(*begun, progress.arriving(), turn.load(Ordering::Relaxed))
        }) {
            shard.set_aside(key);
        }
        if let Some(flight) = shard.flights.get_mut(key) {
            let waiting = match &mut flight.progress {
                FlightProgress::Waiting(waiting) => waiting,
                FlightProgress::Arriving(answer) => return FlightRole::Arriving(answer.clone()),
            };
            let (sender, receiver) = oneshot::channel();
            // Requests that have left make room, so a long fetch does not collect them: only before the list grows, because otherwise each
            // request would look at all others.
            if waiting.len() == waiting.capacity() {
                waiting.retain(|sender| !sender.is_closed());
                waiting.reserve(waiting.len().max(LEAST_ROOM));
            }
            waiting.push_back(sender);
            return FlightRole::Follower(FlightWait(receiver));
        }
        let key: Arc<[u8]> = key.into();
        let (number, turn) = shard.begin(Arc::clone(&key), now);
        FlightRole::Leader(Flight { flights: Some(Arc::clone(self)), key, number, turn, is_second: false })
    }
}

impl<T> Flights<T> {
    /// The number of fetches in progress.
    pub fn count(&self) -> usize {
        let count = |shard: &FlightShard<T>| shard.flights.len() + shard.set_aside.len();
        self.shards.iter().map(|shard| count(&lock(shard))).sum()
    }

    /// Whether a fetch for this key is in progress that a request would join.
    pub fn has(&self, key: &[u8]) -> bool {
        self.shard_of(key).flights.contains_key(key)
    }

    /// Notes that requests for this key fetch for themselves for so long, and no longer.
    pub fn leave_alone(&self, key: &[u8], now: Tick, ms: u64) {
        let hash = self.hash(key);
        self.shard(hash).alone.remember(hash, now, ms, 0);
    }

    /// A request that has fetched for itself got a response that others can use. Later requests join one flight again.
    pub fn share_again(&self, key: &[u8]) {
        let hash = self.hash(key);
        self.shard(hash).alone.forget(hash);
    }

    /// Whether the time of [`leave_alone`](Self::leave_alone) is not over.
    pub fn is_alone(&self, key: &[u8], now: Tick) -> bool {
        let hash = self.hash(key);
        self.shard(hash).alone.has(hash, now)
    }

    fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    fn shard_of(&self, key: &[u8]) -> MutexGuard<'_, FlightShard<T>> {
        self.shard(self.hash(key))
    }

    /// The shard of the keys with this hash.
    fn shard(&self, hash: u64) -> MutexGuard<'_, FlightShard<T>> {
        // The high bits, because the low bits choose the bucket of a map.
        let at = (hash >> 57) as usize % SHARDS;
        lock(&self.shards[at])
    }
}

/// A poisoned lock is safe to use: no code in here panics between two changes, so the maps are whole.
fn lock<T>(shard: &Mutex<FlightShard<T>>) -> MutexGuard<'_, FlightShard<T>> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The leadership of a fetch. If it is dropped without [`Flight::settle`], the first waiting request leads.
pub struct Flight<T> {
    /// `None` after the flight was settled or handed on.
    flights: Option<Arc<Flights<T>>>,
    key: Arc<[u8]>,
    number: u64,
    /// When the leader's turn comes, by the caller's clock. 0: it waits for no turn.
    pub turn: Arc<AtomicU64>,
    /// A leader before this one has failed.
    is_second: bool,
}

impl<T: Clone> Flight<T> {
    /// The response begins to arrive. All waiting requests get a clone, and so does each request that joins before the
    /// flight is settled.
    pub fn arrive(&self, answer: &T) {
        let Some(flights) = &self.flights else { return };
        let waiting = {
            let hash = flights.hash(&self.key);
            let mut shard = flights.shard(hash);
            shard.alone.forget(hash);
            shard.arrive(&self.key, self.number, answer)
        };
        for sender in waiting {
            // A request that has left does not need it.
            let _ = sender.send(FlightResult::Shared(answer.clone()));
        }
    }

    /// Ends the flight for all waiting requests. A later request finds the response in memory or starts its own flight.
    pub fn settle(mut self, outcome: FlightOutcome<T>, now: Tick) {
        if matches!(outcome, FlightOutcome::Failed) && !self.is_second {
            self.is_second = true;
            return self.hand_on();
        }
        let Some(flights) = self.flights.take() else { return };
        let waiting = {
            let hash = flights.hash(&self.key);
            let mut shard = flights.shard(hash);
            match outcome {
                FlightOutcome::Shared(_) => shard.alone.forget(hash),
                FlightOutcome::Failed => {}
                FlightOutcome::Alone => shard.alone.remember(hash, now, flights.alone_ms, RECALL_MS),
                FlightOutcome::AloneFor(ms) => shard.alone.remember(hash, now, ms, RECALL_MS),
            }
            shard.end(&self.key, self.number)
        };
        for sender in waiting {
            let landed = match &outcome {
                FlightOutcome::Shared(answer) => FlightResult::Shared(answer.clone()),
                FlightOutcome::Alone | FlightOutcome::AloneFor(_) | FlightOutcome::Failed => {
                    FlightResult::Alone
                }
            };
            // A request that has left does not need it.
            let _ = sender.send(landed);
        }
    }
}

impl<T> Flight<T> {
    fn hand_on(&mut self) {
        let Some(flights) = self.flights.take() else { return };
        loop {
            let next = flights.shard_of(&self.key).next(&self.key, self.number);
            let Some(next) = next else { return };
            let (key, number, is_second) = (Arc::clone(&self.key), self.number, self.is_second);
            let turn = Arc::clone(&self.turn);
            let heir = Flight { flights: Some(Arc::clone(&flights)), key, number, turn, is_second };
            match next.send(FlightResult::Lead(heir)) {
                Ok(()) => return,
                // That request has left too. The returned lead must not be dropped as it is: its drop would run this loop
                // again, one stack level deeper.
                Err(FlightResult::Lead(mut back)) => mem::drop(back.flights.take()),
                Err(FlightResult::Shared(_) | FlightResult::Alone) => {}
            }
        }
    }
}

impl<T> Drop for Flight<T> {
    fn drop(&mut self) {
        self.hand_on();
    }
}

impl<T> FlightProgress<T> {
    fn arriving(&self) -> Option<&T> {
        match self {
            Self::Waiting(_) => None,
            Self::Arriving(answer) => Some(answer),
        }
    }

    fn waiting(self) -> VecDeque<oneshot::Sender<FlightResult<T>>> {
        match self {
            Self::Waiting(waiting) => waiting,
            Self::Arriving(_) => VecDeque::new(),
        }
    }
}

impl<T> FlightShard<T> {
    fn new() -> Self {
        Self {
            flights: HashMap::default(),
            set_aside: HashMap::new(),
            latest: 0,
            alone: AloneKeys::default(),
        }
    }

    fn begin(&mut self, key: Arc<[u8]>, begun: Tick) -> (u64, Arc<AtomicU64>) {
        self.latest += 1;
        let (number, turn) = (self.latest, Arc::<AtomicU64>::default());
        let progress = FlightProgress::Waiting(VecDeque::new());
        self.flights.insert(key, NumberedFlight { number, begun, turn: Arc::clone(&turn), progress });
        (number, turn)
    }

    /// No request joins this flight any more. The next one begins another.
    fn set_aside(&mut self, key: &[u8]) {
        let Some(NumberedFlight { number, progress, .. }) = self.flights.remove(key) else { return };
        let waiting = progress.waiting();
        if !waiting.is_empty() {
            self.set_aside.insert(number, waiting);
        }
    }

    /// Returns the requests that have waited for this.
    fn arrive(&mut self, key: &[u8], number: u64, answer: &T) -> VecDeque<oneshot::Sender<FlightResult<T>>>
    where
        T: Clone,
    {
        match self.flights.get_mut(key) {
            Some(flight) if flight.number == number => {
                mem::replace(&mut flight.progress, FlightProgress::Arriving(answer.clone())).waiting()
            }
            _ => self.set_aside.remove(&number).unwrap_or_default(),
        }
    }

    /// Returns the requests that wait for the end.
    fn end(&mut self, key: &[u8], number: u64) -> VecDeque<oneshot::Sender<FlightResult<T>>> {
        match self.flights.get(key) {
            Some(flight) if flight.number == number => {
                self.flights.remove(key).map(|flight| flight.progress.waiting()).unwrap_or_default()
            }
            _ => self.set_aside.remove(&number).unwrap_or_default(),
        }
    }

    /// The first request that waits for the flight. Without one the flight ends.
    fn next(&mut self, key: &[u8], number: u64) -> Option<oneshot::Sender<FlightResult<T>>> {
        let next = match self.flights.get_mut(key) {
            Some(NumberedFlight { number: current, progress, .. }) if *current == number => match progress {
                FlightProgress::Waiting(waiting) => waiting.pop_front(),
                FlightProgress::Arriving(_) => None,
            },
            _ => self.set_aside.get_mut(&number).and_then(VecDeque::pop_front),
        };
        if next.is_none() {
            self.end(key, number);
        }
        next
    }
}

/// Resolves when the flight has ended. If it is dropped early, the request has left, and a lead that was given to it goes
/// to the next.
pub struct FlightWait<T>(oneshot::Receiver<FlightResult<T>>);

impl<T> Future for FlightWait<T> {
    type Output = FlightResult<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // The sender is dropped without a result only together with all flights. Then each request fetches for itself.
        Pin::new(&mut self.0).poll(cx).map(|landed| landed.unwrap_or(FlightResult::Alone))
    }
}

#[cfg(test)]
mod tests;
