//! A request from its head to its answer: routes, cache, files, the queue's slots, calls to members, and the refusals. Knows no
//! listeners and starts no process.
#![expect(
    missing_docs,
    reason = "the modules of a program have no users outside; a comment stands where it explains something"
)]

/// Whether a test of the simulation has planted this bug here. Outside tests: false.
macro_rules! planted {
    ($bug:ident) => {{
        #[cfg(test)]
        {
            crate::proxy::tests::is_planted(crate::proxy::tests::Bug::$bug)
        }
        #[cfg(not(test))]
        {
            false
        }
    }};
}

pub mod cache;
pub mod exchange;
pub mod files;
pub mod gateway;
pub mod journal;
pub mod proxy;
pub mod route;
