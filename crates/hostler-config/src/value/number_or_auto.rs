//! A whole number within bounds, or `"auto"`, as written. Does not know what is counted.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

const AUTO: &str = "auto";

/// A whole number from `LEAST` to `MOST`, or `"auto"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberOrAuto<const LEAST: u16, const MOST: u16> {
    /// This number.
    Fixed(u16),
    /// Hostler finds the number.
    Auto,
}

/// Slots of each worker or member.
pub type Slots = NumberOrAuto<1, 1024>;
/// Spare workers.
pub type Spares = NumberOrAuto<0, 64>;

impl<const LEAST: u16, const MOST: u16> NumberOrAuto<LEAST, MOST> {
    fn checked(number: i64) -> Result<Self, String> {
        let in_range = u16::try_from(number).ok().filter(|number| (LEAST..=MOST).contains(number));
        in_range.map(Self::Fixed).ok_or_else(|| {
            format!("{number} is out of range; it must be from {LEAST} to {MOST}, or \"{AUTO}\"")
        })
    }
}

impl<'de, const LEAST: u16, const MOST: u16> Deserialize<'de> for NumberOrAuto<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit<const LEAST: u16, const MOST: u16>;
        impl<const LEAST: u16, const MOST: u16> Visitor<'_> for Visit<LEAST, MOST> {
            type Value = NumberOrAuto<LEAST, MOST>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from {LEAST} to {MOST}, or \"{AUTO}\"")
            }
            // Flags and variables have numbers as text.
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                match (text, text.trim().parse()) {
                    (AUTO, _) => Ok(NumberOrAuto::Auto),
                    (_, Ok(number)) => self.visit_i64(number),
                    _ => Err(E::custom(format!(
                        "{text:?} is not a whole number from {LEAST} to {MOST} or \"{AUTO}\""
                    ))),
                }
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                NumberOrAuto::checked(number).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visit)
    }
}

impl<const LEAST: u16, const MOST: u16> Serialize for NumberOrAuto<LEAST, MOST> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(number) => serializer.serialize_u16(*number),
            Self::Auto => serializer.serialize_str(AUTO),
        }
    }
}

impl<const LEAST: u16, const MOST: u16> JsonSchema for NumberOrAuto<LEAST, MOST> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("number from {LEAST} to {MOST} or auto").into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let kind = format!("number, {LEAST} to {MOST}, or `\"{AUTO}\"`");
        let pattern = format!("^({AUTO}|[0-9]+)$");
        json_schema!({
            "type": ["integer", "string"], "x-kind": kind, "minimum": LEAST, "maximum": MOST, "pattern": pattern
        })
    }
}
