//! A request from its head to its answer: routes, cache, files, the queue's slots, calls to members, and the refusals. Knows no
//! listeners and starts no process.
#![expect(
    missing_docs,
    reason = "the modules of a program have no users outside; a comment stands where it explains something"
)]

#[macro_use(planted)]
extern crate hostler_dispatch;

pub mod cache;
pub mod exchange;
pub mod files;
pub mod gateway;
pub mod journal;
pub mod proxy;
pub mod route;

#[cfg(test)]
use proxy::tests;
