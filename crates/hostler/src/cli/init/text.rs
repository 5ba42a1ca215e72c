//! Writes pools and routes as a commented configuration. Does not know where they come from.

use std::collections::BTreeSet;
use std::fmt::Write;

use hostler_config::file::Pool;
use hostler_config::{Period, SHELL_OPERATORS};
use hostler_engine::journal::{is_unsafe, on_one_line};

use super::found::{FoundFiles, FoundPool};

/// The widest comment.
const WIDTH: usize = 110;

/// The useful keys of a pool, with an example or the default, and when to set them.
fn more_keys() -> [(&'static str, String, &'static str); 8] {
    let default = Pool::default();
    let time = |time: Period| format!("\"{time}\"");
    [
        ("workers", "2".into(), "processes; the default is one for each core"),
        (
            "concurrency",
            "\"auto\"".into(),
            "requests of one worker at a time; 1 for an app that must not begin a second one",
        ),
        (
            "health",
            "\"/healthz\"".into(),
            "a path that answers 2xx when the app can serve; without it, listening is enough",
        ),
        ("warmup", "[\"/\"]".into(), "paths that each new worker gets before the requests of clients"),
        ("start_timeout", time(default.start_timeout), "the time for a worker to become ready"),
        ("stop_timeout", time(default.stop_timeout), "the time for a worker to end after SIGTERM"),
        ("request_timeout", time(default.request_timeout), "the time until a response begins"),
        (
            "max_memory",
            "\"1 GiB\"".into(),
            "Hostler replaces a worker that has more, for an app that leaks memory",
        ),
    ]
}

/// The text of the file. `listed` names what was read. With a schema beside the file, an editor completes keys.
pub(super) fn file(pools: &[FoundPool], has_schema: bool) -> String {
    let names = names(pools);
    let mut text = String::new();
    if has_schema {
        text.push_str("#:schema ./hostler.schema.json\n\n");
    }
    comment(
        &mut text,
        "Written by hostler init. Lines with a # before a key are examples; remove the # to use one.",
    );
    comment(&mut text, "hostler check looks for mistakes in this file, and hostler start runs it.");
    if !has_schema {
        comment(
            &mut text,
            "So that an editor completes and explains all keys: hostler schema > hostler.schema.json,",
        );
        comment(&mut text, "and make this the first line of the file: #:schema ./hostler.schema.json");
    }
    server(&mut text);
    for (pool, name) in pools.iter().zip(&names) {
        if !pool.command.is_empty() {
            text.push('\n');
            pool_section(&mut text, pool, name);
        }
    }
    for (pool, name) in pools.iter().zip(&names) {
        routes(&mut text, pool, name);
    }
    text
}

fn server(text: &mut String) {
    text.push_str("\n[server]\n");
    line(text, "listen = \"127.0.0.1:8080\"", "for clients; \":8080\" is every address of this machine");
    line(
        text,
        "admin = \"127.0.0.1:8081\"",
        "for hostler status and the other commands; clients must not reach it",
    );
    line(text, "# access_log = \"pretty\"", "log lines for people; \"json\" for programs; \"off\" for none");
    line(
        text,
        "# trusted_proxies = [\"10.0.0.0/8\"]",
        "the load balancer in front of Hostler: its X-Forwarded-For counts",
    );
    line(text, "# health_path = \"/healthz\"", "Hostler answers health checks of a load balancer here");
}

fn pool_section(text: &mut String, pool: &FoundPool, name: &str) {
    comment(text, &capitalised(&pool.what));
    pool.found.iter().for_each(|found| comment(text, &format!("Found: {found}")));
    pool.open.iter().for_each(|open| comment(text, &format!("Look at this: {open}")));
    let _ = writeln!(text, "[pools.{name}]");
    // A string is split by the rules of a shell, so an argument with a space or a quote is easier to read in a list. Operators of a
    // shell are refused in a string.
    let is_plain = |word: &String| {
        !word.is_empty()
            && !word.contains([' ', '\'', '"', '\\', '#', '\n', '\t'])
            && !word.contains(SHELL_OPERATORS)
    };
    match pool.command.iter().all(is_plain) {
        true => line(text, &format!("command = {}", quoted(&pool.command.join(" "))), ""),
        false => {
            let words: Vec<_> = pool.command.iter().map(|word| quoted(word)).collect();
            line(text, &format!("command = [{}]", words.join(", ")), "");
        }
    }
    if let Some(cwd) = &pool.cwd {
        line(text, &format!("cwd = {}", quoted(cwd)), "");
    }
    environment(text, pool);
    for found in &pool.keys {
        line(text, &format!("{} = {}", found.key, found.value), &found.why);
    }
    for (key, value, why) in more_keys() {
        if pool.keys.iter().all(|found| found.key != key) {
            line(text, &format!("# {key} = {value}"), why);
        }
    }
}

fn environment(text: &mut String, pool: &FoundPool) {
    let mut env = pool.env.clone();
    env.entry("NODE_ENV".into()).or_insert_with(|| "production".into());
    let pairs: Vec<_> =
        env.iter().map(|(name, value)| format!("{} = {}", key(name), quoted(value))).collect();
    let short = format!("env = {{ {} }}", pairs.join(", "));
    match short.chars().count() <= WIDTH {
        true => line(text, &short, ""),
        // A table of its own would end the keys of the pool, so each variable is a dotted key.
        false => pairs.iter().for_each(|pair| line(text, &format!("env.{pair}"), "")),
    }
}

fn routes(text: &mut String, pool: &FoundPool, name: &str) {
    let has_pool = !pool.command.is_empty();
    let (host, path) = match pool.is_further {
        true => (format!("{}.localhost", host(name)), format!("{}.localhost/*", host(name))),
        false => (String::new(), "*".to_owned()),
    };
    let whole = pool.files.iter().find(|files| files.paths == "*");
    text.push('\n');
    if pool.is_further {
        comment(
            text,
            &format!(
                "Change this: the host or the path by which clients reach {name}, such as \"api.example.com\" or \"/api/*\"."
            ),
        );
    }
    if let Some(files) = whole {
        comment(text, &files.why);
    }
    text.push_str("[[routes]]\n");
    line(text, &format!("match = {}", quoted(&path)), "");
    if has_pool {
        line(text, &format!("pool = \"{name}\""), "");
    }
    if let Some(files) = whole {
        static_key(text, files, has_pool);
    } else {
        line(text, "# compress = true", "Hostler compresses what the app has not compressed");
    }
    if has_pool {
        line(text, "# max_body_size = \"10 MiB\"", "the longest body of a request");
    }
    for files in pool.files.iter().filter(|files| files.paths != "*") {
        text.push('\n');
        comment(text, &files.why);
        text.push_str("[[routes]]\n");
        line(text, &format!("match = {}", quoted(&format!("{host}{}", files.paths))), "");
        static_key(text, files, false);
        if let Some(prefix) = &files.strip_prefix {
            line(text, &format!("rewrite = {{ strip_prefix = {} }}", quoted(prefix)), "");
        }
        if let Some(except) = &files.except {
            text.push('\n');
            comment(text, "These files change without a new name: the app answers.");
            text.push_str("[[routes]]\n");
            line(text, &format!("match = {}", quoted(&format!("{host}{except}"))), "");
            line(text, &format!("pool = \"{name}\""), "");
        }
    }
}

fn static_key(text: &mut String, files: &FoundFiles, app_follows: bool) {
    let mut keys = vec![format!("dir = {}", quoted(&files.dir))];
    if app_follows {
        keys.push("index = \"\"".into());
    }
    keys.extend(files.fallback.iter().map(|page| format!("fallback = {}", quoted(page))));
    keys.extend(files.not_found.iter().map(|page| format!("not_found = {}", quoted(page))));
    keys.extend(files.immutable.iter().map(|paths| format!("immutable = [{}]", quoted(paths))));
    if files.precompressed {
        keys.push("precompressed = true".into());
    }
    line(text, &format!("static = {{ {} }}", keys.join(", ")), "");
    line(text, "compress = true", "");
}

/// A key with its comment. All comments begin in the same column, if they can.
fn line(text: &mut String, key: &str, why: &str) {
    let _ = match why {
        "" => writeln!(text, "{key}"),
        why => writeln!(text, "{key:<36}# {}", printable(why)),
    };
}

/// A comment, in lines of a readable width.
fn comment(text: &mut String, sentence: &str) {
    let mut width = 0;
    for word in printable(sentence).split_whitespace() {
        let long = width + word.chars().count() + 1 > WIDTH;
        if width == 0 || long {
            text.push_str(if width == 0 { "# " } else { "\n#   " });
            width = 4;
        } else {
            text.push(' ');
        }
        text.push_str(word);
        width += word.chars().count() + 1;
    }
    text.push('\n');
}

/// On one line, and without characters that TOML does not allow in a comment.
fn printable(text: &str) -> String {
    on_one_line(text).collect()
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// A string of TOML. It comes from an app, and people read it in a terminal: it must not move the cursor, or show a command in another order.
fn quoted(text: &str) -> String {
    // The crate for TOML escapes control characters of ASCII only.
    if !text.contains(|char: char| !char.is_ascii() && is_unsafe(char)) {
        return toml::Value::String(text.into()).to_string();
    }
    let mut quoted = String::from("\"");
    for char in text.chars() {
        let _ = match char {
            '"' | '\\' => write!(quoted, "\\{char}"),
            char if is_unsafe(char) => write!(quoted, "\\u{:04X}", u32::from(char)),
            char => write!(quoted, "{char}"),
        };
    }
    quoted.push('"');
    quoted
}

/// A name of a variable as a key.
fn key(name: &str) -> String {
    let is_bare = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == '-';
    if !name.is_empty() && name.chars().all(is_bare) { name.to_owned() } else { quoted(name) }
}

/// The name of a pool as a part of a host name.
fn host(name: &str) -> String {
    name.to_ascii_lowercase().replace('_', "-").trim_matches('-').to_owned()
}

/// The names of the pools: letters, digits, `-` and `_`, and none of them twice.
fn names(pools: &[FoundPool]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let name = |pool: &FoundPool| {
        let char = |char: char| if char.is_ascii_alphanumeric() || char == '_' { char } else { '-' };
        let name: String = pool.name.chars().map(char).collect();
        let name = name.trim_matches(['-', '_']);
        if name.is_empty() { "app".to_owned() } else { name.to_owned() }
    };
    let mut names = Vec::new();
    for pool in pools {
        let name = name(pool);
        let free = (2..).map(|number| format!("{name}-{number}"));
        let free = [name.clone()].into_iter().chain(free).find(|name| taken.insert(host(name)));
        names.push(free.unwrap_or(name));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_an_app_cannot_move_the_cursor_or_reorder_the_line() {
        let text = "a \"b\\ \u{9b}2J\u{202e}\né €";
        let quoted = quoted(text);
        assert_eq!(quoted, r#""a \"b\\ \u009B2J\u202E\u000Aé €""#);
        let read: toml::Table = format!("key = {quoted}").parse().unwrap();
        assert_eq!(read["key"].as_str(), Some(text));
    }
}
