//! Slots as written: a number, or `"auto"`. Knows not who has them.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

const LEAST: u64 = 1;
const MOST: u64 = 1024;
const AUTO: &str = "auto";

/// A whole number from 1 to 1024, or `"auto"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Slots {
    /// So many.
    Fixed(u16),
    /// As many as Hostler finds to be right.
    Auto,
}

impl Slots {
    fn checked(number: i64) -> Result<Self, String> {
        let in_range =
            u16::try_from(number).ok().filter(|number| (LEAST..=MOST).contains(&u64::from(*number)));
        in_range
            .map(Self::Fixed)
            .ok_or_else(|| format!("{number} is out of range; from {LEAST} to {MOST}, or \"{AUTO}\""))
    }
}

impl<'de> Deserialize<'de> for Slots {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl Visitor<'_> for Visit {
            type Value = Slots;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from {LEAST} to {MOST}, or \"{AUTO}\"")
            }
            // Flags and variables give numbers as text.
            fn visit_str<E: Error>(self, text: &str) -> Result<Slots, E> {
                match (text, text.trim().parse()) {
                    (AUTO, _) => Ok(Slots::Auto),
                    (_, Ok(number)) => self.visit_i64(number),
                    _ => Err(E::custom(format!(
                        "{text:?} is neither a whole number from {LEAST} to {MOST} nor \"{AUTO}\""
                    ))),
                }
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Slots, E> {
                Slots::checked(number).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visit)
    }
}

impl Serialize for Slots {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(number) => serializer.serialize_u16(*number),
            Self::Auto => serializer.serialize_str(AUTO),
        }
    }
}

impl JsonSchema for Slots {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "slots".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let kind = format!("number, {LEAST} to {MOST}, or `\"{AUTO}\"`");
        let pattern = format!("^({AUTO}|[0-9]+)$");
        json_schema!({
            "type": ["integer", "string"], "x-kind": kind, "minimum": LEAST, "maximum": MOST, "pattern": pattern
        })
    }
}
