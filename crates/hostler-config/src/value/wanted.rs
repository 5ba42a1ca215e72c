//! The value that a part of a request must have: a text, one of several, any, or none. Knows no requests.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

/// The value that a header field, a parameter or a cookie must have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// It must be there, with any value; or it must not be there.
    There(bool),
    /// Its value must match one of these. The list is never empty.
    OneOf(Vec<TextPattern>),
}

impl Wanted {
    /// Whether this value is the one that is wanted. `None`: there is none.
    #[inline] // requests call it: Cargo.toml
    pub fn is_met(&self, value: Option<&[u8]>) -> bool {
        match (self, value) {
            (Self::There(there), value) => value.is_some() == *there,
            (Self::OneOf(_), None) => false,
            (Self::OneOf(patterns), Some(value)) => patterns.iter().any(|pattern| pattern.matches(value)),
        }
    }
}

impl<'de> Deserialize<'de> for Wanted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Wanted;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, a list of strings, true or false")
            }
            fn visit_bool<E: Error>(self, there: bool) -> Result<Wanted, E> {
                Ok(Wanted::There(there))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Wanted, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Wanted, E> {
                Ok(Wanted::OneOf(vec![text.parse().map_err(E::custom)?]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Wanted, A::Error> {
                let texts = Vec::<String>::deserialize(SeqAccessDeserializer::new(list))?;
                if texts.is_empty() {
                    return Err(A::Error::custom("the list is empty; for any value write true"));
                }
                let patterns = texts.iter().map(|text| text.parse()).collect::<Result<_, String>>();
                patterns.map(Wanted::OneOf).map_err(A::Error::custom)
            }
        }
        deserializer.deserialize_any(Visit)
    }
}

impl Serialize for Wanted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::There(there) => serializer.serialize_bool(*there),
            Self::OneOf(patterns) => serializer.collect_seq(patterns.iter().map(ToString::to_string)),
        }
    }
}

impl JsonSchema for Wanted {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "value".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let kind = "string, list of strings, `true` or `false`";
        let types = ["string", "integer", "boolean", "array"];
        json_schema!({ "type": types, "items": { "type": "string" }, "x-kind": kind })
    }
}

/// A text with `*` at its ends, parsed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TextPattern {
    /// `text`: this text.
    Exact(String),
    /// `text*`: it begins so.
    Start(String),
    /// `*text`: it ends so.
    End(String),
    /// `*text*`: it has this part.
    Part(String),
}

impl TextPattern {
    /// Whether the whole value matches.
    #[inline] // requests call it: Cargo.toml
    pub fn matches(&self, value: &[u8]) -> bool {
        match self {
            Self::Exact(text) => value == text.as_bytes(),
            Self::Start(text) => value.starts_with(text.as_bytes()),
            Self::End(text) => value.ends_with(text.as_bytes()),
            Self::Part(text) => memchr::memmem::find(value, text.as_bytes()).is_some(),
        }
    }
}

impl FromStr for TextPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (begin, rest) = text.strip_prefix('*').map_or((false, text), |rest| (true, rest));
        let (end, inner) = rest.strip_suffix('*').map_or((false, rest), |rest| (true, rest));
        if inner.contains('*') {
            return Err(format!("in {text:?} a * may stand only at the beginning and at the end"));
        }
        if inner.chars().any(char::is_control) {
            return Err(format!("{text:?} has a control character, which no request can have there"));
        }
        let inner = inner.to_owned();
        Ok(match (begin, end) {
            (false, false) => Self::Exact(inner),
            (false, true) => Self::Start(inner),
            (true, false) => Self::End(inner),
            (true, true) => Self::Part(inner),
        })
    }
}

impl fmt::Display for TextPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(text) => f.write_str(text),
            Self::Start(text) => write!(f, "{text}*"),
            Self::End(text) => write!(f, "*{text}"),
            Self::Part(text) => write!(f, "*{text}*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters_at_the_ends_of_a_text() {
        for (pattern, value, expected) in [
            ("1", "1", true),
            ("1", "10", false),
            ("1", "", false),
            ("", "", true),
            ("Mozilla/*", "Mozilla/5.0", true),
            ("Mozilla/*", "mozilla/5.0", false),
            ("*bot", "Googlebot", true),
            ("*bot", "bots", false),
            ("*Firefox*", "Mozilla/5.0 Firefox/140.0", true),
            ("*Firefox*", "Mozilla/5.0", false),
            ("*", "", true),
            ("*", "x", true),
            ("**", "x", true),
        ] {
            let parsed: TextPattern = pattern.parse().unwrap();
            assert_eq!(parsed.matches(value.as_bytes()), expected, "{pattern} {value}");
        }
        assert!("a*b".parse::<TextPattern>().is_err());
        assert!("a\n".parse::<TextPattern>().is_err());
    }

    #[test]
    fn a_missing_value_meets_only_false() {
        let of = |text: &str| Wanted::OneOf(vec![text.parse().unwrap()]);
        assert!(!of("*").is_met(None) && of("*").is_met(Some(b"")));
        assert!(Wanted::There(false).is_met(None) && !Wanted::There(false).is_met(Some(b"")));
        assert!(!Wanted::There(true).is_met(None) && Wanted::There(true).is_met(Some(b"")));
    }
}
