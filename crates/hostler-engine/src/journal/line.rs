//! What the log says: accesses, events, lines of workers. Knows no format and no files.

use std::net::IpAddr;
use std::time::Duration;

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// For people.
    Pretty {
        /// With colours for a terminal.
        coloured: bool,
    },
}

/// The severity of an event, or of an app's line. Hostler's own events use three of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Trace,
    Debug,
    Info,
    /// Unexpected, but no requests are lost.
    Warn,
    /// Requests, workers or data are lost.
    Error,
    Fatal,
}

impl Level {
    /// The severity of a request's line.
    pub fn of_status(status: u16) -> Self {
        if status >= 500 { Self::Warn } else { Self::Info }
    }
}

/// The access log line of one exchange. Times are in milliseconds, sizes are bytes of body. docs/guide/seeing.md describes each field.
#[derive(Debug, Serialize)]
pub struct Access<'a> {
    pub time: jiff::Timestamp,
    pub id: &'a str,
    /// The trace that the request belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<&'a str>,
    /// None if no client has asked, as for a refresh of the cache.
    pub client: Option<IpAddr>,
    /// The forwarding header was invalid before its end: this is the last proxy up to which it was valid.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub client_doubtful: bool,
    pub protocol: &'a str,
    pub method: &'a str,
    pub host: &'a str,
    pub target: &'a str,
    pub status: u16,
    /// This line stands for so many requests like it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<&'a str>,
    pub attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_length: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_use: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved: Option<&'static str>,
    /// Why it has low priority, if its route has a higher one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<&'static str>,
    /// The key under which it shared the slots of a fair pool, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_key: Option<String>,
    /// The reason for which it would have been refused, if the rule were not a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would_refuse: Option<&'static str>,
    /// What became of a second try at another member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hedge: Option<&'static str>,
    /// How many links Hostler sent ahead in a 103.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_hints: Option<u32>,
    /// For how long it was expected to hold its slot, if the pool serves short requests first.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "milliseconds")]
    pub expected_ms: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<&'static str>,
    #[serde(serialize_with = "milliseconds")]
    pub total_ms: Duration,
    #[serde(serialize_with = "milliseconds")]
    pub queue_wait_ms: Duration,
    /// None: no try has failed.
    #[serde(serialize_with = "milliseconds", skip_serializing_if = "Option::is_none")]
    pub failed_tries_ms: Option<Duration>,
    #[serde(serialize_with = "milliseconds")]
    pub slot_hold_ms: Option<Duration>,
    #[serde(serialize_with = "milliseconds")]
    pub worker_time_ms: Option<Duration>,
    /// None if the CPU time is not known, or the worker still works.
    #[serde(serialize_with = "milliseconds", skip_serializing_if = "Option::is_none")]
    pub worker_cpu_ms: Option<Duration>,
    pub bytes_in: u64,
    pub bytes_out: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<&'a str>,
    /// The client got the route's fallback instead of the refusal.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fallback: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aborted: Option<&'a str>,
    /// Which side ended a stream. None: the answer was no stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_end: Option<&'a str>,
    /// For registered routes: the id of the request by the rules of their kind, and the member's instance.
    #[serde(rename = "vcap_request_id", skip_serializing_if = "Option::is_none")]
    pub registered_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub referer: Option<&'a str>,
}

#[derive(Debug, Serialize)]
pub(super) struct Event<'a> {
    pub level: Level,
    pub text: &'a str,
}

/// A line that a worker printed.
#[derive(Debug, Clone, Copy)]
pub struct WorkerLine<'a> {
    pub pool: &'a str,
    /// The worker's number.
    pub worker: usize,
    /// The process that listens, or else the one that Hostler started.
    pub pid: u32,
    /// `stdout` or `stderr`.
    pub stream: &'a str,
    pub text: &'a str,
    /// The text is the whole line, not a piece of a line that was too long.
    pub is_whole: bool,
}

/// With three decimals; null for a time that is missing.
fn milliseconds<S: serde::Serializer>(
    time: &(impl Copy + Into<Option<Duration>>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    (*time).into().map(|time| (time.as_secs_f64() * 1e6).round() / 1e3).serialize(serializer)
}
