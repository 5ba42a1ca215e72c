//! Cloud Foundry's words stand in `hostler-gorouter`. The other files that have such a word are listed here, with the reason.

use std::collections::BTreeSet;

use crate::sources::{Broken, sources};

/// What Cloud Foundry calls its router and its fields, in lower case. `x-b3` is not here: tracing fields of that name come from Zipkin.
const WORDS: &[&str] = &["gorouter", "cloud foundry", "x-cf-", "x_cf_", "vcap"];

/// A file or a folder below `crates/`, and why it has such words.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "hostler-config/src/",
        "`[platform]`, `[registrar]` and `access_log` have values and defaults with these names",
    ),
    ("hostler-cache/src/policy/vary.rs", "the list of request ids that differ in each request"),
    ("hostler-wire/src/trailer.rs", "the list of fields that a proxy sets"),
    ("hostler-engine/src/journal/line.rs", "a field of the access log has this name"),
    ("hostler/src/admin/front.rs", "the help of the admin listener names the form of two answers"),
    ("hostler/src/cli/args.rs", "the help of `--log` lists the formats"),
    ("hostler/src/cli/refusals.rs", "adds the section of registered routes to the page"),
    ("hostler/src/server/announce.rs", "starts the announcement"),
    ("hostler/src/server/mod.rs", "`access_log` has this value"),
    ("hostler/src/server/registrar.rs", "starts the registrar"),
    ("hostler/src/server/tables.rs", "has the routes that the registrar serves"),
];

#[test]
fn cloud_foundrys_words_stand_in_one_crate() {
    let mut broken = Broken::default();
    let mut needed = BTreeSet::new();
    let is_looked_at = |path: &str| path.contains("/src/") && !path.starts_with("crates/hostler-gorouter/");
    for source in sources("crates").into_iter().filter(|source| is_looked_at(&source.path)) {
        let inside = source.path.trim_start_matches("crates/");
        for (line, text) in source.without_tests().filter(|_| !source.is_test()) {
            let text = text.to_lowercase();
            let Some(word) = WORDS.iter().find(|word| text.contains(**word)) else { continue };
            match ELSEWHERE.iter().find(|(place, _)| inside.starts_with(place)) {
                Some((place, _)) => drop(needed.insert(*place)),
                None => broken.at(&source, line, format_args!("`{word}` belongs into hostler-gorouter")),
            }
        }
    }
    broken.check();
    let needless: Vec<_> = ELSEWHERE.iter().filter(|(place, _)| !needed.contains(place)).collect();
    assert!(needless.is_empty(), "these have no such word any more: {needless:?}");
}
