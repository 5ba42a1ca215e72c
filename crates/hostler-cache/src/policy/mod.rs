//! What RFC 9111 lets a shared cache do, as pure functions: time, settings and messages are given. Knows no store, and fetches nothing.
//!
//! In the order in which a request meets them: [`write_key`] says what it asks for, [`RequestDirectives`] how; [`admit`] whether the cache may
//! answer at all, [`Vary`] which of the stored answers is for it, [`judge`] whether that one may be served, [`conditions`] and
//! [`range`] which of it. Of an answer that comes, [`Freshness`] says whether it may be stored and for how long, [`Kept`] which of
//! its lines, [`confirms`] whether a 304 is about what is stored; [`invalidated`] what it makes void.

mod conditions;
mod directives;
mod freshness;
mod heard;
mod invalidated;
mod judge;
mod key;
mod lifetime;
mod range;
mod request_directives;
mod rules;
mod tags;
mod times;
mod validate;
mod vary;

pub use conditions::{Condition, any_tag, conditions};
pub use freshness::{Freshness, NotStored};
pub use invalidated::invalidated;
pub use judge::{Reuse, is_failure, judge, may_serve_on_error, may_share};
pub use key::{Query, is_host_of_key, keys_of_url, write_key};
pub use range::{Ranged, part, range};
pub use request_directives::{Method, RequestDirectives, admit};
pub use rules::{CachingRules, CookiesOfAnswers, Precedence, Ttl};
pub use tags::tags;
pub use validate::{Kept, Likeness, Validators, compare, confirms, outdated};
pub use vary::{Selecting, Vary, varies_by_each_request};

#[cfg(test)]
mod tests;
