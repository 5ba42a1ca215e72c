//! The supervisor with real Node processes.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod collecting;
mod concurrency;
mod guard;
mod hang;
mod lifecycle;
mod listening;
mod recycling;
mod restart;
mod runtime_folder;
mod scaling;
mod stopping;
mod support;
