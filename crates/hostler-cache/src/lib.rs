//! A shared HTTP cache after RFC 9111: which responses may be stored and served, and where they are stored. It never
//! fetches.

mod bodies;
mod entry;
mod flight;
mod head;
mod policy;
mod purge;
mod status;
mod store;
mod tier;
mod variants;

pub use bodies::{BodyMemory, BodyShare};
pub use entry::{Entry, FetchMark, LogPosition, StoredForm, size_of_tags};
pub use flight::{Flight, FlightOutcome, FlightResult, FlightRole, FlightWait, Flights};
pub use head::{Head, Moment, Tick};
pub use policy::{
    CachingRules, Condition, CookiesOfAnswers, FORWARDED_URL, Freshness, HeadComparison, Kept, Method,
    NotStored, Precedence, Query, Ranged, RequestDirectives, RequestSide, Reuse, Selecting, ToldFields, Ttl,
    Validators, Vary, admit, any_tag, compare, conditions, confirms, invalidated, is_failure, is_host_of_key,
    judge, keys_of_url, may_serve_on_error, may_share, outdated, part, range, replaces_stored, tags,
    varies_by_each_request, varies_more, write_key,
};
pub use purge::Purge;
pub use status::{CacheStatus, Forward};
pub use store::{Cache, Counts};
pub use tier::{Notice, Packing, Purged, ServerCounts, ServerStatus, Tier, TierSettings};
pub use variants::{SeveralVariants, Variants};
