//! Counts the responses of the service since the start. Knows no responses.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use serde_json::{Value, json};

/// One counter.
#[derive(Debug, Default)]
pub(super) struct GeoCount(AtomicU64);

impl GeoCount {
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// All counters.
#[derive(Debug, Default)]
pub(super) struct GeoCounters {
    /// Responses to `/get_city`.
    pub cities: GeoCount,
    /// Responses to `/crossdomain.xml`.
    pub xmls: GeoCount,
    /// Requests for unknown paths ("file not found").
    pub fnf: GeoCount,
    /// Responses to `/status`.
    pub status: GeoCount,
    /// Addresses that were looked up, for any path.
    pub lookups: GeoCount,
    /// Addresses without a known city.
    pub unknown: GeoCount,
    /// Addresses with a damaged record.
    pub broken: GeoCount,
    /// How many times new databases replaced old ones.
    pub reloads: GeoCount,
}

/// The service's part of Hostler's status.
#[derive(Debug, Clone, Serialize)]
#[expect(missing_docs, reason = "docs/guide/lookups.md describes each field")]
pub struct GeoStatus {
    pub lookups: u64,
    pub unknown: u64,
    pub broken: u64,
    pub reloads: u64,
    pub databases: Vec<String>,
}

impl GeoCounters {
    /// The body of `/status`, with the names of the original service.
    pub fn original(&self) -> Value {
        json!({
            "cities": self.cities.get(),
            "xmls": self.xmls.get(),
            "fnf": self.fnf.get(),
            "status": self.status.get(),
        })
    }
}
