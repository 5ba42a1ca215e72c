//! A word such as `"auto"`, or a value: a number, or a table with settings. Knows no keys.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value as Json, json};

use super::Count;

/// A word, or a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordOr<W, V> {
    /// One of a few words. For a `bool` also `true` and `false`, for a [`String`] any text.
    Word(W),
    /// A number in a range, or a table with settings.
    Value(V),
}

/// `true`, `false` or a table with settings.
pub type Switch<T> = WordOr<bool, T>;
/// Text, or a table with settings.
pub type TextOr<T> = WordOr<String, T>;
/// Slots of each worker or member.
pub type Slots = WordOr<Auto, Count<1, 1024>>;
/// Spare workers.
pub type Spares = WordOr<Auto, Count<0, 64>>;
/// A limit for each client: this number for every client, or one of the words.
pub type ClientLimit = WordOr<AutoOrOff, Count<1, 1_000_000>>;

/// What can be the word in a [`WordOr`].
pub trait Word: Sized {
    /// The words as a file has them.
    const WORDS: &'static [&'static str];
    /// The word for this text.
    fn of_text(text: &str) -> Option<Self>;
    /// The word for `true` or `false`.
    fn of_bool(_on: bool) -> Option<Self> {
        None
    }
    /// What the JSON Schema says about the words.
    fn schemas() -> Vec<Json>;
    /// The words in the reference.
    fn kinds() -> Vec<String> {
        Self::WORDS.iter().map(|word| format!("`{word}`")).collect()
    }
}

/// What can be the value in a [`WordOr`]. The provided methods are those of a table.
pub trait Value: Sized {
    /// What is accepted, for errors.
    fn expects() -> String {
        "a table".into()
    }
    /// The value for this number, or why it is none. `None`: no number is.
    fn of_number(_number: i64) -> Option<Result<Self, String>> {
        None
    }
    /// What the JSON Schema says about values besides the type itself.
    fn schemas() -> Vec<Json> {
        vec![]
    }
    /// The same in the reference.
    fn kinds() -> Vec<String> {
        vec![]
    }
}

impl<const MIN: u64, const MAX: u64> Value for Count<MIN, MAX> {
    fn expects() -> String {
        format!("a whole number from {MIN} to {MAX}")
    }
    fn of_number(number: i64) -> Option<Result<Self, String>> {
        Some(Self::checked(number))
    }
    fn schemas() -> Vec<Json> {
        vec![number_in_quotes()]
    }
}

/// What the JSON Schema says about a number that is written as text.
pub fn number_in_quotes() -> Json {
    json!({ "type": "string", "pattern": r"^\s*\+?[0-9]+\s*$" })
}

/// `"auto"`: Hostler finds the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auto;

impl Serialize for Auto {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("auto")
    }
}

impl Word for Auto {
    const WORDS: &'static [&'static str] = &["\"auto\""];
    fn of_text(text: &str) -> Option<Self> {
        (text == "auto").then_some(Self)
    }
    fn schemas() -> Vec<Json> {
        vec![json!({ "type": "string", "enum": ["auto"] })]
    }
}

/// `"auto"` or `"off"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AutoOrOff {
    /// Hostler finds the number.
    Auto,
    /// No limit.
    Off,
}

impl Word for AutoOrOff {
    const WORDS: &'static [&'static str] = &["\"auto\"", "\"off\""];
    fn of_text(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(Self::Auto),
            "off" => Some(Self::Off),
            _ => None,
        }
    }
    fn schemas() -> Vec<Json> {
        vec![json!({ "type": "string", "enum": ["auto", "off"] })]
    }
}

impl Word for bool {
    const WORDS: &'static [&'static str] = &["true", "false"];
    fn of_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
    fn of_bool(on: bool) -> Option<Self> {
        Some(on)
    }
    fn schemas() -> Vec<Json> {
        vec![json!({ "type": "boolean" }), json!({ "type": "string", "enum": ["true", "false"] })]
    }
}

impl Word for String {
    const WORDS: &'static [&'static str] = &["a string"];
    fn of_text(text: &str) -> Option<Self> {
        Some(text.into())
    }
    fn schemas() -> Vec<Json> {
        vec![json!({ "type": "string" })]
    }
    fn kinds() -> Vec<String> {
        vec!["string".into()]
    }
}

/// As a list in a sentence. Example: `"auto", "off" or a table`.
fn either(choices: Vec<String>) -> String {
    match choices.split_last() {
        Some((last, others @ [_, ..])) => format!("{} or {last}", others.join(", ")),
        _ => choices.concat(),
    }
}

/// What is accepted, for errors.
fn expects<W: Word, V: Value>() -> String {
    either([words::<W>(), vec![V::expects()]].concat())
}

fn words<W: Word>() -> Vec<String> {
    W::WORDS.iter().copied().map(String::from).collect()
}

impl<'de, W: Word, V: Value + Deserialize<'de>> Deserialize<'de> for WordOr<W, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit<W, V>(PhantomData<(W, V)>);
        impl<'de, W: Word, V: Value + Deserialize<'de>> Visitor<'de> for Visit<W, V> {
            type Value = WordOr<W, V>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&expects::<W, V>())
            }
            fn visit_bool<E: Error>(self, on: bool) -> Result<Self::Value, E> {
                let wrong = || E::invalid_type(Unexpected::Bool(on), &self);
                W::of_bool(on).map(WordOr::Word).ok_or_else(wrong)
            }
            // A number or a switch may be in quotes: the schema says the same.
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                if let Some(word) = W::of_text(text) {
                    return Ok(WordOr::Word(word));
                }
                match text.trim().parse() {
                    Ok(number) if V::of_number(number).is_some() => self.visit_i64(number),
                    _ => Err(E::custom(format!("{text:?} is not {}", expects::<W, V>()))),
                }
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                match V::of_number(number) {
                    Some(Ok(value)) => Ok(WordOr::Value(value)),
                    Some(Err(why)) => Err(E::custom(format!("{why}, or {}", either(words::<W>())))),
                    None => Err(E::invalid_type(Unexpected::Signed(number), &self)),
                }
            }
            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Self::Value, A::Error> {
                V::deserialize(MapAccessDeserializer::new(table)).map(WordOr::Value)
            }
        }
        deserializer.deserialize_any(Visit(PhantomData))
    }
}

impl<W: Serialize, V: Serialize> Serialize for WordOr<W, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Word(word) => word.serialize(serializer),
            Self::Value(value) => value.serialize(serializer),
        }
    }
}

impl<W: Word, V: Value + JsonSchema> JsonSchema for WordOr<W, V> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("{} or {}", W::kinds().join(" or "), V::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<V>();
        let kind = value.get("x-kind").and_then(Json::as_str).unwrap_or("table");
        let kind = either([W::kinds(), V::kinds(), vec![kind.into()]].concat());
        let one_of: Vec<Json> = W::schemas().into_iter().chain(V::schemas()).chain([json!(value)]).collect();
        json_schema!({ "oneOf": one_of, "x-kind": kind })
    }
}
