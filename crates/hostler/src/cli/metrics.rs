//! Renders `docs/reference/metrics.md` from the table of metrics. Knows no metric by name.

use std::fmt::Write;

use crate::admin::{Kind, METRICS};

const INTRODUCTION: &str = "\
<!-- Generated from crates/hostler/src/admin/metrics/table.rs; refresh with: UPDATE=1 cargo test --workspace --test reference -->

# Metrics

This page lists all metrics of `GET /metrics` on the admin listener. [Metrics with Prometheus](../guide/metrics.md) shows how to collect them.

* A *counter* only grows, and begins at 0 when Hostler starts. Use `rate()`. A counter with the label `worker`, except `hostler_worker_restarts_total`, counts for one process and begins at 0 with
  each new one. `rate()` handles this, as any reset of a counter.
* A *gauge* is the value of this moment.
* A *histogram* has a counter for each upper bound (`_bucket`), the sum of all values (`_sum`) and their number (`_count`). Use `histogram_quantile()`.
* An *info* has the value 1. Its labels are the information.

While a worker is replaced, two processes have the same number. The metrics with the label `worker` are those of the newer one as soon as it gets requests. What the old process
counts after that is in no metric of workers.

A metric without a value is left out: a pool without workers has no metrics of workers.
";

/// The page.
pub(super) fn markdown() -> String {
    let mut text = String::from(INTRODUCTION);
    text.push_str("\n| metric | kind | labels | value |\n|---|---|---|---|\n");
    for metric in METRICS {
        let (suffix, kind) = match metric.kind {
            Kind::Counter => ("_total", "counter"),
            Kind::Gauge => ("", "gauge"),
            Kind::Histogram => ("", "histogram"),
            Kind::Info => ("_info", "info"),
        };
        let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let labels = labels.join(", ");
        let _ = writeln!(text, "| `{}{suffix}` | {kind} | {labels} | {} |", metric.name, metric.help);
    }
    text
}
