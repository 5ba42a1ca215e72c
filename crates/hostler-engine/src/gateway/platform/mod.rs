//! What registered routes do with requests, in the way of Cloud Foundry's gorouter.
//! Knows no registry.

mod answer;
mod asked_instance;
mod heads;
pub(super) mod objection;
mod policy;
mod preference;
pub(super) mod registered;
mod retry;
mod rules;
mod sticky;
#[cfg(test)]
mod tests;

pub use answer::{Words, answer, shown};
pub(super) use heads::forget_answer;
pub use heads::{forwarded_for, forwarded_proto};
pub use objection::Objection;
pub(super) use policy::PlatformRetry;
pub use registered::{OnFailed, Platform};
pub use rules::PlatformRules;
