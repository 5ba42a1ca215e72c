//! The state that routes with a cache share. Knows no members and no clients; `hostler-cache` decides what may be stored and served.

mod fill_state;
mod filling;
mod forms;
mod head;
mod incoming_body;
mod lines;
mod parts;
mod shared;
mod telling;
mod untold;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};
use hostler_cache::{
    Cache, CachingRules, Flights, Freshness, NotStored, Query, Tier, Vary, varies_by_each_request,
};
use hostler_wire::{BodyLength, ResponseHead};

pub use fill_state::Cut;
pub use filling::{Filling, UnreadLimit};
pub use forms::{Encoded, SharedBody};
pub use head::{freshened, not_modified, part, size, stored};
pub use incoming_body::{BodyFeed, BodyReading, FillOutcome, IncomingBody};
pub use lines::HeadLines;
pub use parts::parts;
pub use telling::Telling;

use crate::journal::{Journal, Level};
use untold::Untold;

pub type Entry = hostler_cache::Entry<ResponseHead>;

/// After a response that cannot be shared, the next ones for the same key count as not shareable. One request looks again after so long.
const ALONE_MS: u64 = 5_000;

/// The shared state of all routes with a cache. There is one.
pub struct SharedCache {
    /// The stored answers.
    pub memory: Arc<Cache<ResponseHead>>,
    /// The memcached servers. None if there are none.
    pub tier: ArcSwapOption<Tier<ResponseHead>>,
    /// The fetches that are under way.
    pub flights: Arc<Flights<FetchOutcome>>,
    /// For the access lines of fetches that no client waits for.
    pub journal: Journal,
    /// During an upgrade: the purges by unsafe methods that each other process has not been told yet. Empty otherwise.
    untold: ArcSwap<Vec<Arc<Untold>>>,
}

impl SharedCache {
    /// An empty cache of this size. No entry may be larger than `max_entry`.
    pub fn new(bytes: u64, max_entry: usize, journal: Journal) -> Self {
        let memory = Arc::new(Cache::new(bytes, max_entry));
        let (tier, untold) = (ArcSwapOption::empty(), ArcSwap::default());
        Self { memory, tier, flights: Flights::new(ALONE_MS), journal, untold }
    }
}

/// The cache settings of one route.
pub struct Caching {
    /// What may be stored, and for how long.
    pub rules: CachingRules,
    /// Which parts of the query belong to the key.
    pub query: Query,
    /// Separates the stored responses of routes that have the same URL and different conditions. 0: a route without conditions.
    pub route: u64,
    /// False: answers are not stored, only shared by requests that wait for the same one.
    pub stores: bool,
    /// Requests that wait for the same answer share it even if it cannot be stored.
    pub collapses: bool,
    pub shared_cache: Arc<SharedCache>,
    /// The log has said why responses of this route are not stored: their `Vary` names a field that differs for each request.
    pub told: AtomicBool,
}

impl Caching {
    /// Logs once why answers of this route are not stored: each is valid for one request only.
    pub fn tell_of_vary(&self, route: &str, answer: &ResponseHead) {
        let lines = HeadLines(&answer.fields);
        let Some(field) = varies_by_each_request(&lines) else { return };
        if !self.told.swap(true, Ordering::Relaxed) {
            let text = format!(
                "route {route:?}: its responses have {field} in Vary, which differs for each request: they are not cached; \
                 leave the field out of Vary, or the cache off this route"
            );
            self.shared_cache.journal.event(Level::Warn, &text);
        }
    }
}

/// The result of a flight, for the requests that waited for it.
#[derive(Clone)]
pub enum FetchOutcome {
    /// The answer is stored.
    Stored(Arc<Entry>),
    /// The answer's body is still coming.
    Arriving(Arc<IncomingAnswer>),
    /// One of its encoded forms is being made: head and body.
    Form(Arc<ResponseHead>, Arc<IncomingBody>),
    /// There is no answer that others may use.
    Failed,
}

impl FetchOutcome {
    pub fn head(&self) -> Option<&ResponseHead> {
        match self {
            Self::Stored(entry) => Some(&entry.head),
            Self::Arriving(arriving) => Some(&arriving.head),
            Self::Form(..) | Self::Failed => None,
        }
    }
}

/// Where an answer is stored.
#[derive(Clone)]
pub struct StorageKey {
    pub shared_cache: Arc<SharedCache>,
    pub key: Arc<[u8]>,
}

/// An answer whose body is on its way into memory.
pub struct IncomingAnswer {
    pub place: StorageKey,
    /// The head as it will be stored.
    pub head: Arc<ResponseHead>,
    pub length: BodyLength,
    /// Which requests it is valid for.
    pub vary: Vary,
    /// How it will be stored, or why it will not be.
    pub freshness: Result<Freshness, NotStored>,
    pub incoming_body: Arc<IncomingBody>,
}
