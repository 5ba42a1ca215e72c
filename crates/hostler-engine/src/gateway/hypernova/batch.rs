//! A Hypernova batch as the client wrote it. Tokens, names and data keep their JSON text, so nothing is lost that JavaScript can read.
//! Knows no markup.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Each job of a few bytes is answered with some hundred bytes, so their number is limited. A page has far fewer islands.
const MAX_JOBS: usize = 10_000;

/// Jobs by token, in the order in which the tokens first appear.
pub(super) struct Batch<'a>(pub Vec<(Token<'a>, Job<'a>)>);

/// The client's name for a job.
pub(super) struct Token<'a> {
    /// A JSON string.
    pub json: Cow<'a, str>,
    pub text: JsonText,
}

#[derive(Default)]
pub(super) struct Job<'a> {
    /// Any JSON. A string is the component's name.
    pub name: Option<&'a RawValue>,
    /// Any JSON.
    pub data: Option<&'a RawValue>,
}

/// The value of a JSON string in UTF-8. A half of a surrogate pair, which JavaScript allows, is kept.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct JsonText(pub Vec<u8>);

impl<'a> Batch<'a> {
    /// Reads an object or an array. The tokens of an array are `"0"`, `"1"`, ...
    pub fn parse(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }
}

impl Job<'_> {
    pub fn component(&self) -> Option<JsonText> {
        self.name.and_then(|name| JsonText::of(name.get()).ok())
    }
}

impl JsonText {
    fn of(json: &str) -> serde_json::Result<Self> {
        serde_json::from_str(json)
    }
}

impl<'de> Deserialize<'de> for Batch<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Jobs)
    }
}

struct Jobs;

impl<'de> Visitor<'de> for Jobs {
    type Value = Batch<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "up to {MAX_JOBS} jobs, in an object or an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut jobs: Vec<(Token<'de>, Job<'de>)> = Vec::new();
        let mut places: HashMap<JsonText, usize> = HashMap::new();
        while let Some((json, job)) = map.next_entry::<&RawValue, Job>()? {
            let text = JsonText::of(json.get()).map_err(A::Error::custom)?;
            match places.get(&text) {
                // Like `JSON.parse`: the position of the first, the value of the last.
                Some(&place) => jobs[place].1 = job,
                None => {
                    places.insert(text.clone(), jobs.len());
                    jobs.push((Token { json: json.get().into(), text }, job));
                }
            }
            at_most(jobs.len())?;
        }
        Ok(Batch(jobs))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut jobs = Vec::new();
        while let Some(job) = list.next_element()? {
            let index = jobs.len().to_string();
            let json = format!("\"{index}\"").into();
            jobs.push((Token { json, text: JsonText(index.into_bytes()) }, job));
            at_most(jobs.len())?;
        }
        Ok(Batch(jobs))
    }
}

fn at_most<E: Error>(jobs: usize) -> Result<(), E> {
    if jobs <= MAX_JOBS { Ok(()) } else { Err(E::invalid_length(jobs, &Jobs)) }
}

impl<'de> Deserialize<'de> for Job<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // Read as raw text first: serde_json does that without recursion, however deep the nesting is.
        let text = <&RawValue>::deserialize(from)?.get();
        let is_object = text.starts_with('{');
        let fields = if is_object {
            serde_json::from_str(text).map_err(D::Error::custom)?
        } else {
            JobFields::default()
        };
        Ok(fields.0)
    }
}

/// The fields of a job that is an object. A job of another type has no fields.
#[derive(Default)]
struct JobFields<'a>(Job<'a>);

impl<'de> Deserialize<'de> for JobFields<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Self::default())
    }
}

impl<'de> Visitor<'de> for JobFields<'de> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a job")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            match JsonText::of(key.get()).map_err(A::Error::custom)?.0.as_slice() {
                b"name" => self.0.name = Some(value),
                b"data" => self.0.data = Some(value),
                _ => {}
            }
        }
        Ok(self)
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // As bytes, because `String` would refuse half a surrogate pair.
        from.deserialize_bytes(Bytes)
    }
}

struct Bytes;

impl Visitor<'_> for Bytes {
    type Value = JsonText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<JsonText, E> {
        Ok(JsonText(bytes.to_vec()))
    }
}
