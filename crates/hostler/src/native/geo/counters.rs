//! What the service has answered since the start. Knows no answers.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

/// One count.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// All counts, under the names that the original service gave them.
#[derive(Debug, Default)]
pub struct Counters {
    /// Answers to `/get_city`.
    pub cities: Count,
    /// Answers to `/crossdomain.xml`.
    pub xmls: Count,
    /// Paths that there are not.
    pub fnf: Count,
    /// Answers to `/status`.
    pub status: Count,
}

impl Counters {
    /// What `/status` says.
    pub fn view(&self) -> Value {
        json!({
            "cities": self.cities.get(),
            "xmls": self.xmls.get(),
            "fnf": self.fnf.get(),
            "status": self.status.get(),
        })
    }
}
