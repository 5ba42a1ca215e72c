//! A limit for each client as written: a number, `"auto"` or `"off"`. Does not know what is limited.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

const LEAST: u64 = 1;
const MOST: u64 = 1_000_000;
const AUTO: &str = "auto";
const OFF: &str = "off";

/// A whole number from 1 to 1,000,000, `"auto"` or `"off"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientLimit {
    /// This number, for every client.
    Fixed(usize),
    /// A part of `server.max_connections`, depending on the kind of address.
    Auto,
    /// No limit.
    Off,
}

impl ClientLimit {
    fn checked(number: i64) -> Result<Self, String> {
        let in_range = u64::try_from(number).ok().filter(|number| (LEAST..=MOST).contains(number));
        in_range.map(|number| Self::Fixed(number as usize)).ok_or_else(|| {
            format!("{number} is out of range; it must be from {LEAST} to {MOST}, \"{AUTO}\" or \"{OFF}\"")
        })
    }
}

impl<'de> Deserialize<'de> for ClientLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl Visitor<'_> for Visit {
            type Value = ClientLimit;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from {LEAST} to {MOST}, \"{AUTO}\" or \"{OFF}\"")
            }
            // Flags and variables have numbers as text.
            fn visit_str<E: Error>(self, text: &str) -> Result<ClientLimit, E> {
                match (text, text.trim().parse()) {
                    (AUTO, _) => Ok(ClientLimit::Auto),
                    (OFF, _) => Ok(ClientLimit::Off),
                    (_, Ok(number)) => self.visit_i64(number),
                    _ => Err(E::custom(format!(
                        "{text:?} is not a whole number from {LEAST} to {MOST}, \"{AUTO}\" or \"{OFF}\""
                    ))),
                }
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<ClientLimit, E> {
                ClientLimit::checked(number).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visit)
    }
}

impl Serialize for ClientLimit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(number) => serializer.serialize_u64(*number as u64),
            Self::Auto => serializer.serialize_str(AUTO),
            Self::Off => serializer.serialize_str(OFF),
        }
    }
}

impl JsonSchema for ClientLimit {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "client limit".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let kind = format!("number, {LEAST} to {MOST}, `\"{AUTO}\"` or `\"{OFF}\"`");
        let pattern = format!("^({AUTO}|{OFF}|[0-9]+)$");
        json_schema!({
            "type": ["integer", "string"], "x-kind": kind, "minimum": LEAST, "maximum": MOST, "pattern": pattern
        })
    }
}
