//! Where registrations come in: Cloud Foundry's router protocol over NATS. Knows pools and routes, and nothing of requests.

mod key;
mod message;
mod registry;
