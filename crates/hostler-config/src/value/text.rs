//! Texts with a format: a command, a request path, one value or several.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

use super::shell::refuse_shell;
use super::{OneString, one_string};

/// A program and its arguments: a list, or one string that is split as a POSIX shell splits words. No shell runs it.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandLine(pub Vec<String>);

impl FromStr for CommandLine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = shell_words::split(text)
            .map_err(|error| format!("{text:?} cannot be split into words: {error}"))?;
        refuse_shell(text)?;
        Self::checked(words)
    }
}

impl CommandLine {
    fn checked(words: Vec<String>) -> Result<Self, String> {
        match words.first() {
            Some(program) if !program.is_empty() => {}
            _ => return Err("the program is missing; write for example \"node server.js\"".into()),
        }
        if words.iter().any(|word| word.contains('\0')) {
            return Err("it contains a NUL character, which is not allowed".into());
        }
        Ok(Self(words))
    }
}

impl<'de> Deserialize<'de> for CommandLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = CommandLine;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a command such as \"node server.js\" or [\"node\", \"server.js\"]")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<CommandLine, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, words: A) -> Result<CommandLine, A::Error> {
                let words = Vec::deserialize(SeqAccessDeserializer::new(words))?;
                CommandLine::checked(words).map_err(A::Error::custom)
            }
        }
        deserializer.deserialize_any(Visit)
    }
}

impl Serialize for CommandLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl JsonSchema for CommandLine {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "command".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let kind = "command: string or list of words";
        json_schema!({ "type": ["string", "array"], "items": { "type": "string" }, "x-kind": kind })
    }
}

/// A path as in a request line.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestPath(pub String);

impl FromStr for RequestPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fits = text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
        match fits {
            true => Ok(Self(text.into())),
            false => Err(format!(
                "{text:?} is not a valid path: it must begin with \"/\", with %XX for spaces and non-ASCII characters"
            )),
        }
    }
}

impl fmt::Display for RequestPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

one_string!(RequestPath, kind: "path", expects: "a path such as \"/healthz\"");

/// The name of a file, relative to the configuration's folder.
#[derive(Clone, Debug, PartialEq)]
pub struct FileName(pub String);

impl FromStr for FileName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.is_empty() || text.contains('\0') {
            true => Err(format!("{text:?} is not a valid name of a file")),
            false => Ok(Self(text.into())),
        }
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

one_string!(FileName, kind: "file", expects: "the name of a file");

/// One value or a list of them.
#[derive(Clone, Debug, PartialEq)]
pub struct OneOrMany<T>(pub Vec<T>);

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de> + OneString> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de> + OneString> Visitor<'de> for Visit<T> {
            type Value = OneOrMany<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}, or a list of them", T::EXPECTS)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                text.parse().map(|one| OneOrMany(vec![one])).map_err(E::custom)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(OneOrMany)
            }
        }
        deserializer.deserialize_any(Visit(PhantomData))
    }
}

impl<T: Serialize> Serialize for OneOrMany<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("{} or list", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        let kind = format!("{} or a list of them", T::schema_name());
        json_schema!({ "type": ["string", "array"], "items": one, "x-kind": kind, "x-commas": true })
    }
}

/// The value of an environment variable: text. A whole number or a boolean becomes text.
#[derive(Clone, Debug, PartialEq)]
pub struct Plain(pub String);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl Visitor<'_> for Visit {
            type Value = Plain;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, a whole number or a boolean")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Plain, E> {
                match text.contains('\0') {
                    true => Err(E::custom("it contains a NUL character, which is not allowed")),
                    false => Ok(Plain(text.into())),
                }
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Plain, E> {
                Ok(Plain(number.to_string()))
            }
            fn visit_bool<E: Error>(self, truth: bool) -> Result<Plain, E> {
                Ok(Plain(truth.to_string()))
            }
        }
        deserializer.deserialize_any(Visit)
    }
}

impl Serialize for Plain {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl JsonSchema for Plain {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "string".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "integer", "boolean"] })
    }
}
