//! Requests by registered routes, handled as gorouter does. Knows no registry.

mod answer;
mod asked_instance;
mod facts;
mod failure;
mod heads;
mod kind;
mod objection;
mod preference;
mod presence;
pub mod reference;
mod route;
mod rules;
mod sticky;
#[cfg(test)]
mod tests;

pub(crate) use facts::{Registered, registered};
pub(crate) use heads::{forwarded_for, forwarded_proto};
pub use objection::OBJECTIONS;
pub use presence::SharedPresence;
pub use route::{MemberFault, OnFailed, RegisteredRoute};
pub use rules::PlatformRules;
