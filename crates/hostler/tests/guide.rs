//! Checks `docs/guide/failures.md` and `one-client.md`: each sentence must name a test that exists. Also checks that links between pages
//! lead to existing files.
//!
//! A sentence names tests by footnotes, `No client notices.[^name_of_the_test]`; this test writes after the
//! text where they are: `UPDATE=1 cargo test --workspace --test guide`.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const PAGES: [&str; 2] = ["docs/guide/failures.md", ONE_CLIENT];
const ONE_CLIENT: &str = "docs/guide/one-client.md";
const GENERATED: &str = "<!-- Generated; refresh with: UPDATE=1 cargo test --workspace --test guide -->\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A page: the text, and the generated footnotes after it.
fn read(page: &str) -> (String, String) {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    match text.split_once(GENERATED) {
        Some((written, generated)) => (written.to_owned(), generated.to_owned()),
        None => (text, String::new()),
    }
}

#[test]
fn every_sentence_of_the_pages_names_a_test() {
    for page in PAGES {
        let (written, _) = read(page);
        let mute: Vec<_> = paragraphs(&written).flat_map(|paragraph| mute_sentences(&paragraph)).collect();
        assert!(mute.is_empty(), "{page}: these name no test:\n{}", mute.join("\n"));
        assert!(paragraphs(&written).count() > 10, "{page} was not found, or is read wrongly");
    }
}

#[test]
fn every_test_that_the_pages_name_exists() {
    let tests = tests();
    for page in PAGES {
        let (written, generated) = read(page);
        let mut fresh = "\n".to_owned();
        let mut missing = Vec::new();
        for name in names(&written) {
            match tests.get(name) {
                Some(files) => {
                    let links: Vec<_> = files.iter().map(|file| format!("[{file}](../../{file})")).collect();
                    writeln!(fresh, "[^{name}]: `{name}` in {}", links.join(" and ")).unwrap();
                }
                None => missing.push(name),
            }
        }
        assert!(missing.is_empty(), "{page}: there are no tests of these names:\n{}", missing.join("\n"));
        if std::env::vars_os().any(|(name, _)| name == "UPDATE") {
            std::fs::write(root().join(page), format!("{written}{GENERATED}{fresh}")).unwrap();
        } else {
            let help = "refresh it with: UPDATE=1 cargo test --workspace --test guide";
            assert!(generated == fresh, "the list of tests in {page} is stale; {help}");
        }
    }
}

#[test]
fn every_limit_of_the_table_is_a_key_of_the_reference_with_that_default() {
    let reference = std::fs::read_to_string(root().join("docs/reference/config.md")).unwrap();
    let defaults = defaults(&reference);
    let (written, _) = read(ONE_CLIENT);
    let mut seen = 0;
    for line in written.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<_> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [_, key, default, _, _] = cells[..] else { panic!("five cells: {line}") };
        let Some(key) = key.strip_prefix('`').and_then(|key| key.strip_suffix('`')) else { continue };
        let known = defaults.get(key).unwrap_or_else(|| panic!("{ONE_CLIENT}: there is no key {key}"));
        assert_eq!(default, known, "{ONE_CLIENT}: the default of {key}");
        seen += 1;
    }
    assert!(seen > 20, "only {seen} limits were found");
}

/// The default of each key, from the reference.
fn defaults(reference: &str) -> BTreeMap<String, String> {
    let mut section = "";
    let mut defaults = BTreeMap::new();
    for line in reference.lines() {
        if let Some(title) = line.strip_prefix("## `[").and_then(|rest| rest.strip_suffix("]`")) {
            section = title.trim_matches(['[', ']']);
        }
        let cells: Vec<_> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        if let [key, _, default, ..] = cells[..] {
            defaults.insert(format!("{section}.{}", key.trim_matches('`')), default.to_owned());
        }
    }
    defaults
}

/// The paragraphs of a page, one line each, without headings, tables and configurations.
fn paragraphs(text: &str) -> impl Iterator<Item = String> {
    let is_prose =
        |part: &&str| !part.is_empty() && !["#", "|", "```"].iter().any(|sign| part.starts_with(sign));
    let prose = text.split("\n\n").map(str::trim).filter(is_prose);
    prose.map(|part| part.lines().map(str::trim).collect::<Vec<_>>().join(" "))
}

/// Sentences without a footnote, and footnotes that do not end a sentence.
fn mute_sentences(paragraph: &str) -> Vec<String> {
    let mut mute = Vec::new();
    let mut start = 0;
    for (at, _) in paragraph.match_indices(['.', '!', '?']) {
        let rest = &paragraph[at + 1..];
        if rest.is_empty() || rest.starts_with(' ') {
            mute.push(paragraph[start..=at].trim().to_owned());
        }
        if rest.is_empty() || rest.starts_with(' ') || rest.starts_with("[^") {
            start = paragraph.len() - behind_footnotes(rest).len();
        }
    }
    mute.extend(Some(paragraph[start..].trim().to_owned()).filter(|rest| !rest.is_empty()));
    mute
}

fn behind_footnotes(text: &str) -> &str {
    match text.strip_prefix("[^").and_then(|rest| rest.split_once(']')) {
        Some((_, rest)) => behind_footnotes(rest),
        None => text,
    }
}

/// The names in footnotes, each once, in the order of the page.
fn names(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for (at, opening) in text.match_indices("[^") {
        let name = text[at + opening.len()..].split(']').next().unwrap_or_default();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The files that define a test of this name.
fn tests() -> BTreeMap<String, Vec<String>> {
    let root = root();
    let mut files = Vec::new();
    collect(&root.join("crates"), "rs", &mut files);
    files.sort();
    let mut tests: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let path = file.strip_prefix(&root).unwrap().to_str().unwrap();
        for name in tests_in(&text) {
            tests.entry(name).or_default().push(path.to_owned());
        }
    }
    tests
}

/// Functions with a test attribute.
fn tests_in(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        let function = line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn "));
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let (true, Some(rest)) = (is_test, function) {
            found.extend(rest.split('(').next().map(str::to_owned));
            is_test = false;
        }
    }
    found
}

fn collect(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, ending, found);
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
        }
    }
}

/// All pages whose links are checked.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec!["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
        .into_iter()
        .map(|page| root().join(page))
        .collect();
    ["docs", "protocol"].iter().for_each(|folder| collect(&root().join(folder), "md", &mut pages));
    pages
}

#[test]
fn every_link_of_a_page_leads_to_a_file_of_the_repository() {
    let pages = pages();
    let mut dead = Vec::new();
    for page in &pages {
        let text = std::fs::read_to_string(page).unwrap();
        let broken = links(&text).filter(|link| !page.parent().unwrap().join(link).exists());
        dead.extend(broken.map(|link| format!("{}: {link}", page.display())));
    }
    assert!(dead.is_empty(), "these links lead nowhere:\n{}", dead.join("\n"));
    assert!(pages.len() > 30, "only {} pages were found", pages.len());
}

/// The files that a page links to, without headings.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.match_indices("](").filter_map(|(at, _)| text[at + 2..].split([')', ' ']).next());
    let files = targets.filter(|target| !target.contains(':')).filter_map(|target| target.split('#').next());
    files.filter(|file| !file.is_empty())
}

#[test]
fn every_link_to_a_heading_leads_to_a_heading() {
    let mut dead = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for target in text.match_indices("](").filter_map(|(at, _)| text[at + 2..].split([')', ' ']).next()) {
            let Some((file, heading)) = target.split_once('#').filter(|_| !target.contains(':')) else {
                continue;
            };
            let file = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            if !headings(&std::fs::read_to_string(file).unwrap()).any(|known| known == heading) {
                dead.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "these links lead to no heading:\n{}", dead.join("\n"));
}

/// The anchors of a page's headings, as GitHub makes them: lower case, hyphens in place of spaces, no punctuation.
fn headings(text: &str) -> impl Iterator<Item = String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|&c| c.is_alphanumeric() || " -_".contains(c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

#[test]
fn sentences_footnotes_and_links_of_a_page_are_parsed() {
    let text = "# Title.\n\n| a. | b. |\n\nOne `a.b` two.[^x] Three\nfour.[^y][^z]\n\nMute. Told.[^x] Open";
    let paragraphs: Vec<_> = paragraphs(text).collect();
    assert_eq!(paragraphs, ["One `a.b` two.[^x] Three four.[^y][^z]", "Mute. Told.[^x] Open"]);
    assert_eq!(mute_sentences(&paragraphs[0]), [""; 0]);
    assert_eq!(mute_sentences(&paragraphs[1]), ["Mute.", "Open"]);
    assert_eq!(names(text), ["x", "y", "z"]);
    let source = "#[test]\nfn one() {\nfn helper() {\n#[tokio::test(start_paused = true)]\n#[expect(x)]\nasync fn two() {";
    assert_eq!(tests_in(source), ["one", "two"]);
    assert_eq!(headings("## `a_b`, C-d\ntext").collect::<Vec<_>>(), ["a_b-c-d"]);
    let linked = "[a](b.md) [c](https://d.e) [f](#g) [h](../i/j.md#k)";
    assert_eq!(links(linked).collect::<Vec<_>>(), ["b.md", "../i/j.md"]);
}
