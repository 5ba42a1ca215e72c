//! The registered routes in the Status: what they have counted together, and where their registrar's part comes from. Knows no messages.

use std::sync::Arc;

use hostler_engine::exchange::{Counters, CountersView};
use hostler_engine::proxy::{Meter, Times};
use serde::Serialize;
use serde_json::Value;

/// The registrar's part of the Status.
pub struct Registrations {
    /// Of the requests of all registered routes.
    pub counters: Arc<Counters>,
    /// The times of these requests.
    pub meter: Arc<Meter>,
    /// The object for the Status.
    pub status: Box<dyn Fn() -> Value + Send + Sync>,
    /// The answer to `/routes`.
    pub routes: Box<dyn Fn() -> Value + Send + Sync>,
    /// A row for each route, sorted by name.
    pub table: Box<dyn Fn() -> Vec<Value> + Send + Sync>,
}

/// What all registered routes have counted together: there can be 100,000 routes.
#[derive(Debug, Serialize)]
pub struct RegisteredStatus {
    #[serde(flatten)]
    pub counters: CountersView,
    pub times: Times,
}

impl Registrations {
    /// The figures of this moment.
    pub(super) fn figures(&self) -> RegisteredStatus {
        RegisteredStatus { counters: self.counters.view(), times: self.meter.times() }
    }
}
