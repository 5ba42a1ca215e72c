//! What the service has answered since the start. Knows no answers.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use serde_json::{Value, json};

/// One count.
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

/// All counts.
#[derive(Debug, Default)]
pub(super) struct GeoCounters {
    /// Answers to `/get_city`.
    pub cities: GeoCount,
    /// Answers to `/crossdomain.xml`.
    pub xmls: GeoCount,
    /// Paths that there are not.
    pub fnf: GeoCount,
    /// Answers to `/status`.
    pub status: GeoCount,
    /// Addresses that were looked up, for whatever path.
    pub lookups: GeoCount,
    /// Those for which no city is known.
    pub unknown: GeoCount,
    /// Those whose record was no good.
    pub broken: GeoCount,
    /// Databases that took the place of others.
    pub reloads: GeoCount,
}

/// What Hostler's own status says of the service.
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
    /// What `/status` says, under the names that the original service gave them.
    pub fn original(&self) -> Value {
        json!({
            "cities": self.cities.get(),
            "xmls": self.xmls.get(),
            "fnf": self.fnf.get(),
            "status": self.status.get(),
        })
    }
}
