//! The formats of log lines: JSON for machines, text for people. Knows no files.

use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// For people.
    Pretty,
}

/// The severity of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Info,
    /// Unexpected, but no requests are lost.
    Warn,
    /// Requests, workers or data are lost.
    Error,
}

/// The access log line of one exchange. Times are in milliseconds, sizes are bytes of body. docs/guide/seeing.md describes each field.
#[derive(Debug, Serialize)]
pub struct Access<'a> {
    pub time: jiff::Timestamp,
    pub id: &'a str,
    /// None if no client has asked, as for a refresh of the cache.
    pub client: Option<IpAddr>,
    /// The forwarding header was invalid before its end: this is the last proxy up to which it was valid.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub client_doubtful: bool,
    pub protocol: &'static str,
    pub method: &'a str,
    pub host: &'a str,
    pub target: &'a str,
    pub status: u16,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<&'static str>,
    #[serde(serialize_with = "milliseconds")]
    pub total_ms: Duration,
    #[serde(serialize_with = "milliseconds")]
    pub queue_wait_ms: Duration,
    #[serde(serialize_with = "milliseconds")]
    pub slot_hold_ms: Option<Duration>,
    #[serde(serialize_with = "milliseconds")]
    pub worker_time_ms: Option<Duration>,
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

impl Access<'_> {
    pub(super) fn write(&self, out: &mut Vec<u8>, form: LogFormat) {
        match form {
            LogFormat::Json => write_json(out, "access", self),
            LogFormat::Pretty => {
                let _ = write!(
                    out,
                    "{} {} {} {}{} {:.1}ms",
                    clock(),
                    self.status,
                    self.method,
                    self.host,
                    printable(self.target),
                    self.total_ms.as_secs_f64() * 1000.0
                );
                if let (Some(pool), Some(member)) = (self.pool, self.member) {
                    let _ = write!(out, " {pool}/{member}");
                }
                if let Some(moved) = self.moved {
                    let _ = write!(out, " moved: {moved}");
                }
                if let Some(cache) = self.cache {
                    let _ = write!(out, " {cache}");
                }
                if self.queue_wait_ms >= Duration::from_millis(1) {
                    let _ = write!(out, " waited {:.1}ms", self.queue_wait_ms.as_secs_f64() * 1000.0);
                }
                if let Some(side) = self.stream_end {
                    let _ = write!(out, " stream ended by {side}");
                }
                let refused = if self.fallback { "fallback" } else { "refused" };
                for (label, value) in
                    [(refused, self.refusal), ("detail", self.detail), ("aborted by", self.aborted)]
                {
                    if let Some(value) = value {
                        let _ = write!(out, " {label}: {}", printable(value));
                    }
                }
                out.push(b'\n');
            }
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Event<'a> {
    pub level: Level,
    pub text: &'a str,
}

impl Event<'_> {
    pub fn write(&self, out: &mut Vec<u8>, form: LogFormat) {
        match form {
            LogFormat::Json => {
                write_json(out, "hostler", &Stamped { time: jiff::Timestamp::now(), rest: self })
            }
            LogFormat::Pretty => {
                let mark = match self.level {
                    Level::Info => "",
                    Level::Warn => "warning: ",
                    Level::Error => "error: ",
                };
                let mut lines = self.text.lines().map(printable);
                let _ = writeln!(out, "{} {mark}{}", clock(), lines.next().unwrap_or_default());
                // Continuation lines are indented, so that a worker's text cannot look like a log line of ours.
                for line in lines {
                    let _ = writeln!(out, "{:>16}{line}", "| ");
                }
            }
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct WorkerLine<'a> {
    pub pool: &'a str,
    pub worker: usize,
    pub stream: &'a str,
    pub text: &'a str,
}

impl WorkerLine<'_> {
    pub fn write(&self, out: &mut Vec<u8>, form: LogFormat) {
        match form {
            LogFormat::Json => {
                write_json(out, "worker", &Stamped { time: jiff::Timestamp::now(), rest: self })
            }
            LogFormat::Pretty => {
                let _ = writeln!(out, "{} {}/{} | {}", clock(), self.pool, self.worker, printable(self.text));
            }
        }
    }
}

#[derive(Serialize)]
struct Stamped<'a, T> {
    time: jiff::Timestamp,
    #[serde(flatten)]
    rest: &'a T,
}

#[derive(Serialize)]
struct Kinded<'a, T> {
    event: &'static str,
    #[serde(flatten)]
    rest: &'a T,
}

fn write_json(out: &mut Vec<u8>, event: &'static str, value: &impl Serialize) {
    let start = out.len();
    match serde_json::to_writer(&mut *out, &Kinded { event, rest: value }) {
        Ok(()) => out.push(b'\n'),
        // Half a line would corrupt the next one.
        Err(_) => out.truncate(start),
    }
}

fn clock() -> impl std::fmt::Display {
    jiff::Zoned::now().strftime("%H:%M:%S%.3f").to_string()
}

/// Replaces control characters: a text from a client or a worker must not move the cursor or start a line in an operator's terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// With three decimals; null for a time that is missing.
fn milliseconds<S: serde::Serializer>(
    time: &(impl Copy + Into<Option<Duration>>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    (*time).into().map(|time| (time.as_secs_f64() * 1e6).round() / 1e3).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_text_format_no_worker_line_looks_like_one_of_hostlers() {
        let mut out = Vec::new();
        let text = "app/1: killed; it printed last:\n12:00:00.000 error: forged\n\u{1b}[2Jwiped";
        Event { level: Level::Error, text }.write(&mut out, LogFormat::Pretty);
        let out = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = out.lines().collect();
        assert!(lines[0].ends_with(" error: app/1: killed; it printed last:"), "{out}");
        assert_eq!(
            lines[1..],
            ["              | 12:00:00.000 error: forged", "              | \u{fffd}[2Jwiped"]
        );
    }
}
