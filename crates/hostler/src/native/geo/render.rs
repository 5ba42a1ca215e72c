//! Facts in the forms that clients read: JSON, CSV, XML, lines of text. Knows no requests.

use serde_json::{Map, Value, json};

use super::facts::{Fact, Facts, Field};

/// A form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    /// One JSON object a line, for lists.
    Lines,
    Csv,
    Xml,
    Text,
}

impl Form {
    /// What follows a dot at the end of a path.
    const SUFFIXES: [(&'static str, Self); 4] =
        [("json", Self::Json), ("csv", Self::Csv), ("xml", Self::Xml), ("txt", Self::Text)];

    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Lines => "application/x-ndjson",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Xml => "application/xml; charset=utf-8",
            Self::Text => "text/plain; charset=utf-8",
        }
    }

    /// The form of a type in `Accept`; none for one that is not had here.
    pub fn of_type(media: &[u8]) -> Option<Self> {
        match media.to_ascii_lowercase().as_slice() {
            b"application/json" | b"application/*" | b"*/*" => Some(Self::Json),
            b"application/x-ndjson" | b"application/ndjson" | b"application/jsonl" => Some(Self::Lines),
            b"text/csv" => Some(Self::Csv),
            b"application/xml" | b"text/xml" => Some(Self::Xml),
            b"text/plain" | b"text/*" => Some(Self::Text),
            _ => None,
        }
    }

    /// A path without the ending that names a form.
    pub fn split(path: &[u8]) -> (&[u8], Option<Self>) {
        let found = Self::SUFFIXES.iter().find_map(|(suffix, form)| {
            let rest = path.strip_suffix(suffix.as_bytes())?.strip_suffix(b".")?;
            Some((rest, Some(*form)))
        });
        found.unwrap_or((path, None))
    }
}

/// The facts about one address.
pub(super) fn one(facts: &Facts<'_>, fields: &[Field], languages: &[&str], form: Form) -> String {
    let said = fields.iter().map(|field| (*field, facts.get(*field, languages)));
    match form {
        Form::Json | Form::Lines => format!("{}\n", object(said)),
        Form::Csv => format!("{}{}", csv_head(fields), csv_row(said)),
        Form::Text => said.map(|(field, fact)| format!("{}: {fact}\n", field.name())).collect(),
        Form::Xml => xml(said),
    }
}

/// As a JSON object, tables in it.
pub(super) fn object<'a>(said: impl Iterator<Item = (Field, Fact<'a>)>) -> Value {
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

/// The names of columns.
pub(super) fn csv_head(fields: &[Field]) -> String {
    let names: Vec<_> = fields.iter().map(|field| field.name()).collect();
    format!("{}\r\n", names.join(","))
}

/// One row (RFC 4180).
pub(super) fn csv_row<'a>(said: impl Iterator<Item = (Field, Fact<'a>)>) -> String {
    let cells: Vec<_> = said.map(|(_, fact)| csv_cell(&fact.to_string())).collect();
    format!("{}\r\n", cells.join(","))
}

pub(super) fn csv_cell(text: &str) -> String {
    match text.contains(['"', ',', '\r', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

fn xml<'a>(said: impl Iterator<Item = (Field, Fact<'a>)>) -> String {
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<geo>\n".to_owned();
    let mut open = None;
    for (field, fact) in said {
        let (table, name) = field.in_table();
        if open != table {
            out.extend(open.map(|table| format!("</{table}>\n")));
            out.extend(table.map(|table| format!("<{table}>\n")));
            open = table;
        }
        out.push_str(&format!("<{name}>{}</{name}>\n", escaped(&fact.to_string())));
    }
    out.extend(open.map(|table| format!("</{table}>\n")));
    out + "</geo>\n"
}

/// Characters that XML cannot have at all are left out.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars().filter(|character| !character.is_control()) {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            other => out.push(other),
        }
    }
    out
}
