//! The Early Hints of a route, as written. Knows no responses.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use hostler_wire::WebLink;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;

use crate::value::one_string;

/// The relations that a browser acts on before the page has come (HTML, "early hints").
const RELATIONS: [&[u8]; 4] = [b"preload", b"modulepreload", b"preconnect", b"dns-prefetch"];
/// A 103 has at most so many links.
const MOST_LINKS: usize = 16;

/// Whether a browser acts on a link of this relation before the page has come.
#[inline] // requests call it: Cargo.toml
pub fn is_hinted(relation: &[u8]) -> bool {
    RELATIONS.iter().any(|hinted| relation.eq_ignore_ascii_case(hinted))
}

/// Which links Hostler sends ahead of the response: in short, or a table with settings.
#[derive(Clone, Debug, PartialEq)]
pub enum EarlyHints {
    /// The links, with the defaults of the table.
    Short(EarlyHintLinks),
    /// Links and settings.
    Table(EarlyHintsTable),
}

/// Which links Hostler sends ahead of the response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct EarlyHintsTable {
    /// The links: `"learn"`, or a list.
    #[schemars(with = "EarlyHintLinks", extend("x-default" = "required"))]
    pub links: Option<EarlyHintLinks>,
    /// Whether HTTP/1.1 clients get them, too.
    ///
    /// Browsers use Early Hints over HTTP/2 only, and some HTTP/1.1 programs take a 103 for the response. Set it if a proxy in front
    /// speaks HTTP/1.1 to Hostler, HTTP/2 to browsers, and is known to pass a 103 on.
    pub http1: bool,
}

/// The links of Early Hints.
#[derive(Clone, Debug, PartialEq)]
pub enum EarlyHintLinks {
    /// Those that the last responses of the route had in common.
    Learn,
    /// These.
    List(Vec<HintedLink>),
}

/// One link in the form of a `Link` field.
#[derive(Clone, Debug, PartialEq)]
pub struct HintedLink(pub String);

impl FromStr for HintedLink {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(link) = WebLink::only(text.as_bytes()) else {
            return Err(format!("{text:?} is not one link such as \"</app.css>; rel=preload; as=style\""));
        };
        if !link.relations().any(is_hinted) {
            return Err(format!("{text:?} has no rel of preload, modulepreload, preconnect or dns-prefetch"));
        }
        Ok(Self(String::from_utf8_lossy(link.text).into_owned()))
    }
}

impl fmt::Display for HintedLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

one_string!(HintedLink, kind: "link", expects: "a link such as \"</app.css>; rel=preload; as=style\"");

impl EarlyHintLinks {
    const EXPECTS: &str = "\"learn\" or a list of links";

    fn of_text<E: Error>(text: &str) -> Result<Self, E> {
        match text {
            "learn" => Ok(Self::Learn),
            _ => Err(E::custom(format!("{text:?} is not {}", Self::EXPECTS))),
        }
    }

    fn of_list<'de, A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        let links = Vec::deserialize(SeqAccessDeserializer::new(list))?;
        match links.len() {
            ..=MOST_LINKS => Ok(Self::List(links)),
            many => Err(A::Error::custom(format!("there are {many} links; {MOST_LINKS} are allowed"))),
        }
    }

    fn schemas() -> [serde_json::Value; 2] {
        [
            json!({ "type": "string", "enum": ["learn"] }),
            json!({ "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": MOST_LINKS }),
        ]
    }
}

impl<'de> Deserialize<'de> for EarlyHintLinks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = EarlyHintLinks;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EarlyHintLinks::EXPECTS)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<EarlyHintLinks, E> {
                EarlyHintLinks::of_text(text)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<EarlyHintLinks, A::Error> {
                EarlyHintLinks::of_list(list)
            }
        }
        deserializer.deserialize_any(Visit)
    }
}

impl Serialize for EarlyHintLinks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Learn => serializer.serialize_str("learn"),
            Self::List(links) => links.serialize(serializer),
        }
    }
}

impl JsonSchema for EarlyHintLinks {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "`\"learn\"` or list of links".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "oneOf": Self::schemas(), "x-kind": "`\"learn\"` or list of links" })
    }
}

impl<'de> Deserialize<'de> for EarlyHints {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = EarlyHints;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}, or a table", EarlyHintLinks::EXPECTS)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<EarlyHints, E> {
                EarlyHintLinks::of_text(text).map(EarlyHints::Short)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<EarlyHints, A::Error> {
                EarlyHintLinks::of_list(list).map(EarlyHints::Short)
            }
            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<EarlyHints, A::Error> {
                EarlyHintsTable::deserialize(MapAccessDeserializer::new(table)).map(EarlyHints::Table)
            }
        }
        deserializer.deserialize_any(Visit)
    }
}

impl Serialize for EarlyHints {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Short(links) => links.serialize(serializer),
            Self::Table(table) => table.serialize(serializer),
        }
    }
}

impl JsonSchema for EarlyHints {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "`\"learn\"`, list of links or table".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<EarlyHintsTable>();
        let one_of: Vec<_> = EarlyHintLinks::schemas().into_iter().chain([json!(table)]).collect();
        json_schema!({ "oneOf": one_of, "x-kind": "`\"learn\"`, list of links or table" })
    }
}
