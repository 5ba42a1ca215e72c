//! What RFC 9111 allows a shared cache to do, as pure functions: the caller passes time, settings and messages. Knows no
//! store, and fetches nothing.
//!
//! In the order in which a request needs them: [`write_key`] makes its key, and [`RequestDirectives`] reads its head.
//! [`admit`] decides whether the cache may answer it, [`Vary`] which of the stored responses matches, and [`judge`]
//! whether that one may be served. [`conditions`] and [`range`] decide which part of it to send.
//!
//! For a response: [`Freshness`] decides whether it may be stored and for how long, [`Kept`] which of its lines.
//! [`confirms`] decides whether a 304 is about the stored response, and [`invalidated`] which stored responses become
//! void.

mod conditions;
mod directives;
mod freshness;
mod invalidated;
mod judge;
mod key;
mod lifetime;
mod not_stored;
mod range;
mod request_directives;
mod response_directives;
mod rules;
mod tags;
mod times;
mod told;
mod validate;
mod vary;

pub use conditions::{Condition, any_tag, conditions};
pub use freshness::Freshness;
pub use invalidated::invalidated;
pub use judge::{Reuse, is_failure, judge, may_serve_on_error, may_share, replaces_stored};
pub use key::{Query, is_host_of_key, keys_of_url, write_key};
pub use not_stored::NotStored;
pub use range::{Ranged, part, range};
pub use request_directives::{Method, RequestDirectives, admit};
pub use rules::{CachingRules, CookiesOfAnswers, Precedence, Ttl};
pub use tags::tags;
pub use told::{FORWARDED_URL, ToldFields};
pub use validate::{HeadComparison, Kept, Validators, compare, confirms, outdated};
pub use vary::{RequestSide, Selecting, Vary, varies_by_each_request, varies_more};

#[cfg(test)]
mod tests;
