//! On, off, or a table with settings. Knows no keys.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// On, off, or a table with settings.
#[derive(Clone, Debug, PartialEq)]
pub enum Switch<T> {
    /// `true` or `false`; from a variable or a flag also as text.
    Plain(bool),
    /// On, with these settings.
    Table(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Switch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Visit<T> {
            type Value = Switch<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false or a table")
            }
            fn visit_bool<E: Error>(self, on: bool) -> Result<Self::Value, E> {
                Ok(Switch::Plain(on))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                let on = text.parse().map_err(|_| E::invalid_value(Unexpected::Str(text), &self))?;
                Ok(Switch::Plain(on))
            }
            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(table)).map(Switch::Table)
            }
        }
        deserializer.deserialize_any(Visit(PhantomData))
    }
}

impl<T: Serialize> Serialize for Switch<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Plain(on) => on.serialize(serializer),
            Self::Table(table) => table.serialize(serializer),
        }
    }
}

impl<T: JsonSchema> JsonSchema for Switch<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "true, false or table".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<T>();
        json_schema!({ "oneOf": [{ "type": "boolean" }, table], "x-kind": "`true`, `false` or table" })
    }
}
