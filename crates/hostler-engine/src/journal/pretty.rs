//! The lines of the log, as text for people. Knows no files.

use std::fmt::Display;
use std::io::Write;
use std::time::Duration;

use serde_json::{Map, Value};

use super::app_line::AppFields;
use super::colour::{BOLD, DIM, RED, Styler, of_level, of_status, of_worker};
use super::line::{Access, Event, Level, WorkerLine};
use super::printable::{Allowed, printable};

/// Fields of an app's line that people do not need beside Hostler's own time and process.
const NOT_SHOWN: [&str; 7] = ["time", "timestamp", "@timestamp", "ts", "pid", "hostname", "v"];
/// The fields in which loggers put an error object.
const ERRORS: [&str; 3] = ["err", "error", "exception"];
/// A longer nested value is cut.
const MOST_NESTED: usize = 200;
/// Before each further line of one entry, so that it cannot look like an entry of its own.
const CONTINUED: &str = "              | ";

pub(super) fn access(out: &mut Vec<u8>, line: &Access<'_>, coloured: bool) {
    let styler = Styler { coloured };
    let _ = write!(
        out,
        "{} {} {} {}{} {:.1}ms",
        styler.style(DIM, clock()),
        styler.style(of_status(line.status), line.status),
        styler.style(BOLD, plain(line.method)),
        plain(line.host),
        plain(line.target),
        line.total_ms.as_secs_f64() * 1000.0
    );
    if let (Some(pool), Some(member)) = (line.pool, line.member) {
        // Any client of NATS can write the names of registered routes and members.
        let _ = write!(out, " {}", styler.style(DIM, format_args!("{}/{}", plain(pool), plain(member))));
    }
    if let Some(moved) = line.moved {
        let _ = write!(out, " moved: {moved}");
    }
    if let Some(cache) = line.cache {
        let _ = write!(out, " {cache}");
    }
    if line.queue_wait_ms >= Duration::from_millis(1) {
        let _ = write!(out, " waited {:.1}ms", line.queue_wait_ms.as_secs_f64() * 1000.0);
    }
    if let Some(failed) = line.failed_tries_ms.filter(|failed| *failed >= Duration::from_millis(1)) {
        let _ = write!(out, " failed tries {:.1}ms", failed.as_secs_f64() * 1000.0);
    }
    if let Some(side) = line.stream_end {
        let _ = write!(out, " stream ended by {side}");
    }
    let refused = if line.fallback { "fallback" } else { "refused" };
    for (label, value) in [(refused, line.refusal), ("detail", line.detail), ("aborted by", line.aborted)] {
        if let Some(value) = value {
            let _ = write!(out, " {}", styler.style(RED, format_args!("{label}: {}", plain(value))));
        }
    }
    out.push(b'\n');
}

pub(super) fn event(out: &mut Vec<u8>, event: &Event<'_>, coloured: bool) {
    let styler = Styler { coloured };
    let mark = match event.level {
        Level::Warn => "warning: ",
        Level::Error | Level::Fatal => "error: ",
        Level::Trace | Level::Debug | Level::Info => "",
    };
    let _ = write!(out, "{} {}", styler.style(DIM, clock()), styler.style(of_level(event.level), mark));
    write_lines(out, styler, event.text.lines().map(plain));
}

/// Returns the level that the app gave it.
pub(super) fn worker_line(out: &mut Vec<u8>, line: &WorkerLine<'_>, coloured: bool) -> Option<Level> {
    let styler = Styler { coloured };
    let style = of_worker(line.worker);
    let bar = if line.stream == "stderr" { RED } else { style };
    let _ = write!(
        out,
        "{} {} {} {} ",
        styler.style(DIM, clock()),
        styler.style(style, format_args!("{}/{}", line.pool, line.worker)),
        styler.style(DIM, line.pid),
        styler.style(bar, '|')
    );
    match AppFields::parse(line.text).filter(|_| line.is_whole) {
        Some(fields) => {
            app_fields(out, styler, &fields);
            fields.line.level
        }
        None => {
            // The app's own colours: on a terminal they are its formatting, elsewhere they are noise.
            let allowed = if coloured { Allowed::Colours } else { Allowed::Text };
            let _ = writeln!(out, "{}", printable(line.text, allowed));
            None
        }
    }
}

/// The level, the message, the other fields, and below them the call stack of an error.
fn app_fields(out: &mut Vec<u8>, styler: Styler, fields: &AppFields) {
    if let Some(level) = fields.line.level {
        let _ = write!(out, "{} ", styler.style(of_level(level), word(level)));
    }
    let mut message = fields.line.message.as_deref().unwrap_or_default().lines();
    let _ = write!(out, "{}", plain(message.next().unwrap_or_default()));
    let error =
        ERRORS.into_iter().find(|key| fields.others.get(*key).is_some_and(|error| stack(error).is_some()));
    let shown = |key: &str| !NOT_SHOWN.contains(&key) && Some(key) != error && key != "stack";
    for (key, value) in fields.others.iter().filter(|(key, _)| shown(key)) {
        field(out, styler, key, value);
    }
    let stack = error.and_then(|key| fields.others.get(key)).and_then(stack);
    let stack = stack.or(fields.others.get("stack").and_then(Value::as_str));
    if let Some(Value::Object(error)) = error.and_then(|key| fields.others.get(key)) {
        // What an error has besides its stack, for example `code`.
        for (key, value) in
            error.iter().filter(|(key, _)| !["type", "name", "message", "stack"].contains(&key.as_str()))
        {
            field(out, styler, key, value);
        }
    }
    out.push(b'\n');
    for line in message.chain(stack.unwrap_or_default().lines()) {
        let _ = writeln!(out, "{}{}", styler.style(DIM, CONTINUED), plain(line));
    }
}

fn stack(error: &Value) -> Option<&str> {
    error.get("stack")?.as_str()
}

/// ` key=value`. The fields of an object are shown one by one, as `key.field=value`.
fn field(out: &mut Vec<u8>, styler: Styler, key: &str, value: &Value) {
    match value {
        Value::Object(inner) if !inner.is_empty() => nested(out, styler, key, inner),
        value => pair(out, styler, plain(key), value),
    }
}

fn nested(out: &mut Vec<u8>, styler: Styler, key: &str, inner: &Map<String, Value>) {
    for (name, value) in inner {
        pair(out, styler, format_args!("{}.{}", plain(key), plain(name)), value);
    }
}

fn pair(out: &mut Vec<u8>, styler: Styler, key: impl Display, value: &Value) {
    let _ = write!(out, " {}", styler.style(DIM, format_args!("{key}=")));
    match value {
        Value::String(text) if is_word(text) => drop(write!(out, "{}", plain(text))),
        Value::Array(_) | Value::Object(_) => {
            let json = value.to_string();
            let cut = json.floor_char_boundary(MOST_NESTED.min(json.len()));
            let rest = if cut < json.len() { "…" } else { "" };
            drop(write!(out, "{}{rest}", plain(&json[..cut])));
        }
        other => drop(write!(out, "{}", plain(&other.to_string()))),
    }
}

/// Without quotes it cannot be taken for two fields.
fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains([' ', '"', '=', '\n'])
}

/// The first line goes where the output is. Further lines are indented.
fn write_lines(out: &mut Vec<u8>, styler: Styler, mut lines: impl Iterator<Item = impl Display>) {
    match lines.next() {
        Some(first) => drop(writeln!(out, "{first}")),
        None => out.push(b'\n'),
    }
    for line in lines {
        let _ = writeln!(out, "{}{line}", styler.style(DIM, CONTINUED));
    }
}

/// Five characters wide, so that messages are below each other.
fn word(level: Level) -> &'static str {
    match level {
        Level::Trace => "TRACE",
        Level::Debug => "DEBUG",
        Level::Info => "INFO ",
        Level::Warn => "WARN ",
        Level::Error => "ERROR",
        Level::Fatal => "FATAL",
    }
}

fn clock() -> impl Display {
    jiff::Zoned::now().strftime("%H:%M:%S%.3f").to_string()
}

fn plain(text: &str) -> impl Display {
    printable(text, Allowed::Text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, coloured: bool) -> String {
        let line = WorkerLine { pool: "app", worker: 1, pid: 4711, stream: "stdout", text, is_whole: true };
        let mut out = Vec::new();
        worker_line(&mut out, &line, coloured);
        String::from_utf8(out).unwrap()
    }

    /// Without the time.
    fn text_of(text: &str) -> String {
        shown(text, false).split_once(' ').unwrap().1.to_owned()
    }

    #[test]
    fn no_worker_line_looks_like_one_of_hostlers() {
        let mut out = Vec::new();
        let text = "app/1: killed; it printed last:\n12:00:00.000 error: forged\n\u{1b}[2Jwiped";
        event(&mut out, &Event { level: Level::Error, text }, false);
        let out = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = out.lines().collect();
        assert!(lines[0].ends_with(" error: app/1: killed; it printed last:"), "{out}");
        assert_eq!(
            lines[1..],
            ["              | 12:00:00.000 error: forged", "              | \\x1b[2Jwiped"]
        );
    }

    #[test]
    fn an_apps_object_is_a_readable_line() {
        let cases = [
            (
                r#"{"level":30,"time":1,"pid":9,"hostname":"h","req":{"method":"GET","url":"/a b"},"ms":1.5,"msg":"done"}"#,
                "app/1 4711 | INFO  done req.method=GET req.url=\"/a b\" ms=1.5\n",
            ),
            (
                r#"{"message":"m","level":"silly","ok":null,"tags":["a"]}"#,
                "app/1 4711 | TRACE m ok=null tags=[\"a\"]\n",
            ),
            (
                r#"{"level":50,"err":{"type":"Error","message":"boom","stack":"Error: boom\n    at a.js:1","code":"E1"},"msg":"boom"}"#,
                "app/1 4711 | ERROR boom code=E1\n              | Error: boom\n              |     at a.js:1\n",
            ),
            (
                r#"{"level":"error","message":"two\n12:00:00.000 forged","stack":"Error: x"}"#,
                "app/1 4711 | ERROR two\n              | 12:00:00.000 forged\n              | Error: x\n",
            ),
            (
                r#"{"msg":"\u001b[2J","\u001b[31m":1,"e":"x=1 y=2"}"#,
                "app/1 4711 | \\x1b[2J \\x1b[31m=1 e=\"x=1 y=2\"\n",
            ),
            ("[1]", "app/1 4711 | [1]\n"),
        ];
        for (text, expected) in cases {
            assert_eq!(text_of(text), expected);
        }
        let long = format!("{{\"a\":[\"{}\"]}}", "€".repeat(300));
        assert!(text_of(&long).ends_with("€…\n"));
    }

    #[test]
    fn colours_of_the_app_pass_only_when_the_log_has_colours() {
        let text = "\u{1b}[32mready\u{1b}[39m\u{1b}[2J";
        assert!(shown(text, true).ends_with(" \u{1b}[32mready\u{1b}[39m\\x1b[2J\u{1b}[0m\n"));
        assert!(!shown(text, false).contains('\u{1b}'));
        // Inside JSON they are data.
        assert!(shown(r#"{"msg":"\u001b[32mready"}"#, true).contains("\\x1b[32mready"));
    }
}
