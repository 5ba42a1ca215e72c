//! The lines of the log, as JSON for machines. Knows no files.

use std::fmt::Write;

use serde::Serialize;

use super::app_line::AppLine;
use super::line::{Access, Event, Level, WorkerLine};
use super::printable::is_unsafe;

pub(super) fn access(out: &mut Vec<u8>, line: &Access<'_>) {
    let start = out.len();
    write_json(out, "access", line);
    make_printable(out, start);
}

pub(super) fn event(out: &mut Vec<u8>, event: &Event<'_>) {
    let start = out.len();
    write_json(out, "hostler", &Stamped { time: jiff::Timestamp::now(), rest: event });
    make_printable(out, start);
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

/// An object that the app printed is in the field `app`, as the app wrote it. So no field of the app can be taken for one of
/// Hostler's, and no number loses digits. Returns the level that the app gave it.
pub(super) fn worker_line(out: &mut Vec<u8>, line: &WorkerLine<'_>) -> Option<Level> {
    let app = if line.is_whole { AppLine::parse(line.text) } else { None };
    let (level, text) = match &app {
        Some(app) => (app.level, app.message.as_deref()),
        None => (None, Some(line.text)),
    };
    let WorkerLine { pool, worker, pid, stream, .. } = *line;
    let fields = WorkerFields { pool, worker, pid, stream, level, text };
    let start = out.len();
    write_json(out, "worker", &Stamped { time: jiff::Timestamp::now(), rest: &fields });
    if app.is_some() && out.ends_with(b"}\n") {
        out.truncate(out.len() - 2);
        out.extend_from_slice(b",\"app\":");
        out.extend_from_slice(line.text.trim_ascii_end().as_bytes());
        out.extend_from_slice(b"}\n");
    }
    make_printable(out, start);
    level
}

/// Writes control characters and those that change the direction of text as escapes (`\u009b`), so that a terminal or a reader of lines
/// sees only text. The JSON values stay the same. Outside of strings JSON may have only one of these characters, a carriage return between
/// the fields of an app's object, which becomes a space.
fn make_printable(out: &mut Vec<u8>, start: usize) {
    if let Some(shown) = made_printable(&out[start..]) {
        out.truncate(start);
        out.extend_from_slice(shown.as_bytes());
    }
}

/// None: nothing changes.
fn made_printable(line: &[u8]) -> Option<String> {
    if line.is_ascii() && memchr::memchr2(b'\r', b'\x7f', line).is_none() {
        return None;
    }
    let is_changed = |c: char| c == '\r' || (c > '~' && is_unsafe(c));
    let text = String::from_utf8_lossy(line);
    if !text.contains(is_changed) {
        return None;
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\r' => shown.push(' '),
            // Writing to a string does not fail.
            c if is_changed(c) => _ = write!(shown, "\\u{:04x}", u32::from(c)),
            c => shown.push(c),
        }
    }
    Some(shown)
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn written(text: &str, is_whole: bool) -> (String, Value) {
        let line = WorkerLine { pool: "web", worker: 2, pid: 4711, stream: "stdout", text, is_whole };
        let mut out = Vec::new();
        worker_line(&mut out, &line);
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
    fn nothing_moves_the_cursor_of_a_terminal_or_ends_a_line_and_the_values_stay() {
        let text = "é \u{9b}2J\u{7f} \u{85}\u{2028}{\"event\":\"access\"}\u{202e}\r";
        let app = serde_json::to_string(&json!({ "msg": text })).unwrap().replacen(':', ":\r\t", 1);
        let (of_text, of_app) = (written(text, true), written(&app, true));
        assert_eq!((&of_text.1["text"], &of_app.1["app"]["msg"]), (&json!(text), &json!(text)));
        let mut of_event = b"before\x7f\n".to_vec();
        event(&mut of_event, &Event { level: Level::Info, text });
        let of_event = String::from_utf8(of_event).unwrap();
        let of_event = of_event.strip_prefix("before\x7f\n").unwrap();
        assert_eq!(serde_json::from_str::<Value>(of_event).unwrap()["text"], text);
        for out in [&*of_text.0, &of_app.0, of_event] {
            assert!(out.contains(r"é \u009b2J\u007f \u0085\u2028{"), "{out}");
            let is_plain = |c: char| c == '\t' || !is_unsafe(c);
            assert!(out.strip_suffix('\n').unwrap().chars().all(is_plain), "{out}");
        }
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
