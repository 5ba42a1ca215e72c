//! What RFC 9111 lets a shared cache do, as pure functions: time, settings and messages are given. Knows no store, and fetches nothing.
//!
//! In the order in which a request meets them: [`write_key`] says what it asks for, [`Asks`] how; [`admit`] whether the cache may
//! answer at all, [`Vary`] which of the stored answers is for it, [`judge`] whether that one may be served, [`conditions`] and
//! [`range`] which of it. Of an answer that comes, [`Terms`] says whether it may be stored and for how long, [`Kept`] which of
//! its lines, [`confirms`] whether a 304 is about what is stored; [`invalidated`] what it makes void.

mod asks;
mod conditions;
mod directives;
mod heard;
mod invalidated;
mod judge;
mod key;
mod lifetime;
mod range;
mod rules;
mod tags;
mod terms;
mod times;
mod validate;
mod vary;

pub use asks::{Asks, Method, admit};
pub use conditions::{Condition, any_tag, conditions};
pub use invalidated::invalidated;
pub use judge::{Verdict, is_failure, judge, may_serve_on_error, may_share};
pub use key::{Query, is_host_of_key, keys_of_url, write_key};
pub use range::{Ranged, part, range};
pub use rules::{CookiesOfAnswers, Precedence, Rules, Ttl};
pub use tags::tags;
pub use terms::{NotStored, Terms};
pub use times::date;
pub use validate::{Kept, Likeness, Validators, compare, confirms, outdated};
pub use vary::{Selecting, Vary, varies_by_each_request};

#[cfg(test)]
mod tests;
