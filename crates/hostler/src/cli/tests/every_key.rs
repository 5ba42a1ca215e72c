//! Every key of the reference, as a flag, by `--set` and as a variable: it says what it says in the file. The keys and what they
//! take come from the schema, so that a new key is tried without a change here.

use std::collections::BTreeMap;
use std::path::Path;

use hostler_config::file::File;
use hostler_config::{self as config, Invocation, LoadContext, reference};
use serde_json::Value as Schema;
use toml::{Table, Value};

use super::{Args, Command};

/// The only pool there is.
const POOL: &str = "web";
/// Texts, of which every key that takes text takes one at least.
const TEXTS: [&str; 20] = [
    "200-399",
    "7s",
    "0s",
    "64 KiB",
    "64 MiB",
    "127.0.0.1:7",
    "[::1]:7",
    "10.0.0.0/8",
    "/x,y",
    "https://example.com",
    "example.com",
    "nats://127.0.0.1:7",
    "text/html",
    "true",
    "auto",
    "0-1 2",
    "client",
    "prefetch",
    "p99",
    "3%",
];
/// As many values of each key are tried.
const ENOUGH: usize = 2;

/// A value and, for one that is put together of others, what it tries.
type Sample = (String, Value);

#[test]
fn every_key_can_be_set_by_flag_by_set_and_by_variable() {
    let schema: Schema = serde_json::from_str(&reference::json_schema()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut keys = BTreeMap::new();
    collect(&schema, &[], &mut keys);
    let mut wrong = Vec::new();
    let mut tried = BTreeMap::<&str, usize>::new();
    let unset = toml::from_str::<File>(&format!("pools.{POOL} = {{}}\n")).unwrap();
    for (key, schema) in &keys {
        let values = values_that_a_file_takes(key, schema);
        // A key that is passed over would look like one that is set to its default.
        if values
            .iter()
            .all(|value| toml::from_str::<File>(&text(key, value)).is_ok_and(|file| file == unset))
        {
            wrong.push(format!(
                "{key}: no text of this test is a new value of it; add one to TEXTS: {schema}"
            ));
        }
        for value in values {
            *tried.entry(value.type_str()).or_default() += 1;
            wrong.extend(differences(folder.path(), key, &value));
        }
    }
    assert!(wrong.is_empty(), "{} differ from the file:\n{}", wrong.len(), wrong.join("\n"));
    for kind in ["boolean", "integer", "string", "array", "table"] {
        assert!(tried.get(kind).is_some_and(|count| *count > 5), "few of {kind}: {tried:?}");
    }
    assert!(keys.contains_key("server.http2") && keys.contains_key("pools.web.tls.verify"), "{keys:?}");
}

/// All keys that are no mere sections, by their names joined with dots.
fn collect<'a>(schema: &'a Schema, path: &[&str], keys: &mut BTreeMap<String, &'a Schema>) {
    if path == ["pools"] {
        collect(&schema["additionalProperties"], &["pools", POOL], keys);
        return;
    }
    if schema["properties"].is_null() {
        keys.insert(path.join("."), schema);
    }
    for (key, below) in alternatives(schema).into_iter().flat_map(properties) {
        collect(below, &[path, &[key]].concat(), keys);
    }
}

fn alternatives(schema: &Schema) -> Vec<&Schema> {
    let branches = ["oneOf", "anyOf"].into_iter().filter_map(|word| schema[word].as_array()).flatten();
    [schema].into_iter().chain(branches).collect()
}

fn properties(schema: &Schema) -> impl Iterator<Item = (&str, &Schema)> {
    schema["properties"].as_object().into_iter().flatten().map(|(key, below)| (key.as_str(), below))
}

/// A few values of each kind that are right for the file.
fn values_that_a_file_takes(key: &str, schema: &Schema) -> Vec<Value> {
    let mut counts = BTreeMap::<String, usize>::new();
    let mut taken: Vec<Value> = Vec::new();
    for (tries, value) in samples(schema) {
        let count = counts.entry(format!("{tries} {}", value.type_str())).or_default();
        if *count < ENOUGH && !taken.contains(&value) && toml::from_str::<File>(&text(key, &value)).is_ok() {
            *count += 1;
            taken.push(value);
        }
    }
    taken
}

fn samples(schema: &Schema) -> Vec<Sample> {
    let mut found = Vec::new();
    found.extend(Value::try_from(&schema["default"]).ok().map(|value| (String::new(), value)));
    for one in alternatives(schema) {
        found.extend(words(one).into_iter().map(|word| (String::new(), word)));
        let types = one["type"].as_array().map_or_else(|| vec![&one["type"]], |types| types.iter().collect());
        for kind in types.into_iter().filter_map(Schema::as_str) {
            found.extend(of_type(kind, one));
        }
    }
    found
}

fn words(schema: &Schema) -> Vec<Value> {
    let words = schema["enum"].as_array().into_iter().flatten().chain([&schema["const"]]);
    words.filter_map(Schema::as_str).map(|word| Value::String(word.into())).collect()
}

fn of_type(kind: &str, schema: &Schema) -> Vec<Sample> {
    let plain = |values: Vec<Value>| values.into_iter().map(|value| (String::new(), value)).collect();
    match kind {
        "boolean" => plain(vec![Value::Boolean(false), Value::Boolean(true)]),
        "integer" => {
            let bounds = [schema["minimum"].as_i64(), schema["maximum"].as_i64(), Some(7)];
            plain(bounds.into_iter().flatten().map(Value::Integer).collect())
        }
        "number" => plain([0.5, 1.5].map(Value::Float).into()),
        "string" => plain(TEXTS.map(|text| Value::String(text.into())).into()),
        "array" => lists(&schema["items"]),
        "object" => tables(schema),
        other => panic!("a type without samples: {other}"),
    }
}

fn lists(item: &Schema) -> Vec<Sample> {
    let lists = samples(item).into_iter().flat_map(|(tries, value)| {
        let twice =
            (!value.is_table()).then(|| (tries.clone(), Value::Array(vec![value.clone(), value.clone()])));
        [(tries, Value::Array(vec![value]))].into_iter().chain(twice)
    });
    [(String::new(), Value::Array(Vec::new()))].into_iter().chain(lists).collect()
}

/// One of each entry, with what must be there.
fn tables(schema: &Schema) -> Vec<Sample> {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Schema::as_str).collect();
    let needed: Table = required.iter().map(|key| ((*key).to_owned(), Value::String("/x".into()))).collect();
    let free = schema["additionalProperties"].is_object().then(|| &schema["additionalProperties"]);
    let entries = properties(schema).chain(free.into_iter().flat_map(|free| [("404", free), ("A_b", free)]));
    entries
        .flat_map(|(key, below)| {
            let needed = needed.clone();
            samples(below).into_iter().map(move |(tries, value)| {
                let mut table = needed.clone();
                table.insert(key.into(), value);
                (format!("{key} {tries}"), Value::Table(table))
            })
        })
        .collect()
}

/// The file, with nothing else but the pool.
fn text(key: &str, value: &Value) -> String {
    let whole = key
        .split('.')
        .rev()
        .fold(value.clone(), |below, name| Value::Table([(name.to_owned(), below)].into_iter().collect()));
    let Value::Table(mut whole) = whole else { unreachable!("a key has a name") };
    let pools = whole.entry("pools").or_insert_with(|| Value::Table(Table::new())).as_table_mut().unwrap();
    pools.entry(POOL).or_insert_with(|| Value::Table(Table::new()));
    toml::to_string(&whole).unwrap()
}

/// How the value can be written outside of a file.
fn spellings(value: &Value) -> Vec<String> {
    let Value::Array(items) = value else {
        return vec![value.as_str().map_or_else(|| value.to_string(), str::to_owned)];
    };
    let mut spellings = vec![value.to_string()];
    let plain: Option<Vec<String>> = items.iter().map(|item| spell_plainly(item, items.len())).collect();
    spellings.extend(plain.filter(|plain| !plain.is_empty()).map(|plain| plain.join(", ")));
    spellings
}

/// An item of a list between commas; none if it cannot be one.
fn spell_plainly(item: &Value, items: usize) -> Option<String> {
    let text = item.as_str().map_or_else(|| item.to_string(), str::to_owned);
    let is_scalar = !matches!(item, Value::Array(_) | Value::Table(_));
    (is_scalar && !text.contains(',') && (items > 1 || !text.starts_with('{'))).then_some(text)
}

/// Ways in which the value means something else than in the file.
fn differences(folder: &Path, key: &str, value: &Value) -> Vec<String> {
    let in_the_file = read(folder, &text(key, value), &[], None).unwrap();
    let mut wrong = Vec::new();
    // A command's words are not between commas: its text is one command line.
    let is_command = key.ends_with(".command");
    for spelling in spellings(value).into_iter().take(if is_command { 1 } else { 2 }) {
        let dashed = key.replace('_', "-");
        let flag = [format!("--{dashed}"), spelling.clone()];
        let set = ["--set".into(), format!("{key}={spelling}")];
        let variable = format!("HOSTLER_{}", key.replace('.', "_").to_ascii_uppercase());
        let base = format!("pools.{POOL} = {{}}\n");
        let ways = [
            (format!("--{dashed} {spelling}"), read(folder, &base, &flag, None)),
            (format!("--set {key}={spelling}"), read(folder, &base, &set, None)),
            (format!("{variable}={spelling}"), read(folder, &base, &[], Some((&variable, &spelling)))),
        ];
        for (way, outcome) in ways {
            match outcome {
                Ok(file) if file == in_the_file => {}
                Ok(_) => wrong.push(format!("{way}: something else")),
                Err(error) => wrong.push(format!("{way}: {error}")),
            }
        }
    }
    wrong
}

/// What is written, in all; an error or a warning if there is one.
fn read(folder: &Path, text: &str, flags: &[String], variable: Option<(&str, &str)>) -> Result<File, String> {
    std::fs::write(folder.join("hostler.toml"), text).unwrap();
    let load_context = LoadContext {
        environment: variable.map(|(name, text)| (name.to_owned(), text.to_owned())).into_iter().collect(),
        folder: folder.into(),
        temp_dir: folder.into(),
        cores: 1,
        cpus: None,
        open_files: None,
        soft_open_files: None,
        memory: None,
        has_ipv6: true,
        workers_before: Default::default(),
    };
    let words = ["hostler".to_owned(), "start".into()].into_iter().chain(flags.iter().cloned());
    let args = Args::parse_given(words).map_err(|error| error.to_string())?;
    let Command::Start(start) = args.command else { panic!("{args:?}") };
    let invocation: Invocation = start.invocation(load_context);
    match config::written(&invocation).map_err(|errors| errors.to_string())? {
        (file, warnings) if warnings.is_empty() => Ok(file),
        (_, warnings) => Err(warnings.join("; ")),
    }
}
