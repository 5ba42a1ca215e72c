//! The keys of `[traces]`, as written: where spans go and which requests have them. Knows no protocol of collectors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::OutgoingTls;
use crate::value::{Count, Delay, Secret};

/// The `[traces]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Traces {
    /// The address of an OpenTelemetry collector, to which Hostler sends spans by OTLP over HTTP. Example:
    /// `"http://127.0.0.1:4318"`.
    ///
    /// Without it Hostler makes no traces, and passes `traceparent` and `tracestate` on unchanged. Hostler adds `/v1/traces` if the
    /// address has no path. With `https://` Hostler sends over TLS. Use `http://` only for a collector on this machine or in a network
    /// that you trust.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub endpoint: Option<String>,
    /// Fields that Hostler adds to each request to the collector, such as an access key. Example: `"api-key=0815,x-team=web"`.
    ///
    /// The form is that of the variable `OTEL_EXPORTER_OTLP_HEADERS`: `%20` and the like stand for other characters. Without this key
    /// Hostler takes `OTEL_EXPORTER_OTLP_TRACES_HEADERS` or `OTEL_EXPORTER_OTLP_HEADERS` from its environment, if `endpoint` is
    /// `https://` or on this machine. `""`: no fields. Use a variable, so that the file does not contain the key. Hostler never shows
    /// the values.
    #[schemars(with = "String", extend("x-default" = "none"))]
    pub headers: Option<Secret>,
    /// TLS to an `https://` collector.
    pub tls: OutgoingTls,
    /// With the value N, Hostler exports one of N requests, chosen at random. `1`: all. `0`: none at random.
    ///
    /// Refusals of Hostler and requests that take at least `slow` are always exported. Lower it if the collector has room for more.
    pub sample: Count<0, 1_000_000>,
    /// Hostler exports each request that takes at least this time, for any value of `sample`.
    ///
    /// Raise it if ordinary requests of your app take longer, such as downloads.
    pub slow: Delay,
    /// Whether the sampled flag in a client's `traceparent` decides in place of `sample`.
    ///
    /// Set `false` if clients that you do not trust could ask for a trace of each request.
    pub parent_based: bool,
}

impl Default for Traces {
    fn default() -> Self {
        let (endpoint, headers, tls) = (None, None, OutgoingTls::default());
        Self { endpoint, headers, tls, sample: Count(100), slow: Delay::seconds(1), parent_based: true }
    }
}
