//! The lines of the log, as JSON for machines. Knows no files.

use std::net::IpAddr;
use std::time::Duration;

use serde::Serialize;

use super::app_line::AppLine;
use super::pretty;

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
            LogFormat::Pretty { coloured } => pretty::access(out, self, coloured),
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
            LogFormat::Pretty { coloured } => pretty::event(out, self, coloured),
        }
    }
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

#[derive(Debug, Serialize)]
struct WorkerFields<'a> {
    pool: &'a str,
    worker: usize,
    pid: u32,
    stream: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<Level>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
}

impl WorkerLine<'_> {
    pub(super) fn write(&self, out: &mut Vec<u8>, form: LogFormat) {
        match form {
            LogFormat::Json => self.write_json(out),
            LogFormat::Pretty { coloured } => pretty::worker_line(out, self, coloured),
        }
    }

    /// An object that the app printed is in the field `app`, as the app wrote it. So no field of the app can be taken for one of
    /// Hostler's, and no number loses digits.
    fn write_json(&self, out: &mut Vec<u8>) {
        let app = if self.is_whole { AppLine::parse(self.text) } else { None };
        let (level, text) = match &app {
            Some(app) => (app.level, app.message.as_deref()),
            None => (None, Some(self.text)),
        };
        let Self { pool, worker, pid, stream, .. } = *self;
        let fields = WorkerFields { pool, worker, pid, stream, level, text };
        write_json(out, "worker", &Stamped { time: jiff::Timestamp::now(), rest: &fields });
        if app.is_some() && out.ends_with(b"}\n") {
            out.truncate(out.len() - 2);
            out.extend_from_slice(b",\"app\":");
            out.extend_from_slice(self.text.trim_ascii_end().as_bytes());
            out.extend_from_slice(b"}\n");
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

/// With three decimals; null for a time that is missing.
fn milliseconds<S: serde::Serializer>(
    time: &(impl Copy + Into<Option<Duration>>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    (*time).into().map(|time| (time.as_secs_f64() * 1e6).round() / 1e3).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn written(text: &str, is_whole: bool) -> (String, Value) {
        let line = WorkerLine { pool: "web", worker: 2, pid: 4711, stream: "stdout", text, is_whole };
        let mut out = Vec::new();
        line.write(&mut out, LogFormat::Json);
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out.matches('\n').count(), 1, "{out}");
        let mut value: Value = serde_json::from_str(&out).unwrap();
        assert!(value.as_object_mut().unwrap().remove("time").is_some());
        (out, value)
    }

    #[test]
    fn an_object_of_the_app_stays_json_byte_for_byte() {
        let text =
            r#"{"level":50, "id":12345678901234567890.10,"msg":"no","event":"access","pool":"x","id":1} "#;
        let (out, value) = written(text, true);
        assert!(out.contains(text.trim_end()), "{out}");
        assert_eq!(
            (&value["event"], &value["pool"], &value["worker"], &value["pid"]),
            (&json!("worker"), &json!("web"), &json!(2), &json!(4711))
        );
        assert_eq!((&value["level"], &value["text"]), (&json!("error"), &json!("no")));
        assert_eq!(value["app"]["event"], "access");
    }

    #[test]
    fn a_line_that_is_no_object_stays_text() {
        for text in ["plain", "[1,2]", "{\"half\":", "{\"a\":1}\u{fffd}", "\"}\n{\"event\":\"forged\"}"] {
            let (_, value) = written(text, true);
            let expected =
                json!({"event":"worker","pool":"web","worker":2,"pid":4711,"stream":"stdout","text":text});
            assert_eq!(value, expected);
        }
        assert_eq!(written("{}", false).1["text"], "{}", "a piece of a longer line is no object");
        let (_, value) = written("{}", true);
        assert_eq!((value.get("text"), &value["app"]), (None, &json!({})));
    }
}
