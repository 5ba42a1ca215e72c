//! What has become of the traces of requests, in numbers. Knows no spans.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// The counters. They only grow.
#[derive(Default)]
pub struct TraceCounts {
    exported: AtomicU64,
    dropped: AtomicU64,
    rejected_spans: AtomicU64,
}

/// The counts at one moment.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TracesView {
    /// Requests whose spans the collector has taken.
    pub exported: u64,
    /// Requests whose spans were dropped, because the collector did not take them in time.
    pub dropped: u64,
    /// Spans of exported requests that the collector has thrown away. It does not say which.
    pub rejected_spans: u64,
}

impl TraceCounts {
    /// The collector has taken the spans of so many requests.
    pub fn note_exported(&self, requests: u64) {
        self.exported.fetch_add(requests, Ordering::Relaxed);
    }

    /// The spans of so many requests are lost.
    pub fn note_dropped(&self, requests: u64) {
        self.dropped.fetch_add(requests, Ordering::Relaxed);
    }

    /// The collector has thrown away so many of the spans that it has taken.
    pub fn note_rejected(&self, spans: u64) {
        self.rejected_spans.fetch_add(spans, Ordering::Relaxed);
    }

    pub fn view(&self) -> TracesView {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        TracesView {
            exported: get(&self.exported),
            dropped: get(&self.dropped),
            rejected_spans: get(&self.rejected_spans),
        }
    }
}
