//! Renders the reference from the schema: `config.md` and `hostler.schema.json`. Knows no keys, except that pools have names.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::Value;

use super::document::KeyPath;
use super::{schema, source};

/// A longer default stands below the table.
const LONGEST_DEFAULT: usize = 60;

/// A configuration with the usual keys. The reference contains it, and a test loads it.
pub const EXAMPLE: &str = include_str!("example.toml");

const INTRODUCTION: &str = include_str!("reference.md");

/// The JSON Schema of the file.
pub fn json_schema() -> String {
    format!("{:#}\n", schema::of_file())
}

/// The reference for people.
pub fn markdown() -> String {
    let schema = schema::of_file();
    let sections = sections(schema);
    let contents: String = sections.iter().map(content_line).collect();
    let mut text = format!("{INTRODUCTION}\n{contents}\n## Example\n\n```toml\n{EXAMPLE}```\n");
    let mut written = Details::new();
    for section in &sections {
        render(section, &mut written, &mut text);
    }
    text
}

/// A line of the table of contents.
fn content_line(section: &Section<'_>) -> String {
    let Section { title, description, .. } = section;
    let link = anchor(title.trim_matches(['[', ']']));
    format!("- [`[{title}]`](#{link}): {}\n", first_paragraph(description))
}

/// Details that are written already, with the key under which they stand: sections such as the two of `compress` share them.
type Details = HashMap<String, String>;

struct Section<'a> {
    title: String,
    /// The path in the names of variables. `None`: the keys have no variables.
    path: Option<KeyPath>,
    /// The description of the key that holds the section.
    description: &'a str,
    table: &'a Value,
}

/// The tables of the file, each after the table that holds it.
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

fn render(section: &Section<'_>, written: &mut Details, text: &mut String) {
    let Section { title, path, description, table } = section;
    let columns = match path {
        Some(_) => "| key | type | default | variable | meaning |\n|---|---|---|---|---|\n",
        None => "| key | type | default | meaning |\n|---|---|---|---|\n",
    };
    // Writing to a String cannot fail.
    let _ = write!(text, "\n## `[{title}]`\n\n{description}\n\n{columns}");
    let mut below = String::new();
    for key in schema::known_keys(table) {
        let Some(value) = schema::property(table, key) else { continue };
        let holds_keys = is_section(value);
        let name = format!("{}.{key}", title.trim_matches(['[', ']']));
        if holds_keys && !["string", "boolean"].iter().any(|other| schema::takes(value, other)) {
            let variable = if path.is_some() { " |" } else { "" };
            let (meaning, link) = (summary(value), anchor(&name));
            let _ = writeln!(text, "| `{key}` | table | |{variable} {meaning} [Keys](#{link}) |");
            continue;
        }
        let place = match details(value) {
            // The section has the same text.
            _ if holds_keys => Some(name),
            None => None,
            Some(details) => Some(match written.get(&details) {
                Some(other) => other.clone(),
                None => {
                    let _ = write!(below, "\n### `{name}`\n\n{details}\n");
                    written.insert(details, name.clone());
                    name
                }
            }),
        };
        let link = place.map_or(String::new(), |name| format!(" [Details](#{})", anchor(&name)));
        let variable =
            path.as_ref().map_or(String::new(), |path| format!(" `{}` |", source::variable(&path.key(key))));
        let default = if is_long(value) { "see details".into() } else { default(value) };
        let cells = [format!("`{key}`"), kind(value), default].map(|cell| cell.replace('|', "\\|"));
        let meaning = summary(value).replace('|', "\\|");
        let _ = writeln!(text, "| {} |{variable} {meaning}{link} |", cells.join(" | "));
    }
    text.push_str(&below);
}

/// The anchor that GitHub makes of a heading.
fn anchor(heading: &str) -> String {
    heading.to_ascii_lowercase().replace('.', "")
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

/// The default in words if the schema has words for it, otherwise the value as in the file.
fn default(value: &Value) -> String {
    match (text_of(value, "x-default"), value.get("default")) {
        (Some(words), _) => words.into(),
        (None, Some(default)) if default.as_object().is_some_and(serde_json::Map::is_empty) => "`{}`".into(),
        (None, Some(default)) => format!("`{default}`"),
        (None, None) => String::new(),
    }
}

/// Whether the default is a value that does not fit into a cell of the table.
fn is_long(value: &Value) -> bool {
    text_of(value, "x-default").is_none() && default(value).len() > LONGEST_DEFAULT
}

/// The first paragraph of the description, for the table.
fn summary(value: &Value) -> &str {
    first_paragraph(description(value))
}

fn first_paragraph(text: &str) -> &str {
    text.split("\n\n").next().unwrap_or_default()
}

/// The whole text about a key, for the part below the table. `None` if the table has all of it.
fn details(value: &Value) -> Option<String> {
    let choices: Vec<_> = schema::choices(value)
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(choice, text)| format!("- `\"{choice}\"`: {text}"))
        .collect();
    let default = is_long(value).then(|| format!("Default: {}", default(value)));
    let more = [choices.join("\n"), default.unwrap_or_default()];
    let parts: Vec<&str> =
        [description(value), &more[0], &more[1]].into_iter().filter(|part| !part.is_empty()).collect();
    let all = parts.join("\n\n");
    (all != summary(value)).then_some(all)
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
