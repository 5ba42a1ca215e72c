//! One fetch for several equal requests: who leads, who waits, and what becomes of them. Knows neither requests nor answers.

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::future::Future;
use std::hash::BuildHasher;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::Moment;

type Map<V> = HashMap<Arc<[u8]>, V, foldhash::quality::RandomState>;

/// Locks taken by different keys rarely meet.
const SHARDS: usize = 16;

/// How many keys of a shard are remembered as not to be shared. Who is forgotten costs one more flight.
const MOST_ALONE: usize = 4096;

/// The fetches that are under way. `T` is what those who wait get a clone of.
pub struct Flights<T> {
    shards: Box<[Mutex<FlightShard<T>>]>,
    hasher: foldhash::quality::RandomState,
    alone_ms: u64,
}

struct FlightShard<T> {
    flights: Map<FlightCourse<T>>,
    /// Keys whose answers cannot be shared, and until when we believe that.
    alone: Map<Moment>,
}

/// How far a fetch has come.
enum FlightCourse<T> {
    /// Nothing is there yet for those who wait, in their order.
    Out(VecDeque<oneshot::Sender<Landed<T>>>),
    /// What comes is there for all, though not all of it.
    Arriving(T),
}

/// What a request is to do.
pub enum FlightRole<T> {
    /// To fetch, for itself and for whoever comes while it does.
    Leader(Flight<T>),
    /// To wait for the one who fetches.
    Follower(FlightWait<T>),
    /// To take what is arriving at this moment.
    Arriving(T),
    /// To fetch for itself: what comes under this key is not to be shared, as was seen a moment ago.
    Alone,
}

/// What has become of a flight for one who waited.
pub enum Landed<T> {
    /// Here it is.
    Shared(T),
    /// Everyone has to fetch for himself.
    Alone,
    /// Whoever fetched has gone without a word; it is up to this one now.
    Lead(Flight<T>),
}

/// How a flight ends.
pub enum FlightOutcome<T> {
    /// All who wait get a clone of this.
    Shared(T),
    /// Nobody else can use what came: all fetch for themselves, and so does who comes within the next seconds. Without that
    /// they would queue up, one behind the other.
    Alone,
    /// The same for so many milliseconds: what came was such that the next is sure to be like it.
    AloneFor(u64),
    /// Nothing came that anybody could use. The first of those who wait tries once more, for all; where that fails as well,
    /// everyone fetches for himself.
    ///
    /// Once may have been bad luck, or the leader's own doing. So a crowd does not fall upon whoever has just failed. But twice in
    /// a row is neither, and to go on one after the other would let those behind wait for all the failures before theirs: what
    /// Varnish's waiting lists are known for, and what nginx ends by `proxy_cache_lock_timeout`. Nor may they be given a failure
    /// that is not theirs (RFC 9111 section 4). What they ask for has a queue of its own, which is made for crowds.
    Failed,
}

impl<T: Clone> Flights<T> {
    /// None under way. What cannot be shared is believed not to be for `alone_ms` milliseconds.
    pub fn new(alone_ms: u64) -> Arc<Self> {
        let shard = || Mutex::new(FlightShard { flights: HashMap::default(), alone: HashMap::default() });
        Arc::new(Self {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            hasher: foldhash::quality::RandomState::default(),
            alone_ms,
        })
    }

    /// Leads or follows.
    pub fn join(self: &Arc<Self>, key: &[u8], now: Moment) -> FlightRole<T> {
        let mut shard = self.shard(key);
        if let Some(until) = shard.alone.get(key) {
            if now < *until {
                return FlightRole::Alone;
            }
            shard.alone.remove(key);
        }
        if let Some(course) = shard.flights.get_mut(key) {
            let waiting = match course {
                FlightCourse::Out(waiting) => waiting,
                FlightCourse::Arriving(answer) => return FlightRole::Arriving(answer.clone()),
            };
            let (sender, receiver) = oneshot::channel();
            // Who has gone meanwhile makes room, so that a fetch that takes long does not collect them.
            if waiting.front().is_some_and(oneshot::Sender::is_closed) {
                waiting.retain(|sender| !sender.is_closed());
            }
            waiting.push_back(sender);
            return FlightRole::Follower(FlightWait(receiver));
        }
        let key: Arc<[u8]> = key.into();
        shard.flights.insert(Arc::clone(&key), FlightCourse::Out(VecDeque::new()));
        FlightRole::Leader(Flight { flights: Some(Arc::clone(self)), key, is_second: false })
    }

    /// An answer under this key can be shared after all.
    pub fn shareable(&self, key: &[u8]) {
        self.shard(key).alone.remove(key);
    }
}

impl<T> Flights<T> {
    /// How many fetches are under way.
    pub fn count(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).flights.len()).sum()
    }

    fn shard(&self, key: &[u8]) -> MutexGuard<'_, FlightShard<T>> {
        // The low bits choose among a map's buckets.
        let at = (self.hasher.hash_one(key) >> 57) as usize % SHARDS;
        lock(&self.shards[at])
    }
}

/// A poisoned lock guards maps that are whole: nothing in here panics between two changes.
fn lock<T>(shard: &Mutex<FlightShard<T>>) -> MutexGuard<'_, FlightShard<T>> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The right and the duty to fetch. Dropped unsettled, it goes to the first of those who wait.
pub struct Flight<T> {
    /// None: settled, or handed on.
    flights: Option<Arc<Flights<T>>>,
    key: Arc<[u8]>,
    /// Another has led it, and failed.
    is_second: bool,
}

impl<T: Clone> Flight<T> {
    /// It has begun to arrive: all who wait get a clone of this, and so does who comes before it is settled.
    pub fn arrive(&self, answer: &T) {
        let Some(flights) = &self.flights else { return };
        let arriving = FlightCourse::Arriving(answer.clone());
        let before = flights.shard(&self.key).flights.insert(Arc::clone(&self.key), arriving);
        for sender in before.map(FlightCourse::waiting).unwrap_or_default() {
            // Who has gone does not miss it.
            let _ = sender.send(Landed::Shared(answer.clone()));
        }
    }

    /// Ends it for all who wait. Who asks from now on finds the answer in memory, or leads a flight of his own.
    pub fn settle(mut self, outcome: FlightOutcome<T>, now: Moment) {
        if matches!(outcome, FlightOutcome::Failed) && !self.is_second {
            self.is_second = true;
            return self.hand_on();
        }
        let Some(flights) = self.flights.take() else { return };
        let waiting = {
            let mut shard = flights.shard(&self.key);
            match outcome {
                FlightOutcome::Shared(_) | FlightOutcome::Failed => {}
                FlightOutcome::Alone => shard.remember_alone(Arc::clone(&self.key), now, flights.alone_ms),
                FlightOutcome::AloneFor(ms) => shard.remember_alone(Arc::clone(&self.key), now, ms),
            }
            shard.flights.remove(&self.key).map(FlightCourse::waiting).unwrap_or_default()
        };
        for sender in waiting {
            let landed = match &outcome {
                FlightOutcome::Shared(answer) => Landed::Shared(answer.clone()),
                FlightOutcome::Alone | FlightOutcome::AloneFor(_) | FlightOutcome::Failed => Landed::Alone,
            };
            // Who has gone does not miss it.
            let _ = sender.send(landed);
        }
    }
}

impl<T> Flight<T> {
    fn hand_on(&mut self) {
        let Some(flights) = self.flights.take() else { return };
        loop {
            let next = {
                let mut shard = flights.shard(&self.key);
                let Entry::Occupied(mut flight) = shard.flights.entry(Arc::clone(&self.key)) else { return };
                match flight.get_mut() {
                    FlightCourse::Out(waiting) if !waiting.is_empty() => waiting.pop_front(),
                    _ => {
                        flight.remove();
                        None
                    }
                }
            };
            let Some(next) = next else { return };
            let (key, is_second) = (Arc::clone(&self.key), self.is_second);
            let heir = Flight { flights: Some(Arc::clone(&flights)), key, is_second };
            match next.send(Landed::Lead(heir)) {
                Ok(()) => return,
                // Gone as well. What comes back must not be dropped as it is: it would run this loop again, one level deeper.
                Err(Landed::Lead(mut back)) => mem::drop(back.flights.take()),
                Err(Landed::Shared(_) | Landed::Alone) => {}
            }
        }
    }
}

impl<T> Drop for Flight<T> {
    fn drop(&mut self) {
        self.hand_on();
    }
}

impl<T> FlightCourse<T> {
    fn waiting(self) -> VecDeque<oneshot::Sender<Landed<T>>> {
        match self {
            Self::Out(waiting) => waiting,
            Self::Arriving(_) => VecDeque::new(),
        }
    }
}

impl<T> FlightShard<T> {
    fn remember_alone(&mut self, key: Arc<[u8]>, now: Moment, alone_ms: u64) {
        if self.alone.len() >= MOST_ALONE {
            self.alone.retain(|_, until| now < *until);
            if self.alone.len() >= MOST_ALONE {
                self.alone.clear();
            }
        }
        self.alone.insert(key, Moment(now.0.saturating_add(alone_ms)));
    }
}

/// Resolves when the flight has landed. Dropped early, it is as if nobody had waited: a lead that was given to it goes on to the
/// next.
pub struct FlightWait<T>(oneshot::Receiver<Landed<T>>);

impl<T> Future for FlightWait<T> {
    type Output = Landed<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // A sender is never dropped unsent, but with all flights at once: then everyone is on his own.
        Pin::new(&mut self.0).poll(cx).map(|landed| landed.unwrap_or(Landed::Alone))
    }
}

#[cfg(test)]
mod tests;
