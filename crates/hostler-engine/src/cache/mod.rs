//! What routes with a cache share, and bodies on their way into it. Knows no members and no clients; what may be stored and
//! served is decided in `hostler-cache`.

mod forms;
mod head;
mod incoming_body;
mod lines;
mod parts;
mod shared;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;
use hostler_cache::{
    Cache, CachingRules, Flights, Freshness, NotStored, Query, Tier, Vary, varies_by_each_request,
};
use hostler_wire::{BodyLength, ResponseHead};

pub use forms::{Encoded, SharedBody, StorageKey};
pub use head::{freshened, not_modified, part, size, stored};
pub use incoming_body::{BodyFeed, BodyReading, Cut, IncomingBody, Poured, Pouring};
pub use lines::HeadLines;
pub use parts::parts;

use crate::journal::{Journal, Level};

/// A stored answer.
pub type Entry = hostler_cache::Entry<ResponseHead>;

/// For how long an answer that cannot be shared is taken as a sign that the next one cannot be either.
const ALONE_MS: u64 = 5_000;

/// What all routes with a cache share. One for the whole program.
pub struct Stock {
    /// What is stored.
    pub memory: Arc<Cache<ResponseHead>>,
    /// What others have stored; none: this Hostler is for itself.
    pub tier: ArcSwapOption<Tier<ResponseHead>>,
    /// What is being fetched.
    pub flights: Arc<Flights<FetchOutcome>>,
    /// Where fetches are written down that no client waits for.
    pub journal: Journal,
}

impl Stock {
    /// Empty, for so many bytes; no entry may be larger than `max_entry`.
    pub fn new(bytes: u64, max_entry: usize, journal: Journal) -> Self {
        let memory = Arc::new(Cache::new(bytes, max_entry));
        Self { memory, tier: ArcSwapOption::empty(), flights: Flights::new(ALONE_MS), journal }
    }
}

/// How one route answers from memory.
pub struct Caching {
    /// What may be stored, and for how long.
    pub rules: CachingRules,
    /// What of a query makes another answer.
    pub query: Query,
    /// Answers are stored; else they are only shared by those who wait for the same one.
    pub stores: bool,
    /// Those who wait for the same answer share it though it cannot be stored.
    pub collapses: bool,
    /// Where they are stored.
    pub stock: Arc<Stock>,
    /// It was said that its answers vary by what differs for each request.
    pub told: AtomicBool,
}

impl Caching {
    /// Says, once, why answers of this route are not stored: each is for the one request that it was made for.
    pub fn tell_of_vary(&self, route: &str, answer: &ResponseHead) {
        let lines = HeadLines(&answer.fields);
        let Some(field) = varies_by_each_request(&lines) else { return };
        if !self.told.swap(true, Ordering::Relaxed) {
            let text = format!(
                "route {route:?}: its answers have {field} in Vary, which differs for each request: they are not cached; \
                 leave the field out of Vary, or the cache off this route"
            );
            self.stock.journal.event(Level::Warn, &text);
        }
    }
}

/// What those get who have waited for another's fetch.
#[derive(Clone)]
pub enum FetchOutcome {
    /// It is stored by now.
    Stored(Arc<Entry>),
    /// It is on its way.
    Coming(Arc<Coming>),
    /// One of its forms is being made: its head and its body.
    Form(Arc<ResponseHead>, Arc<IncomingBody>),
    /// Nothing came that anybody could use.
    Failed,
}

impl FetchOutcome {
    /// The answer's head, if it is one.
    pub fn head(&self) -> Option<&ResponseHead> {
        match self {
            Self::Stored(entry) => Some(&entry.head),
            Self::Coming(coming) => Some(&coming.head),
            Self::Form(..) | Self::Failed => None,
        }
    }
}

/// An answer whose body is on its way into memory.
pub struct Coming {
    /// Where it will be stored.
    pub place: StorageKey,
    /// Its head, as it is stored.
    pub head: Arc<ResponseHead>,
    /// How long its body will be.
    pub length: BodyLength,
    /// For which requests it is.
    pub vary: Vary,
    /// On which terms it will be stored, or why it will not.
    pub freshness: Result<Freshness, NotStored>,
    /// Its body.
    pub incoming_body: Arc<IncomingBody>,
}
