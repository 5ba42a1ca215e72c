//! Renders the reference from the schema: `config.md` and `hostler.schema.json`. Knows no key by name but how
//! pools are named.

use std::fmt::Write;

use serde_json::Value;

use super::document::KeyPath;
use super::{schema, source};

/// A configuration that shows the usual keys; the reference contains it, and a test loads it.
pub const EXAMPLE: &str = include_str!("example.toml");

const INTRODUCTION: &str = include_str!("reference.md");

/// The JSON Schema of the file.
pub fn json_schema() -> String {
    format!("{:#}\n", schema::of_file())
}

/// The reference for people.
pub fn markdown() -> String {
    let schema = schema::of_file();
    let mut text = format!("{INTRODUCTION}\n## Example\n\n```toml\n{EXAMPLE}```\n");
    for section in sections(schema) {
        render(&section, &mut text);
    }
    text
}

struct Section<'a> {
    title: String,
    /// In variables, where they can be used.
    path: Option<KeyPath>,
    /// Of the key that holds the section.
    description: &'a str,
    table: &'a Value,
}

/// The tables of the file, each behind the one that holds it.
fn sections(root: &Value) -> Vec<Section<'_>> {
    let mut found = Vec::new();
    for (key, value) in properties(root) {
        let (title, path, table) = match (schema::free_names(value), value.get("items")) {
            (Some(pool), _) => (format!("{key}.NAME"), Some(KeyPath::of(key).key("NAME")), pool),
            (_, Some(item)) => (format!("[{key}]"), None, item),
            _ => (key.to_string(), Some(KeyPath::of(key)), value),
        };
        add_section(Section { title, path, description: description(value), table }, &mut found);
    }
    found
}

fn add_section<'a>(section: Section<'a>, found: &mut Vec<Section<'a>>) {
    let outer = section.title.trim_matches(['[', ']']).to_string();
    let inner: Vec<_> = properties(section.table)
        .filter(|(_, value)| is_section(value))
        .map(|(key, value)| Section {
            title: format!("{outer}.{key}"),
            path: section.path.as_ref().map(|path| path.key(key)),
            description: description(value),
            table: value,
        })
        .collect();
    found.push(section);
    inner.into_iter().for_each(|inner| add_section(inner, found));
}

fn is_section(value: &Value) -> bool {
    !schema::known_keys(value).is_empty()
}

fn render(section: &Section<'_>, text: &mut String) {
    let Section { title, path, description, table } = section;
    let heading = format!("\n## `[{title}]`\n\n{description}\n\n");
    let columns = match path {
        Some(_) => "| key | type | default | variable | meaning |\n|---|---|---|---|---|\n",
        None => "| key | type | default | meaning |\n|---|---|---|---|\n",
    };
    text.push_str(&heading);
    text.push_str(columns);
    for key in schema::known_keys(table) {
        let Some(value) = schema::property(table, key) else { continue };
        if is_section(value) && !["string", "boolean"].iter().any(|other| schema::takes(value, other)) {
            continue;
        }
        let variable =
            path.as_ref().map_or(String::new(), |path| format!(" `{}` |", source::variable(&path.key(key))));
        let cells = [format!("`{key}`"), kind(value), default(value)].map(|cell| cell.replace('|', "\\|"));
        let meaning = meaning(value).replace('|', "\\|");
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {} |{variable} {meaning} |", cells.join(" | "));
    }
}

fn kind(value: &Value) -> String {
    if let Some(kind) = text_of(value, "x-kind") {
        return kind.into();
    }
    let choices: Vec<_> =
        schema::choices(value).iter().map(|(choice, _)| format!("`\"{choice}\"`")).collect();
    if !choices.is_empty() {
        return choices.join(" or ");
    }
    match (value.get("items"), schema::free_names(value)) {
        (Some(item), _) => format!("list of: {}", kind(item)),
        (_, Some(entry)) => format!("table of: {}", kind(entry)),
        _ => match value.get("type") {
            Some(Value::Array(several)) => {
                several.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
            }
            one => one.and_then(Value::as_str).unwrap_or_default().into(),
        },
    }
}

/// Words are the schema's own; a value is shown as it would be written in the file.
fn default(value: &Value) -> String {
    match (text_of(value, "x-default"), value.get("default")) {
        (Some(words), _) => words.into(),
        (None, Some(default)) if default.as_object().is_some_and(serde_json::Map::is_empty) => "`{}`".into(),
        (None, Some(default)) => format!("`{default}`"),
        (None, None) => String::new(),
    }
}

fn meaning(value: &Value) -> String {
    let described = schema::choices(value).into_iter().filter(|(_, text)| !text.is_empty());
    let choices: String = described.map(|(choice, text)| format!("<br>`\"{choice}\"`: {text}")).collect();
    format!("{}{choices}", description(value))
}

fn properties(table: &Value) -> impl Iterator<Item = (&String, &Value)> {
    table.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn description(value: &Value) -> &str {
    text_of(value, "description").unwrap_or_default()
}

fn text_of<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}
