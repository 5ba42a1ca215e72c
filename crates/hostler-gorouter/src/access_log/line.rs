//! The access line in gorouter's format, written from its values. Knows no exchanges.

use std::borrow::Cow;
use std::io::Write;
use std::time::Duration;

use hostler_engine::journal::is_unsafe;

/// One exchange. A value that is unknown is empty or none, and written as `-`.
#[derive(Debug)]
pub struct AccessLine<'a> {
    pub host: Cow<'a, str>,
    pub started: jiff::Timestamp,
    pub method: Cow<'a, str>,
    pub target: Cow<'a, str>,
    pub protocol: &'a str,
    /// 0 if there was no answer.
    pub status: u16,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub referer: Cow<'a, str>,
    pub user_agent: Cow<'a, str>,
    pub client: String,
    pub backend: &'a str,
    pub x_forwarded_for: String,
    pub x_forwarded_proto: &'a str,
    pub vcap_request_id: &'a str,
    pub response_time: Duration,
    pub gorouter_time: Duration,
    pub app_id: &'a str,
    pub app_index: &'a str,
    pub instance_id: &'a str,
    pub failed_attempts: u32,
    pub failed_attempts_time: Option<Duration>,
    pub dns_time: Option<Duration>,
    pub dial_time: Option<Duration>,
    pub tls_time: Option<Duration>,
    pub backend_time: Option<Duration>,
    pub x_cf_routererror: &'a str,
}

impl AccessLine<'_> {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        escape(out, &self.host);
        let _ = write!(out, " - [{}] \"", self.started.strftime("%Y-%m-%dT%H:%M:%S%.9fZ"));
        if self.method.is_empty() {
            out.extend_from_slice(b"-\" ");
        } else {
            escape(out, &self.method);
            out.push(b' ');
            escape(out, &self.target);
            out.push(b' ');
            escape(out, self.protocol);
            out.extend_from_slice(b"\" ");
        }
        match self.status {
            0 => out.extend_from_slice(b"\"-\""),
            status => drop(write!(out, "{status}")),
        }
        let _ = write!(out, " {} {}", self.bytes_in, self.bytes_out);
        for text in [&*self.referer, &self.user_agent, &self.client, self.backend] {
            out.push(b' ');
            quote(out, text);
        }
        key(out, "x_forwarded_for", &self.x_forwarded_for);
        key(out, "x_forwarded_proto", self.x_forwarded_proto);
        key(out, "vcap_request_id", self.vcap_request_id);
        time(out, "response_time", Some(self.response_time));
        time(out, "gorouter_time", Some(self.gorouter_time));
        key(out, "app_id", self.app_id);
        key(out, "app_index", self.app_index);
        key(out, "instance_id", self.instance_id);
        let _ = write!(out, " failed_attempts:{}", self.failed_attempts);
        time(out, "failed_attempts_time", self.failed_attempts_time);
        time(out, "dns_time", self.dns_time);
        time(out, "dial_time", self.dial_time);
        time(out, "tls_time", self.tls_time);
        time(out, "backend_time", self.backend_time);
        key(out, "x_cf_routererror", self.x_cf_routererror);
        out.push(b'\n');
    }
}

fn key(out: &mut Vec<u8>, key: &str, text: &str) {
    let _ = write!(out, " {key}:");
    quote(out, text);
}

/// In seconds.
fn time(out: &mut Vec<u8>, key: &str, time: Option<Duration>) {
    let _ = match time {
        Some(time) => write!(out, " {key}:{:.6}", time.as_secs_f64()),
        None => write!(out, " {key}:\"-\""),
    };
}

/// Quotes as Go does.
fn quote(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    escape(out, if text.is_empty() { "-" } else { text });
    out.push(b'"');
}

/// Escapes quotes and line ends in a client's text.
fn escape(out: &mut Vec<u8>, text: &str) {
    for letter in text.chars() {
        let _ = match letter {
            '"' | '\\' => write!(out, "\\{letter}"),
            '\n' => out.write_all(b"\\n"),
            '\r' => out.write_all(b"\\r"),
            '\t' => out.write_all(b"\\t"),
            control if control.is_control() && control.is_ascii() => write!(out, "\\x{:02x}", control as u32),
            // A reader of lines takes some of these for the end of a line.
            control if is_unsafe(control) || control == '\u{fffd}' => {
                write!(out, "\\u{:04x}", control as u32)
            }
            other => write!(out, "{other}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Duration {
        Duration::from_secs_f64(text.parse().unwrap())
    }

    fn line(values: &AccessLine<'_>) -> String {
        let mut out = Vec::new();
        values.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn captured() -> AccessLine<'static> {
        AccessLine {
            host: "path.example.test".into(),
            started: "2026-11-21T19:21:57.477376946Z".parse().unwrap(),
            method: "GET".into(),
            target: "/apix".into(),
            protocol: "HTTP/1.1",
            status: 404,
            bytes_in: 0,
            bytes_out: 69,
            referer: "".into(),
            user_agent: "curl/7.88.1".into(),
            client: "127.0.0.1:36218".into(),
            backend: "",
            x_forwarded_for: String::new(),
            x_forwarded_proto: "",
            vcap_request_id: "b0d5eec4-2d8c-43fc-72f3-0c694d837a8d",
            response_time: seconds("0.000259"),
            gorouter_time: seconds("0.000259"),
            app_id: "",
            app_index: "",
            instance_id: "",
            failed_attempts: 0,
            failed_attempts_time: None,
            dns_time: None,
            dial_time: None,
            tls_time: None,
            backend_time: None,
            x_cf_routererror: "unknown_route",
        }
    }

    #[test]
    fn a_captured_line_of_a_refusal_is_written_byte_for_byte() {
        assert_eq!(
            line(&captured()),
            concat!(
                "path.example.test - [2026-11-21T19:21:57.477376946Z] \"GET /apix HTTP/1.1\" 404 0 69 \"-\" ",
                "\"curl/7.88.1\" \"127.0.0.1:36218\" \"-\" x_forwarded_for:\"-\" x_forwarded_proto:\"-\" ",
                "vcap_request_id:\"b0d5eec4-2d8c-43fc-72f3-0c694d837a8d\" response_time:0.000259 ",
                "gorouter_time:0.000259 app_id:\"-\" app_index:\"-\" instance_id:\"-\" failed_attempts:0 ",
                "failed_attempts_time:\"-\" dns_time:\"-\" dial_time:\"-\" tls_time:\"-\" backend_time:\"-\" ",
                "x_cf_routererror:\"unknown_route\"\n"
            )
        );
    }

    #[test]
    fn a_captured_line_of_an_answer_after_a_failed_attempt_is_written_byte_for_byte() {
        let hop = AccessLine {
            host: "retry.example.test".into(),
            started: "2026-11-21T19:22:05.406515161Z".parse().unwrap(),
            method: "POST".into(),
            target: "/".into(),
            status: 200,
            bytes_in: 3,
            bytes_out: 623,
            client: "127.0.0.1:38704".into(),
            backend: "127.0.0.1:3001",
            x_forwarded_for: "127.0.0.1".into(),
            x_forwarded_proto: "http",
            vcap_request_id: "1f3d555f-e315-497a-52f4-08b8e5211a53",
            response_time: seconds("0.095528"),
            gorouter_time: seconds("0.006757"),
            instance_id: "inst-B",
            failed_attempts: 1,
            failed_attempts_time: Some(seconds("0.074436")),
            dns_time: Some(Duration::ZERO),
            dial_time: Some(seconds("0.000190")),
            tls_time: Some(Duration::ZERO),
            backend_time: Some(seconds("0.014335")),
            x_cf_routererror: "",
            ..captured()
        };
        assert_eq!(
            line(&hop),
            concat!(
                "retry.example.test - [2026-11-21T19:22:05.406515161Z] \"POST / HTTP/1.1\" 200 3 623 \"-\" ",
                "\"curl/7.88.1\" \"127.0.0.1:38704\" \"127.0.0.1:3001\" x_forwarded_for:\"127.0.0.1\" ",
                "x_forwarded_proto:\"http\" vcap_request_id:\"1f3d555f-e315-497a-52f4-08b8e5211a53\" ",
                "response_time:0.095528 gorouter_time:0.006757 app_id:\"-\" app_index:\"-\" ",
                "instance_id:\"inst-B\" failed_attempts:1 failed_attempts_time:0.074436 dns_time:0.000000 ",
                "dial_time:0.000190 tls_time:0.000000 backend_time:0.014335 x_cf_routererror:\"-\"\n"
            )
        );
    }

    #[test]
    fn nothing_that_a_client_sends_ends_a_quotation_or_a_line() {
        let hop = AccessLine {
            user_agent: "a\" b\\\n\u{1b}[2J é \u{fffd}\u{85}\u{2028}\u{202e}".into(),
            status: 0,
            ..captured()
        };
        let line = line(&hop);
        assert!(
            line.contains(r#" "-" 0 69 "-" "a\" b\\\n\x1b[2J é \ufffd\u0085\u2028\u202e" "127"#),
            "{line}"
        );
        assert_eq!(line.lines().count(), 1);
    }
}
