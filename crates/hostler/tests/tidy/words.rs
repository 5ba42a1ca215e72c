//! One word for one thing: the glossary of ARCHITECTURE.md, and the fields of the status and the log that the guide explains.

use std::collections::{BTreeMap, BTreeSet};

use super::defined_type;
use super::sources::{Source, root, sources};

/// The pages that explain the fields of the status and of the log.
const PAGES: &[&str] = &[
    "docs/guide/seeing.md",
    "docs/guide/caching.md",
    "docs/guide/deploys.md",
    "docs/guide/lookups.md",
    "docs/guide/router.md",
    "docs/guide/advice.md",
];

/// Structures that are written as JSON elsewhere, and where: their fields are no words of the status or the log.
const OTHER_JSON: &[(&str, &str)] = &[
    ("LiveFrame", "an event of the live page, which is its only reader"),
    ("PoolPicture", "an event of the live page, which is its only reader"),
    ("LanePicture", "an event of the live page, which is its only reader"),
    ("EndedPicture", "an event of the live page, which `hostler top` reads, too"),
    ("HistorySample", "an event of the live page, which is its only reader"),
    ("PoolSample", "an event of the live page, which is its only reader"),
    ("Mark", "an event of the live page, which is its only reader"),
    ("RouteTimes", "an event of the live page, which is its only reader"),
    ("LiveStatus", "an event of the live page, which is its only reader"),
    ("FetchMark", "an item in memcached"),
    ("LogPosition", "an item in memcached"),
    ("Freshness", "an item in memcached"),
    ("Vary", "an item in memcached"),
    ("Selecting", "an item in memcached"),
    ("ItemMeta", "an item in memcached"),
    ("Written", "the list of purges in memcached"),
    ("PurgeRecord", "the list of purges in memcached"),
    ("OwnRegistration", "a registration over NATS, in Cloud Foundry's words"),
    ("Tags", "a registration over NATS, in Cloud Foundry's words"),
    ("Message", "router.start over NATS, in Cloud Foundry's words"),
    ("MemberView", "GET /routes, in gorouter's words"),
    ("MemberRow", "GET /table, whose columns `hostler routes` shows"),
    ("Answered", "the answer to an admin command, for `hostler` itself"),
    ("Problem", "a refusal as problem details, in the words of RFC 9457"),
    ("CallNode", "the page with the flame graph, for its script"),
    ("ProfiledFunction", "the page with the flame graph, for its script"),
    ("ToldName", "an announced name, from one Hostler to its successor"),
    ("Purpose", "a listening socket, from one Hostler to its successor"),
    ("Stamped", "has its content's fields, and `time`"),
    ("Kinded", "has its content's fields, and `event`"),
];

/// A structure that is written as JSON.
struct Written {
    name: String,
    path: String,
    fields: Vec<String>,
}

#[test]
fn every_field_of_the_status_and_the_log_is_explained() {
    let words = explained();
    let mut missing = Vec::new();
    let mut others = BTreeSet::new();
    for Written { name, path, fields } in written() {
        if OTHER_JSON.iter().any(|(other, _)| *other == name) {
            others.insert(name);
            continue;
        }
        let unknown = fields.iter().filter(|field| !words.contains(*field));
        missing.extend(unknown.map(|field| format!("{path}: `{field}` of {name}")));
    }
    assert!(missing.is_empty(), "{PAGES:?} do not explain:\n{}", missing.join("\n"));
    let gone: Vec<_> = OTHER_JSON.iter().filter(|(name, _)| !others.contains(*name)).collect();
    assert!(gone.is_empty(), "no such structure is written any more: {gone:?}");
}

#[test]
fn a_word_of_the_glossary_means_one_thing() {
    let words = glossary();
    assert!(words.len() > 40, "{words:?}");
    let mut seen = BTreeSet::new();
    let twice: Vec<_> = words.iter().filter(|word| !seen.insert(*word)).collect();
    assert!(twice.is_empty(), "in the glossary twice: {twice:?}");
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for Source { path, text } in program() {
        for line in text.lines() {
            let Some(name) = defined_type(line) else { continue };
            // The same thing under the same name, with the program's parameters.
            if line.contains(&format!("::{name}<")) {
                continue;
            }
            if let Some(word) = words.iter().find(|word| *word == name) {
                places.entry(word).or_default().push(path.clone());
            }
        }
    }
    places.retain(|_, paths| paths.len() > 1);
    assert!(places.is_empty(), "one word for two types: {places:#?}");
}

/// All words in code spans of the pages.
fn explained() -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for page in PAGES {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        let outside_blocks = text.split("```").step_by(2);
        let spans = outside_blocks.flat_map(|part| part.split('`').skip(1).step_by(2));
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        for span in spans {
            words.extend(span.split(|c| !is_word(c)).filter(|word| !word.is_empty()).map(str::to_owned));
        }
    }
    words
}

/// The words of the glossary, each by itself.
fn glossary() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let table = text.split("## Words").nth(1).unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")).skip(1);
    let cells = rows.filter_map(|row| row.split(" |").next());
    cells.flat_map(|cell| cell.split(", ")).map(|word| word.trim().to_owned()).collect()
}

/// All structures of the program that derive `Serialize`.
fn written() -> Vec<Written> {
    let mut found = Vec::new();
    for Source { path, text } in
        program().filter(|source| !source.path.starts_with("crates/hostler-testkit/"))
    {
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if !(line.starts_with("#[derive(") && line.contains("Serialize")) {
                continue;
            }
            let Some(head) = lines.by_ref().find(|line| !line.starts_with("#[")) else { break };
            let Some(name) = defined_type(head).filter(|_| head.contains("struct ") && head.ends_with('{'))
            else {
                continue;
            };
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "}").collect();
            found.push(Written { name: name.into(), path: path.clone(), fields: fields(&body) });
        }
    }
    assert!(found.len() > 40, "{}", found.len());
    found
}

/// The names of fields as they are written: renamed, and without those that are skipped or flattened.
fn fields(body: &[&str]) -> Vec<String> {
    let mut names = Vec::new();
    let (mut renamed, mut is_left_out) = (None, false);
    for line in body.iter().map(|line| line.trim()) {
        if let Some(attribute) = line.strip_prefix("#[serde(") {
            let quoted = |text: &str| text.split('"').nth(1).map(str::to_owned);
            renamed = attribute.split_once("rename = ").and_then(|(_, rest)| quoted(rest)).or(renamed);
            let words: Vec<&str> = attribute.split([',', '(', ')', ']', ' ']).collect();
            is_left_out |= words.contains(&"skip") || words.contains(&"flatten");
        } else if let Some((name, _)) = line.split_once(": ").filter(|_| !line.starts_with("//")) {
            let name = name.split(' ').next_back().unwrap_or(name);
            let name = renamed.take().unwrap_or_else(|| name.to_owned());
            if !std::mem::take(&mut is_left_out) {
                names.push(name);
            }
        }
    }
    names
}

/// The sources of all crates, without tests and without the configuration: what it defines is the same thing as it is written.
fn program() -> impl Iterator<Item = Source> {
    let is_looked_at = |source: &Source| {
        let in_config = source.path.starts_with("crates/hostler-config/");
        source.path.contains("/src/") && !source.is_test() && !in_config
    };
    sources("crates").into_iter().filter(is_looked_at)
}

#[test]
fn fields_and_words_are_found() {
    let body = [
        "    /// A thing: here.",
        "    pub name: Arc<str>,",
        "    #[serde(rename = \"uptime_ms\", serialize_with = \"milliseconds\")]",
        "    pub(super) uptime: Duration,",
        "    #[serde(flatten)]",
        "    pub queue: Snapshot,",
        "    #[serde(skip)]",
        "    pub unseen: u8,",
        "    #[serde(skip_serializing_if = \"Option::is_none\")]",
        "    pub seen: Option<u8>,",
    ];
    assert_eq!(fields(&body), ["name", "uptime_ms", "seen"]);
    assert!(explained().contains("queue_wait_ms"));
}
