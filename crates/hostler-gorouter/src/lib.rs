//! Cloud Foundry: routes that programs register over NATS, our pools registered with other routers, and requests of registered routes
//! handled as gorouter does. Knows no listeners.
#![expect(
    missing_docs,
    reason = "the modules of a program have no users outside; a comment stands where it explains something"
)]

pub mod access_log;
pub mod announce;
pub mod nats;
pub mod registrar;
pub mod request;
