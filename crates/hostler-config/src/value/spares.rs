//! Spares as written: a number, or `"auto"`. Knows not what they stand by for.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

const MOST: u8 = 64;
const AUTO: &str = "auto";

/// A whole number from 0 to 64, or `"auto"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spares {
    /// So many, always.
    Fixed(u8),
    /// One while workers die often.
    Auto,
}

impl<'de> Deserialize<'de> for Spares {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl Visitor<'_> for Visit {
            type Value = Spares;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from 0 to {MOST}, or \"{AUTO}\"")
            }
            // Flags and variables give numbers as text.
            fn visit_str<E: Error>(self, text: &str) -> Result<Spares, E> {
                match (text, text.trim().parse()) {
                    (AUTO, _) => Ok(Spares::Auto),
                    (_, Ok(number)) => self.visit_i64(number),
                    _ => Err(E::custom(format!(
                        "{text:?} is neither a whole number from 0 to {MOST} nor \"{AUTO}\""
                    ))),
                }
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Spares, E> {
                let in_range = u8::try_from(number).ok().filter(|number| *number <= MOST);
                let wrong = || format!("{number} is out of range; from 0 to {MOST}, or \"{AUTO}\"");
                in_range.map(Spares::Fixed).ok_or_else(|| E::custom(wrong()))
            }
        }
        deserializer.deserialize_any(Visit)
    }
}

impl Serialize for Spares {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(number) => serializer.serialize_u8(*number),
            Self::Auto => serializer.serialize_str(AUTO),
        }
    }
}

impl JsonSchema for Spares {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "spares".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let kind = format!("number, 0 to {MOST}, or `\"{AUTO}\"`");
        let pattern = format!("^({AUTO}|[0-9]+)$");
        json_schema!({
            "type": ["integer", "string"], "x-kind": kind, "minimum": 0, "maximum": MOST, "pattern": pattern
        })
    }
}
