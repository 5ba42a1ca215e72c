//! The definition in `file` as a tree (a JSON Schema) that is walked by key: which keys exist and which values each takes. Knows no
//! document.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::Value;

use super::document::{KeyPath, PathStep};
use super::file::File;

static OF_FILE: LazyLock<Value> = LazyLock::new(|| {
    let settings =
        SchemaSettings::draft07().for_deserialize().with(|settings| settings.inline_subschemas = true);
    settings.with_transform(Tidy).into_generator().into_root_schema_for::<File>().to_value()
});

/// The JSON Schema of the whole file, without references.
pub fn of_file() -> &'static Value {
    &OF_FILE
}

/// Adapts the schema to TOML, and its texts to readers.
#[derive(Clone)]
struct Tidy;

impl Transform for Tidy {
    fn transform(&mut self, schema: &mut schemars::Schema) {
        transform_subschemas(self, schema);
        // TOML has no null. The default of a section is the defaults of its keys.
        if schema.get("default").is_some_and(Value::is_null) || schema.get("properties").is_some() {
            schema.remove("default");
        }
        if let Some(text) = schema.get("description").and_then(Value::as_str) {
            let paragraphs: Vec<_> = text.split("\n\n").map(unwrapped).collect();
            schema.insert("description".into(), paragraphs.join("\n\n").into());
        }
    }
}

/// A paragraph of a doc comment on one line; in a list, each item on one line. The line breaks of a doc comment are those of this
/// source.
fn unwrapped(paragraph: &str) -> String {
    let mut text = String::new();
    for line in paragraph.lines().map(str::trim) {
        match (text.is_empty(), line.starts_with("- ")) {
            (true, _) => {}
            (_, true) => text.push('\n'),
            (_, false) => text.push(' '),
        }
        text.push_str(line);
    }
    text
}

/// The schema of a key of a table: a known key, or any name where the operator chooses names.
pub fn property<'a>(table: &'a Value, key: &str) -> Option<&'a Value> {
    let named = alternatives(table).find_map(|table| table.get("properties")?.get(key));
    named.or_else(|| free_names(table))
}

/// The schema of the values whose names the operator chooses, such as pools.
pub fn free_names(table: &Value) -> Option<&Value> {
    alternatives(table)
        .find_map(|table| table.get("additionalProperties").filter(|schema| schema.is_object()))
}

/// The known keys of a table.
pub fn known_keys(table: &Value) -> Vec<&str> {
    let properties = alternatives(table).filter_map(|table| table.get("properties")?.as_object());
    properties.flat_map(|properties| properties.keys().map(String::as_str)).collect()
}

/// The texts that a value accepts, each with its description. Empty if it accepts others, too.
pub fn choices(value: &Value) -> Vec<(&str, &str)> {
    let plain = value.get("enum").and_then(Value::as_array).into_iter().flatten();
    let plain = plain.filter_map(|one| Some((one.as_str()?, "")));
    let described = value.get("oneOf").and_then(Value::as_array).into_iter().flatten().filter_map(|one| {
        let text = one.get("const")?.as_str()?;
        Some((text, one.get("description").and_then(Value::as_str).unwrap_or_default()))
    });
    plain.chain(described).collect()
}

/// Whether a value may be of this JSON type.
pub fn takes(value: &Value, wanted: &str) -> bool {
    alternatives(value).any(|value| is_of_type(value, wanted))
}

fn is_of_type(value: &Value, wanted: &str) -> bool {
    match value.get("type") {
        Some(Value::String(one)) => one == wanted,
        Some(Value::Array(several)) => several.iter().any(|one| one == wanted),
        _ => false,
    }
}

/// Whether a value may be any text, and not only one of a few words or of one form.
pub fn takes_any_text(value: &Value) -> bool {
    let is_any = |value: &Value| ["const", "enum", "pattern"].iter().all(|limit| value.get(limit).is_none());
    alternatives(value).any(|value| is_any(value) && is_of_type(value, "string"))
}

/// The schema of each item of a list.
pub fn item(value: &Value) -> Option<&Value> {
    alternatives(value).find_map(|value| value.get("items"))
}

/// The schema at a path.
pub fn at<'a>(schema: &'a Value, path: &KeyPath) -> Option<&'a Value> {
    path.0.iter().try_fold(schema, |schema, step| match step {
        PathStep::Key(key) => property(schema, key),
        PathStep::Index(_) => item(schema),
    })
}

fn alternatives(schema: &Value) -> impl Iterator<Item = &Value> {
    let branches = ["oneOf", "anyOf"].into_iter().filter_map(|word| schema.get(word)?.as_array()).flatten();
    [schema].into_iter().chain(branches)
}
