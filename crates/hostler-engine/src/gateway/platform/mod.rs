//! Requests by registered routes, handled as Cloud Foundry's gorouter does. Knows no registry.

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
pub(super) use heads::remove_answer_edits;
pub use heads::{forwarded_for, forwarded_proto};
pub use objection::Objection;
pub(super) use policy::PlatformRetry;
pub use registered::{OnFailed, Platform};
pub use rules::PlatformRules;
