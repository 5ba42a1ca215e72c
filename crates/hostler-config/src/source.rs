//! Adds flags and environment variables to the document of the file. A flag comes before a variable, a variable before the file. Knows
//! keys only through the schema.

use std::collections::BTreeMap;

use serde_json::Value as Schema;
use toml::Value;

use super::admin_token::VARIABLE as ADMIN_TOKEN;
use super::document::{Document, KeyPath, PathStep};
use super::error::{Report, SourcePlace, nearest};
use super::schema;

/// One key that is set on the command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The key with dots. `-` may stand for `_`.
    pub key: String,
    /// Its value.
    pub given: Given,
    /// Its name in errors, such as `--listen`.
    pub name: String,
}

/// A value that is not TOML.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// Text, which is read as the key's type.
    Text(String),
    /// A text that begins with a bracket is not always a list: `[::1]:8080`.
    List(Vec<String>),
}

/// Adds variables to the file, and flags to both.
pub fn overlay(
    schema: &Schema,
    document: &mut Document,
    environment: &BTreeMap<String, String>,
    settings: &[Setting],
    report: &mut Report,
) {
    let flags: Vec<_> = settings.iter().map(|setting| (key_path(schema, &setting.key), setting)).collect();
    let pools = pool_names(document, flags.iter().map(|(path, _)| path));
    let variables = variables(schema, &pools);
    for (name, text) in environment.iter().filter(|(name, _)| is_ours(name)) {
        match find_variable(&variables, name).as_slice() {
            [path] => set(schema, document, path, &Given::Text(text.clone()), name, report),
            [] if is_of_kubernetes(name, text) => {}
            [] => warn_unknown(&variables, name, report),
            several => {
                let keys = several.iter().map(KeyPath::to_string).collect::<Vec<_>>().join(" and ");
                report.error(
                    SourcePlace::Named(name.clone()),
                    format!("ambiguous, it could mean {keys}; set the key in the file or with a flag"),
                );
            }
        }
    }
    for (path, setting) in &flags {
        set(schema, document, path, &setting.given, &setting.name, report);
    }
}

/// The environment variable of a key.
pub fn variable(path: &KeyPath) -> String {
    format!("HOSTLER_{path}").replace(['.', '-'], "_").to_ascii_uppercase()
}

/// Variables that are not settings. Hostler sets some for workers, and a Hostler that a worker starts has them, too. The others are for
/// Hostler's own tools and tests: `HOSTLER_BIN` names the program to them.
const OTHERS: [&str; 9] = [
    ADMIN_TOKEN,
    "HOSTLER_POOL",
    "HOSTLER_WORKER",
    "HOSTLER_GENERATION",
    "HOSTLER_CONTROL_PATH",
    "HOSTLER_APP_PORT",
    "HOSTLER_GIVEN_PORT",
    "HOSTLER_ANCESTORS",
    "HOSTLER_BIN",
];
/// Beginnings of such variables. `HOSTLER_PREDECESSOR` is from one Hostler to the next.
const OTHER_GROUPS: [&str; 4] =
    ["HOSTLER_LISTEN_", "HOSTLER_PREDECESSOR", "HOSTLER_CHAOS_", "HOSTLER_STORM_"];

fn is_ours(name: &str) -> bool {
    let is_other = OTHERS.contains(&name) || OTHER_GROUPS.iter().any(|group| name.starts_with(group));
    name.starts_with("HOSTLER_") && !is_other
}

/// Kubernetes sets such variables in each container for each Service of its namespace. One of the name `hostler` has `HOSTLER_SERVICE_HOST`,
/// `HOSTLER_PORT=tcp://10.0.0.1:80` and `HOSTLER_PORT_80_TCP_ADDR`.
fn is_of_kubernetes(name: &str, text: &str) -> bool {
    let is_address = name.contains("_PORT") && text.contains("://");
    is_address || ["_SERVICE_HOST", "_SERVICE_PORT", "_TCP_", "_UDP_"].iter().any(|part| name.contains(part))
}

fn set(
    schema: &Schema,
    document: &mut Document,
    path: &KeyPath,
    given: &Given,
    name: &str,
    report: &mut Report,
) {
    let value = match given {
        Given::List(items) => Ok(strings(items.iter().map(String::as_str))),
        Given::Text(text) => typed(schema::at(schema, path), text),
    };
    match value {
        Ok(value) => {
            if !document.set(path, value, name) {
                let why = "cannot be set alone, because the key above it is not a table; set that key as a whole, in TOML";
                report.error(SourcePlace::Named(name.into()), format!("{path}: {why}"));
            }
        }
        Err(why) => report.error(SourcePlace::Named(name.into()), format!("{path}: {why}")),
    }
}

/// Reads text as the type of the key: as TOML if that gives one of its types, as a list with commas, or as text. A key that accepts any
/// text gets the text as it is, because its own parser decides.
fn typed(schema: Option<&Schema>, text: &str) -> Result<Value, String> {
    let Some(schema) = schema else { return Ok(Value::String(text.into())) };
    let trimmed = text.trim();
    if is_toml_list(schema, trimmed) || (schema::takes(schema, "object") && trimmed.starts_with('{')) {
        return trimmed
            .parse()
            .map_err(|error: toml::de::Error| format!("not valid TOML: {}", error.message()));
    }
    let with_commas = schema.get("x-commas").is_some();
    if schema::takes(schema, "array") && (with_commas || !schema::takes(schema, "string")) {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        let items = items.map(|item| typed(schema::item(schema), item));
        return items.collect::<Result<_, _>>().map(Value::Array);
    }
    if schema::takes_any_text(schema) {
        return Ok(Value::String(text.into()));
    }
    match trimmed.parse::<Value>() {
        Ok(value) if schema::takes(schema, json_type(&value)) => Ok(value),
        _ if schema.get("type").is_some_and(|only| only == "boolean") => {
            Err(format!("{text:?} is neither true nor false"))
        }
        _ => Ok(Value::String(text.into())),
    }
}

/// A text that begins with a bracket is not always a list: `[::1]:8080`.
fn is_toml_list(schema: &Schema, text: &str) -> bool {
    let of_text = schema::item(schema).is_some_and(|item| schema::takes(item, "string"));
    schema::takes(schema, "array") && text.starts_with('[') && (text.ends_with(']') || !of_text)
}

/// The schema's name for the type of a value.
fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Boolean(_) => "boolean",
        Value::Integer(_) => "integer",
        Value::Float(_) => "number",
        Value::Array(_) => "array",
        Value::Table(_) => "object",
        Value::String(_) | Value::Datetime(_) => "string",
    }
}

fn strings<'a>(items: impl Iterator<Item = &'a str>) -> Value {
    Value::Array(items.map(|item| Value::String(item.into())).collect())
}

/// Only in keys `-` stands for `_`. Names that the operator chooses stay as they are.
fn key_path(schema: &Schema, dotted: &str) -> KeyPath {
    let mut here = Some(schema);
    let mut path = KeyPath::default();
    for word in dotted.split('.') {
        let free = here.is_some_and(|here| schema::free_names(here).is_some());
        let key = if free { word.to_string() } else { word.replace('-', "_") };
        here = here.and_then(|here| schema::property(here, &key));
        path = path.key(&key);
    }
    path
}

fn pool_names<'a>(document: &Document, flags: impl Iterator<Item = &'a KeyPath>) -> Vec<String> {
    let in_file = document.values().get("pools").and_then(Value::as_table);
    let mut names: Vec<String> = in_file.into_iter().flat_map(|pools| pools.keys().cloned()).collect();
    names.extend(flags.filter_map(|path| match path.0.as_slice() {
        [PathStep::Key(pools), PathStep::Key(name), _, ..] if pools == "pools" => Some(name.clone()),
        _ => None,
    }));
    names.sort();
    names.dedup();
    names
}

/// A variable that can be set.
struct Variable {
    name: String,
    path: KeyPath,
    /// Whether the operator chooses names below the key. Each of these has a variable, too.
    free: bool,
}

/// Every variable that can be set. One name means several keys if the names of pools differ only in `-`, `_` or case.
fn variables(schema: &Schema, pools: &[String]) -> Vec<Variable> {
    let mut found = Vec::new();
    collect(schema, &KeyPath::default(), pools, &mut found);
    found
}

fn collect(schema: &Schema, path: &KeyPath, pools: &[String], found: &mut Vec<Variable>) {
    let free = schema::free_names(schema);
    let is_pools = *path == KeyPath::of("pools");
    if let (true, Some(pool)) = (is_pools, free) {
        pools.iter().for_each(|name| collect(pool, &path.key(name), pools, found));
        return;
    }
    // A section that can also be one word has a variable itself.
    if schema.get("properties").is_none() {
        found.push(Variable { name: variable(path), path: path.clone(), free: free.is_some() });
    }
    for key in schema::known_keys(schema) {
        if let Some(below) = schema::property(schema, key) {
            collect(below, &path.key(key), pools, found);
        }
    }
}

fn find_variable(variables: &[Variable], name: &str) -> Vec<KeyPath> {
    let exact: Vec<_> =
        variables.iter().filter(|known| known.name == name).map(|known| known.path.clone()).collect();
    if !exact.is_empty() {
        return exact;
    }
    // HOSTLER_POOLS_WEB_ENV_NODE_ENV: one entry of a table whose names are free.
    let entry = |known: &Variable| {
        let rest = name.strip_prefix(known.name.as_str())?.strip_prefix('_')?;
        (known.free && !rest.is_empty()).then(|| known.path.key(rest))
    };
    variables.iter().filter_map(entry).collect()
}

fn warn_unknown(variables: &[Variable], name: &str, report: &mut Report) {
    let names = || variables.iter().map(|known| known.name.as_str());
    // Most keys that are meant are of the server, as in a file.
    let of_server = name.strip_prefix("HOSTLER_").map(|key| format!("HOSTLER_SERVER_{key}"));
    let of_server = of_server.and_then(|name| names().find(|known| *known == name));
    let help = match of_server.or_else(|| nearest(name, names())) {
        Some(near) => format!("; did you mean {near}?"),
        None => String::new(),
    };
    report.warn(SourcePlace::Named(name.into()), format!("unknown variable, ignored{help}"));
}
