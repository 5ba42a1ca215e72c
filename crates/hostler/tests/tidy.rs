//! The rules that no compiler checks: dependencies between modules, openings and sizes of files, and what tests must not do.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::collections::{BTreeMap, BTreeSet};

use paths::used_modules;
use sources::{Broken, Source, all, sources};

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/gorouter.rs"]
mod gorouter;
#[path = "tidy/inside.rs"]
mod inside;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/openings.rs"]
mod openings;
#[path = "tidy/paths.rs"]
mod paths;
#[path = "tidy/picture.rs"]
mod picture;
#[path = "tidy/sources.rs"]
mod sources;
#[path = "tidy/words.rs"]
mod words;

/// The modules of the program, highest row first. A module may use the rows below its own, but no module of its own row or a higher one.
/// The crate `hostler-gorouter` counts as one module.
const ROWS: &[&[&str]] = &[
    &["main"],
    &["cli"],
    &["server"],
    &["listen", GOROUTER, "admin"],
    &["traces"],
    &["gateway"],
    &["route", "files", "proxy", "cache"],
    &["exchange", "journal", "html"],
];

/// All of the crate `hostler-gorouter`, in [`ROWS`].
const GOROUTER: &str = "hostler-gorouter";

/// The libraries, and which other libraries each may use. No library uses the program.
const LIBRARIES: &[(&str, &[&str])] = &[
    (
        "hostler_gorouter",
        &[
            "hostler_engine",
            "hostler_config",
            "hostler_coding",
            "hostler_dispatch",
            "hostler_address",
            "hostler_wire",
        ],
    ),
    (
        "hostler_engine",
        &[
            "hostler_native",
            "hostler_config",
            "hostler_worker",
            "hostler_coding",
            "hostler_dispatch",
            "hostler_cache",
            "hostler_address",
            "hostler_wire",
        ],
    ),
    (
        "hostler_native",
        &["hostler_config", "hostler_lookup", "hostler_cache", "hostler_address", "hostler_wire"],
    ),
    (
        "hostler_config",
        &[
            "hostler_address",
            "hostler_cache",
            "hostler_coding",
            "hostler_lookup",
            "hostler_worker",
            "hostler_wire",
        ],
    ),
    ("hostler_coding", &["hostler_wire"]),
    ("hostler_worker", &["hostler_dispatch"]),
    ("hostler_dispatch", &[]),
    ("hostler_cache", &["hostler_wire"]),
    ("hostler_wire", &[]),
    ("hostler_lookup", &[]),
    ("hostler_address", &[]),
    ("hostler_docs", &[]),
    ("hostler_testkit", &[]),
];

/// Types that share their name with another, each with the reason. A type of `config` may have the name of what it configures: it is used
/// as `config::Pool`.
const SAME_NAMES: &[(&str, &str)] = &[
    ("City", "a record of the geo database, or one of the postal codes: geo::City, postal::City"),
    ("Country", "as City"),
    ("Degrees", "as City"),
    ("Entry", "the same: the program's is the cache's with the program's head"),
    ("Postal", "the postal part of a geo record, and the postal service"),
    ("Region", "as City"),
];

/// A file's lines without its tests.
const MOST_LINES: usize = 400;

#[test]
fn no_module_uses_its_own_row_or_a_row_above() {
    let mut broken = Broken::default();
    for source in ["hostler", "hostler-gorouter", "hostler-engine"]
        .map(|name| sources(&format!("crates/{name}/src")))
        .concat()
    {
        let Some(own) = module(&source.path) else { continue };
        let Some(own_row) = row(own) else {
            broken.at(&source, 1, format_args!("module {own} has no row in tests/tidy.rs"));
            continue;
        };
        for (used, line) in used_modules(&source) {
            let allowed = used == own || row(&used).is_some_and(|row| row > own_row);
            if !allowed && row(&used).is_some() {
                broken.at(&source, line, format_args!("{own} must not know {used}"));
            }
        }
    }
    broken.check();
}

#[test]
fn libraries_use_only_libraries_below_them() {
    let mut broken = Broken::default();
    let crates: Vec<&str> = LIBRARIES.iter().map(|(library, _)| *library).chain(["hostler"]).collect();
    for (library, below) in LIBRARIES {
        let folder = format!("crates/{}/src", library.replace('_', "-"));
        let strangers: Vec<&str> =
            crates.iter().copied().filter(|other| other != library && !below.contains(other)).collect();
        for source in sources(&folder).iter().filter(|source| !source.is_test()) {
            let code = source.code().collect::<Vec<_>>();
            let tests_begin = source.without_tests().count();
            for (line, text) in code.into_iter().filter(|(line, _)| *line <= tests_begin) {
                let known = strangers.iter().filter(|other| names_crate(text, other));
                known.for_each(|other| {
                    broken.at(source, line, format_args!("{library} must not know {other}"))
                });
            }
        }
    }
    broken.check();
}

#[test]
fn every_file_begins_with_a_sentence_about_itself() {
    let mut broken = Broken::default();
    for source in all() {
        let first = source.text.lines().next().unwrap_or_default();
        let sentence = first.strip_prefix("//! ").unwrap_or_default();
        if !sentence.starts_with(|c: char| c.is_uppercase() || c == '`') || sentence.len() < 20 {
            broken.at(
                &source,
                1,
                format_args!("begin with `//! ` and a sentence: what it is, what it does not know"),
            );
        }
    }
    broken.check();
}

#[test]
fn no_file_is_too_long() {
    let mut broken = Broken::default();
    for source in all() {
        let lines = source.without_tests().count();
        if lines > MOST_LINES {
            broken.at(&source, lines, format_args!("{lines} lines without tests; the limit is {MOST_LINES}"));
        }
    }
    broken.check();
}

#[test]
fn no_test_sleeps_for_a_fixed_time() {
    // The two places that poll, both with a deadline.
    let polls = ["crates/hostler-testkit/src/eventually.rs", "crates/hostler-worker/tests/node/support.rs"];
    let mut broken = Broken::default();
    for source in all().into_iter().filter(|source| !polls.contains(&source.path.as_str())) {
        let tests_begin = match source.is_test() || source.path.starts_with("crates/hostler-testkit/") {
            true => 0,
            false => source.without_tests().count(),
        };
        // `fall_asleep(` is no sleep.
        let sleeps =
            |line: &str| line.replace("asleep(", "").contains("sleep(") && !line.contains("\"sleep(");
        for (line, _) in source.code().filter(|(line, text)| *line > tests_begin && sleeps(text)) {
            broken.at(
                &source,
                line,
                format_args!("a test must not sleep: use a paused clock or `eventually`"),
            );
        }
    }
    broken.check();
}

#[test]
fn a_type_name_is_defined_once() {
    let mut broken = Broken::default();
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    let mut shared: BTreeSet<&str> = BTreeSet::new();
    let is_looked_at = |source: &Source| {
        let in_config = source.path.starts_with("crates/hostler-config/src/");
        source.path.contains("/src/") && !source.is_test() && !in_config
    };
    for source in sources("crates").into_iter().filter(is_looked_at) {
        for (line, text) in source.without_tests() {
            let Some(name) = defined_type(text) else { continue };
            let Some(first) = known.insert(name.into(), source.path.clone()) else { continue };
            match SAME_NAMES.iter().find(|(allowed, _)| *allowed == name) {
                Some((allowed, _)) => drop(shared.insert(allowed)),
                None => {
                    broken.at(&source, line, format_args!("{name} is the name of a type in {first} as well"))
                }
            }
        }
    }
    broken.check();
    let is_needless = |(name, _): &&(&str, &str)| !shared.contains(name);
    let needless: Vec<_> = SAME_NAMES.iter().filter(is_needless).collect();
    assert!(needless.is_empty(), "these names are used once: {needless:?}");
}

#[test]
fn no_unfinished_code_and_no_glob_import_remains() {
    let mut broken = Broken::default();
    // Written in two parts, so that this file does not contain it.
    let words = ["todo!", "unimplemented!", "#[ignore", "dbg!"]
        .map(|word| format!("{word}{}", if word.ends_with('!') { "(" } else { "" }));
    for source in all().into_iter().filter(|source| !source.path.ends_with("tests/tidy.rs")) {
        for (line, text) in source.code() {
            words.iter().filter(|word| text.contains(word.as_str())).for_each(|word| {
                broken.at(&source, line, format_args!("`{word}` has no place in the repository"));
            });
        }
        for (line, text) in source.without_tests().filter(|_| !source.is_test()) {
            if text.trim() == "use super::*;" {
                broken.at(&source, line, format_args!("say what is used; `use super::*` is for tests"));
            }
        }
    }
    broken.check();
}

/// The type that a line at the outermost level defines.
fn defined_type(line: &str) -> Option<&str> {
    let rest = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => line,
    };
    let kinds = ["struct ", "enum ", "trait ", "type "];
    let name = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    Some(first_word(name))
}

/// The top module of a file of the program or its engine, or [`GOROUTER`]. None for the root of a library.
fn module(path: &str) -> Option<&str> {
    if path.starts_with("crates/hostler-gorouter/src/") {
        return Some(GOROUTER);
    }
    let inside = path
        .strip_prefix("crates/hostler/src/")
        .or_else(|| path.strip_prefix("crates/hostler-engine/src/"))?;
    let first = inside.split('/').next()?;
    Some(first.strip_suffix(".rs").unwrap_or(first)).filter(|module| *module != "lib")
}

fn row(module: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&module))
}

fn first_word(text: &str) -> &str {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

fn names_crate(line: &str, name: &str) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(&format!("{name}::")).any(|(at, _)| !is_word(line[..at].chars().next_back()))
}

#[test]
fn each_rule_finds_its_violation() {
    assert_eq!(module("crates/hostler/src/listen/client.rs"), Some("listen"));
    assert_eq!(module("crates/hostler/src/main.rs"), Some("main"));
    assert_eq!(module("crates/hostler-gorouter/src/nats/mod.rs"), Some(GOROUTER));
    assert!(
        names_crate("use hostler_wire::Head;", "hostler_wire")
            && !names_crate("xhostler_wire::a", "hostler_wire")
    );
    assert!(!names_crate("use hostler_wire::Head;", "hostler"));
    let lines = [
        "struct A;",
        "pub enum A {",
        "pub(super) struct A<T>(T);",
        "pub(in crate::x) type A = u8;",
        "trait A: B {",
    ];
    assert!(lines.iter().all(|line| defined_type(line) == Some("A")));
    assert_eq!(["    type A = B;", "// struct A", "impl A {"].map(defined_type), [None; 3]);
    assert!(sources("crates/hostler/src").len() > 20);
}
