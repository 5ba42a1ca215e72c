//! Writes facts in the formats for clients. Knows no requests.

use serde_json::{Map, Value, json};

use super::facts::{Fact, Field, GeoFacts};
use crate::form::{AnswerFormat, csv_cell, text_line, xml_text};

/// The selected facts about one address, with their fields.
pub(super) type FactList<'a> = Vec<(Field, Fact<'a>)>;

/// The facts about one item of a list, or the item and its error.
pub(super) type GeoReply<'a> = Result<FactList<'a>, (String, String)>;

/// The selected facts.
pub(super) fn said<'a>(facts: &'a GeoFacts<'_>, fields: &[Field], languages: &'a [&str]) -> FactList<'a> {
    fields.iter().map(|field| (*field, facts.get(*field, languages))).collect()
}

/// The facts about one address.
pub(super) fn one(said: &FactList<'_>, at: Option<(f64, f64)>, form: AnswerFormat) -> String {
    match form {
        AnswerFormat::Json | AnswerFormat::Lines => format!("{}\n", object(said)),
        AnswerFormat::GeoJson => format!("{}\n", feature(object(said), at)),
        AnswerFormat::Csv => {
            format!("{}\r\n{}\r\n", csv_head(said.iter().map(|(field, _)| *field)), csv_row(said))
        }
        AnswerFormat::Text => text(said),
        AnswerFormat::Xml => format!("{XML}{}", xml("geo", said)),
    }
}

/// The facts about each item of a list.
pub(super) fn many(
    all: &[(GeoReply<'_>, Option<(f64, f64)>)],
    fields: &[Field],
    form: AnswerFormat,
) -> String {
    let object_of = |told: &GeoReply<'_>| match told {
        Ok(said) => object(said),
        Err((item, why)) => json!({ "ip": item, "error": why }),
    };
    let objects = || all.iter().map(|(told, _)| object_of(told));
    match form {
        AnswerFormat::Json => format!("{}\n", Value::Array(objects().collect())),
        AnswerFormat::Lines => objects().map(|object| format!("{object}\n")).collect(),
        AnswerFormat::GeoJson => {
            let features = all.iter().map(|(told, at)| feature(object_of(told), *at));
            format!("{}\n", json!({ "type": "FeatureCollection", "features": features.collect::<Value>() }))
        }
        AnswerFormat::Csv => {
            let rows = all.iter().map(|(told, _)| match told {
                Ok(said) => format!("{},\r\n", csv_row(said)),
                Err((_, why)) => format!("{}{}\r\n", ",".repeat(fields.len()), csv_cell(why)),
            });
            format!("{},error\r\n{}", csv_head(fields.iter().copied()), rows.collect::<String>())
        }
        AnswerFormat::Text => {
            let blocks = all.iter().map(|(told, _)| match told {
                Ok(said) => text(said),
                Err((item, why)) => text_line("ip", item) + &text_line("error", why),
            });
            blocks.collect::<Vec<_>>().join("\n")
        }
        AnswerFormat::Xml => {
            let items = all.iter().map(|(told, _)| match told {
                Ok(said) => xml("geo", said),
                Err((item, why)) => {
                    format!("<geo>\n{}{}</geo>\n", element("ip", item), element("error", why))
                }
            });
            format!("{XML}<batch>\n{}</batch>\n", items.collect::<String>())
        }
    }
}

/// A JSON object, with tables as objects in it.
fn object(said: &FactList<'_>) -> Value {
    let mut all = Map::new();
    for (field, fact) in said {
        let value = match fact {
            Fact::Text(text) => json!(text),
            Fact::Degrees(degrees) => json!(degrees),
            Fact::Count(count) => json!(count),
            Fact::Truth(truth) => json!(truth),
            Fact::Unknown => Value::Null,
        };
        match field.in_table() {
            (None, name) => drop(all.insert(name.into(), value)),
            (Some(table), name) => {
                let inside = all.entry(table).or_insert_with(|| json!({}));
                inside[name] = value;
            }
        }
    }
    Value::Object(all)
}

/// A feature of RFC 7946. Without coordinates it has no geometry.
fn feature(properties: Value, at: Option<(f64, f64)>) -> Value {
    let geometry = at.map(|(lat, lng)| json!({ "type": "Point", "coordinates": [lng, lat] }));
    json!({ "type": "Feature", "geometry": geometry, "properties": properties })
}

/// The names of the columns.
fn csv_head(fields: impl Iterator<Item = Field>) -> String {
    fields.map(Field::name).collect::<Vec<_>>().join(",")
}

fn csv_row(said: &FactList<'_>) -> String {
    said.iter().map(|(_, fact)| csv_cell(&fact.to_string())).collect::<Vec<_>>().join(",")
}

fn text(said: &FactList<'_>) -> String {
    said.iter().map(|(field, fact)| text_line(field.name(), &fact.to_string())).collect()
}

const XML: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

fn xml(name: &str, said: &FactList<'_>) -> String {
    let mut out = format!("<{name}>\n");
    let mut open = None;
    for (field, fact) in said {
        let (table, name) = field.in_table();
        if open != table {
            out.extend(open.map(|table| format!("</{table}>\n")));
            out.extend(table.map(|table| format!("<{table}>\n")));
            open = table;
        }
        out.push_str(&element(name, &fact.to_string()));
    }
    out.extend(open.map(|table| format!("</{table}>\n")));
    out + &format!("</{name}>\n")
}

fn element(name: &str, text: &str) -> String {
    format!("<{name}>{}</{name}>\n", xml_text(text))
}
