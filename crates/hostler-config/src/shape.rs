//! Compares a document with the schema: finds unknown keys and words, and suggests the nearest known one.

use serde_json::Value as Schema;
use toml::Value;

use super::document::{Document, KeyPath, PathStep};
use super::error::{Report, nearest};
use super::schema;

/// Reports what the schema does not know, and drops it from the document.
pub fn check(schema: &Schema, document: &mut Document, report: &mut Report) {
    let mut wrong = Vec::new();
    let root = Value::Table(document.values().clone());
    compare(schema, &root, &KeyPath::default(), &mut wrong);
    // From the back, so that an index still means the same item as when it was noted.
    for (path, problem) in wrong.into_iter().rev() {
        let path_written = document.original(&path);
        match problem {
            Problem::UnknownKey(help) => {
                report.error(document.place_of_key(&path), format!("unknown key \"{path_written}\"{help}"));
            }
            Problem::UnknownChoice(help) => {
                report.error(document.place_of_value(&path), format!("{path_written}: {help}"));
            }
        }
        document.drop_value(&path);
    }
}

enum Problem {
    UnknownKey(String),
    UnknownChoice(String),
}

fn compare(schema: &Schema, value: &Value, path: &KeyPath, wrong: &mut Vec<(KeyPath, Problem)>) {
    match value {
        Value::Table(table) if schema::takes(schema, "object") => {
            for (key, value) in table {
                match schema::property(schema, key) {
                    Some(schema) => compare(schema, value, &path.key(key), wrong),
                    None => {
                        let help =
                            below(schema, key, path).unwrap_or_else(|| help(schema, key, &path.key(key)));
                        wrong.push((path.key(key), Problem::UnknownKey(help)));
                    }
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let here = path.index(index);
                if let Some(schema) = schema::at(schema, &KeyPath::default().index(index)) {
                    compare(schema, item, &here, wrong);
                }
            }
        }
        Value::String(text) => {
            let choices: Vec<&str> = schema::choices(schema).into_iter().map(|(choice, _)| choice).collect();
            if !choices.is_empty() && !choices.contains(&text.as_str()) {
                wrong.push((path.clone(), Problem::UnknownChoice(no_choice(text, &choices))));
            }
        }
        _ => {}
    }
}

/// A key of a section that was written above all sections: `listen` is `server.listen`. Sections with names of their own, such as pools, have no such key.
fn below(root: &Schema, key: &str, path: &KeyPath) -> Option<String> {
    if *path != KeyPath::default() {
        return None;
    }
    let mut sections = schema::known_keys(root);
    // Most keys that are meant are of the server.
    sections.sort_by_key(|section| *section != "server");
    let has_key = |section: &&str| {
        schema::property(root, section).is_some_and(|section| schema::known_keys(section).contains(&key))
    };
    sections.into_iter().find(has_key).map(|section| format!("; did you mean \"{section}.{key}\"?"))
}

/// Keys of PM2, Passenger, nginx and HAProxy that operators bring along: the section in which they write them, and what to say. The nearest key by its letters
/// may be a wrong one: `max_restarts` looks like `max_requests`.
const OF_OTHER_PROGRAMS: [(&str, &str, &str); 42] = [
    ("pools", "script", "did you mean \"command\"?"),
    ("pools", "args", "the arguments are part of command"),
    (
        "pools",
        "node_args",
        "the options are part of command, such as \"node --max-old-space-size=512 server.js\"",
    ),
    ("pools", "interpreter", "the program is the first word of command, such as \"node server.js\""),
    ("pools", "env_production", "did you mean \"env\"?"),
    ("pools", "env_file", "Node reads such a file: command = \"node --env-file=.env server.js\""),
    ("pools", "instances", "did you mean \"workers\"?"),
    ("pools", "min_instances", "did you mean \"workers\"?"),
    ("pools", "max_instances", "did you mean \"workers\"?"),
    ("pools", "max_pool_size", "did you mean \"workers\"?"),
    ("pools", "replicas", "did you mean \"workers\"?"),
    ("pools", "processes", "did you mean \"workers\"?"),
    (
        "pools",
        "exec_mode",
        "leave it out: workers is the number of processes, and all of them have one queue",
    ),
    ("pools", "wait_ready", "did you mean \"health\"?"),
    ("pools", "health_path", "did you mean \"health\"?"),
    ("pools", "listen_timeout", "did you mean \"start_timeout\"?"),
    ("pools", "kill_timeout", "did you mean \"stop_timeout\"?"),
    ("pools", "timeout", "did you mean \"request_timeout\"?"),
    ("pools", "max_memory_restart", "did you mean \"max_memory\"?"),
    ("pools", "memory", "did you mean \"max_memory\"?"),
    ("pools", "max_restarts", "leave it out: Hostler starts a worker again without a limit"),
    ("pools", "autorestart", "leave it out: Hostler starts a worker again without a limit"),
    ("pools", "cron_restart", "leave it out: a cron job may run hostler restart"),
    ("pools", "watch", "leave it out: hostler run --watch is for development"),
    ("pools", "user", "leave it out: workers have the user of Hostler"),
    ("pools", "servers", "did you mean \"members\"?"),
    ("pools", "maxconn", "did you mean \"concurrency\"?"),
    ("pools", "balance", "did you mean \"choice\"?"),
    ("routes", "location", "did you mean \"match\"?"),
    ("routes", "path", "did you mean \"match\"?"),
    ("routes", "host", "did you mean \"match\"? It has the host and the path"),
    ("routes", "proxy_pass", "did you mean \"pool\"?"),
    ("routes", "root", "did you mean \"static\"?"),
    ("routes", "timeout", "did you mean \"request_timeout\"?"),
    ("routes", "headers", "did you mean \"request_headers\" or \"response_headers\"?"),
    ("routes", "strip_prefix", "write rewrite = { strip_prefix = \"...\" }"),
    ("server", "client_max_body_size", "did you mean \"max_body_size\"?"),
    ("server", "port", "did you mean \"listen\"?"),
    ("server", "host", "did you mean \"listen\"?"),
    ("server", "tls", "it is a section of its own: [tls]"),
    ("server", "log", "it is a section of its own: [log]"),
    ("server", "user", "leave it out: Hostler has the user that starts it"),
];

fn of_another_program(path: &KeyPath) -> Option<String> {
    let (section, key) = match &*path.0 {
        [PathStep::Key(section), _, PathStep::Key(key)] if section == "pools" || section == "routes" => {
            (section, key)
        }
        [PathStep::Key(section), PathStep::Key(key)] if section == "server" => (section, key),
        _ => return None,
    };
    let mut all = OF_OTHER_PROGRAMS.iter();
    let (.., help) = all.find(|(home, name, _)| section == home && key == name)?;
    Some(format!("; {help}"))
}

fn help(table: &Schema, key: &str, path: &KeyPath) -> String {
    if let Some(help) = of_another_program(path) {
        return help;
    }
    let known = schema::known_keys(table);
    let homes = if is_in_section(path) { homes(schema::of_file(), key) } else { Vec::new() };
    let of_others = || format!("; it is a key of {}", homes.join(" and "));
    // A key of another section is meant more often than one of this section with other letters. The name of a section may be misspelled.
    if path.0.len() > 1 && !homes.is_empty() {
        return of_others();
    }
    if let Some(near) = nearest(key, known.iter().copied()) {
        return format!("; did you mean \"{near}\"?");
    }
    match homes.is_empty() {
        true => format!("; the keys of this table are {}", known.join(", ")),
        false => of_others(),
    }
}

/// Whether a key is directly in a section such as `[server]`, `[pools.web]` or `[[routes]]`, and not in a table of it.
fn is_in_section(path: &KeyPath) -> bool {
    match &*path.0 {
        [_] | [_, _] => true,
        [PathStep::Key(section), _, _] => section == "pools" || section == "routes",
        _ => false,
    }
}

/// The sections with this key, as they are written.
fn homes(root: &Schema, key: &str) -> Vec<String> {
    let has_key = |table: Option<&Schema>| table.is_some_and(|it| schema::known_keys(it).contains(&key));
    let home = |section: &str| {
        let written = schema::property(root, section)?;
        match () {
            () if has_key(Some(written)) => Some(format!("[{section}]")),
            () if has_key(schema::free_names(written)) => Some(format!("[{section}.NAME]")),
            () if has_key(schema::item(written)) => Some(format!("[[{section}]]")),
            () => None,
        }
    };
    schema::known_keys(root).into_iter().filter_map(home).collect()
}

fn no_choice(text: &str, choices: &[&str]) -> String {
    let all = choices.iter().map(|choice| format!("\"{choice}\"")).collect::<Vec<_>>().join(", ");
    match nearest(text, choices.iter().copied()) {
        Some(near) => format!("\"{text}\" is not one of {all}; did you mean \"{near}\"?"),
        None => format!("\"{text}\" is not one of {all}"),
    }
}
