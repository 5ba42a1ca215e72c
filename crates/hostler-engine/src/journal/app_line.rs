//! A line of an app that is a JSON object, as pino, winston and bunyan print it: its level, its message, its fields. Knows no formats of our own.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::line::Level;

/// The keys of the level: pino, bunyan and winston; Google Cloud; Elastic Common Schema. An earlier key wins.
const LEVELS: [&str; 3] = ["level", "severity", "log.level"];
/// The keys of the message: pino and bunyan; winston and Elastic Common Schema. An earlier key wins.
const MESSAGES: [&str; 2] = ["msg", "message"];

/// The level and the message of the object, for lines whose other fields are not read.
#[derive(Debug, Default, PartialEq)]
pub(super) struct AppLine {
    pub level: Option<Level>,
    pub message: Option<String>,
}

/// The object with its fields in their order. Of fields with the same name, the last one counts, as in `JSON.parse`.
#[derive(Debug, PartialEq)]
pub(super) struct AppFields {
    pub line: AppLine,
    /// All fields but those of level and message.
    pub others: Map<String, Value>,
}

impl AppLine {
    /// `None` for all other texts: no JSON, JSON that is no object, and JSON that strict readers refuse (deeper than 128 levels,
    /// half of a surrogate pair, a number out of range). The other fields take no memory.
    pub fn parse(text: &str) -> Option<Self> {
        if !may_be_object(text) {
            return None;
        }
        let Summary(fields) = serde_json::from_str(text).ok()?;
        Some(Self::of(&fields))
    }

    fn of(fields: &Map<String, Value>) -> Self {
        let find = |keys: &[&str]| keys.iter().find_map(|key| fields.get(*key));
        Self {
            level: find(&LEVELS).and_then(level),
            message: find(&MESSAGES).map(|message| match message {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            }),
        }
    }
}

impl AppFields {
    /// As [`AppLine::parse`], with the fields.
    pub fn parse(text: &str) -> Option<Self> {
        if !may_be_object(text) {
            return None;
        }
        let mut others: Map<String, Value> = serde_json::from_str(text).ok()?;
        let line = AppLine::of(&others);
        if line.level.is_some() {
            LEVELS.iter().for_each(|key| drop(others.shift_remove(*key)));
        }
        if let Some(key) = MESSAGES.iter().find(|key| others.contains_key(**key)) {
            others.shift_remove(*key);
        }
        Some(Self { line, others })
    }
}

fn may_be_object(text: &str) -> bool {
    text.starts_with('{') && text.trim_end().ends_with('}')
}

/// The words of winston's npm, cli and syslog levels, of Google Cloud, and of pino; the numbers of pino and bunyan.
fn level(value: &Value) -> Option<Level> {
    match value {
        Value::Number(number) => Some(match number.as_f64()? {
            ..10.0 => return None,
            ..20.0 => Level::Trace,
            ..30.0 => Level::Debug,
            ..40.0 => Level::Info,
            ..50.0 => Level::Warn,
            ..60.0 => Level::Error,
            _ => Level::Fatal,
        }),
        Value::String(word) => Some(match word.to_ascii_lowercase().as_str() {
            "trace" | "silly" => Level::Trace,
            "debug" | "verbose" | "http" => Level::Debug,
            "info" | "notice" | "default" | "help" | "data" | "prompt" | "input" => Level::Info,
            "warn" | "warning" => Level::Warn,
            "error" | "err" => Level::Error,
            "fatal" | "critical" | "crit" | "alert" | "emerg" | "emergency" => Level::Fatal,
            _ => return None,
        }),
        _ => None,
    }
}

/// The fields of level and message only.
struct Summary(Map<String, Value>);

impl<'de> Deserialize<'de> for Summary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SummaryVisitor).map(Self)
    }
}

struct SummaryVisitor;

impl<'de> Visitor<'de> for SummaryVisitor {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if LEVELS.contains(&key.as_str()) || MESSAGES.contains(&key.as_str()) {
                fields.insert(key, map.next_value()?);
            } else {
                map.next_value::<Skipped>()?;
            }
        }
        Ok(fields)
    }
}

/// Any value, checked and not kept. `IgnoredAny` would accept what the readers of our log refuse: deep nesting and half surrogates.
struct Skipped;

impl<'de> Deserialize<'de> for Skipped {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Skipped {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self, A::Error> {
        while entries.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(level: Option<Level>, message: Option<&str>) -> Option<AppLine> {
        Some(AppLine { level, message: message.map(Into::into) })
    }

    #[test]
    fn levels_and_messages_of_the_known_loggers_are_found() {
        let pino =
            r#"{"level":30,"time":1700000000000,"pid":1,"hostname":"h","req":{"level":"x"},"msg":"hello"}"#;
        let winston = r#"{"level":"http","message":"done","timestamp":"2026-01-01T00:00:00Z"}"#;
        let bunyan = r#"{"name":"shop","hostname":"h","pid":1,"level":50,"msg":"no","time":"...","v":0}"#;
        let cases = [
            (pino, line(Some(Level::Info), Some("hello"))),
            (winston, line(Some(Level::Debug), Some("done"))),
            (bunyan, line(Some(Level::Error), Some("no"))),
            (r#"{"severity":"CRITICAL","message":"m"}"#, line(Some(Level::Fatal), Some("m"))),
            (r#"{"log.level":"warn","message":{"a":1}}"#, line(Some(Level::Warn), Some("{\"a\":1}"))),
            (r#"{"level":35}"#, line(Some(Level::Info), None)),
            (r#"{"level":3,"msg":null}"#, line(None, Some("null"))),
            (r#"{"level":"mine","level":60,"msg":"a","msg":"b"} "#, line(Some(Level::Fatal), Some("b"))),
            ("{}", line(None, None)),
        ];
        for (text, expected) in cases {
            assert_eq!(AppLine::parse(text), expected, "{text}");
            assert_eq!(AppFields::parse(text).map(|fields| fields.line), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_object_for_a_strict_reader_is_text() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        let texts = [
            "",
            "{",
            "{a:1}",
            "[1]",
            "\"{}\"",
            "{\"a\":1} trailing }",
            "{\"a\":1}{\"a\":2}",
            "{\"a\":\"\\ud800\"}",
            "{\"a\":1e999}",
            "{\"a\":\"\u{1}\"}",
            &deep,
        ];
        for text in texts {
            assert_eq!(AppLine::parse(text), None, "{text}");
            assert_eq!(AppFields::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_other_fields_keep_their_order() {
        let fields = AppFields::parse(r#"{"level":30,"z":1,"msg":"m","a":[2],"z":3,"message":"x"}"#).unwrap();
        let names: Vec<_> = fields.others.keys().collect();
        assert_eq!(names, ["z", "a", "message"]);
        assert_eq!(fields.others["z"], json!(3));
    }
}
