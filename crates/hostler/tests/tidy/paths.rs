//! The paths that Rust sources name, `use` lists over several lines included, and the file in which each path ends. Knows no rule.

use std::collections::{BTreeMap, BTreeSet};

use crate::GOROUTER;
use crate::sources::Source;

/// A module by its path, the crate first: `["hostler", "gateway", "refusal"]`.
pub type Module = Vec<String>;

/// A path as a file names it: `super::refusal::Refusal`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The names between the `::`.
    pub segments: Vec<String>,
    /// Counted from 1.
    pub line: usize,
    /// The name under which a `use` brings it in.
    imported_as: Option<String>,
    /// `pub use`.
    exported: bool,
}

/// The sources of all crates, and where paths lead among them.
pub struct Code {
    files: BTreeMap<Module, File>,
}

struct File {
    path: String,
    named: Vec<Named>,
}

impl Code {
    /// Reads the sources in `src` folders, without their tests.
    pub fn read(sources: &[Source]) -> Self {
        let of_program = sources.iter().filter(|source| source.path.contains("/src/") && !source.is_test());
        let file =
            |source: &Source| File { path: source.path.clone(), named: named(source.text_without_tests()) };
        Self { files: of_program.map(|source| (module(&source.path), file(source))).collect() }
    }

    /// All files, each with its module.
    pub fn files(&self) -> impl Iterator<Item = (&str, &Module)> {
        self.files.iter().map(|(module, file)| (file.path.as_str(), module))
    }

    /// The files of the same crate that a file uses, each with the first path that leads there. A re-export
    /// (`pub use`) does not count as a use.
    pub fn used_by(&self, module: &Module) -> BTreeMap<&str, &Named> {
        let mut used = BTreeMap::new();
        for named in self.files[module].named.iter().filter(|named| !named.exported) {
            let Some(end) = self.absolute(module, &named.segments).and_then(|path| self.end(path, 0)) else {
                continue;
            };
            if end != *module && end[0] == module[0] {
                used.entry(self.files[&end].path.as_str()).or_insert(named);
            }
        }
        used
    }

    /// The paths that a file uses, each from the root of its crate as far as that is known, with its line.
    pub fn named_by(&self, module: &Module) -> impl Iterator<Item = (Module, usize)> {
        let named = self.files[module].named.iter().filter(|named| !named.exported);
        named.map(|named| {
            let path = self.absolute(module, &named.segments).unwrap_or_else(|| named.segments.clone());
            (path, named.line)
        })
    }

    /// A path from the root of its crate. `None` if it belongs to another crate or its first name is unknown.
    fn absolute(&self, module: &Module, segments: &[String]) -> Option<Module> {
        let is_child = |name: &String| self.files.contains_key(&below(module, std::slice::from_ref(name)));
        let is_binary = module.last().is_some_and(|last| last == "main");
        match segments.first()?.as_str() {
            "crate" => Some(below(&module[..1], &segments[1..])),
            "self" => Some(below(module, &segments[1..])),
            "super" => {
                let up = segments.iter().take_while(|segment| *segment == "super").count();
                Some(below(&module[..module.len().checked_sub(up)?], &segments[up..]))
            }
            name if is_binary && name == module[0] => Some(segments.to_vec()),
            _ if is_child(&segments[0]) => Some(below(module, segments)),
            _ => None,
        }
    }

    /// The file with the definition that an absolute path names. Follows imports to their source.
    fn end(&self, path: Module, depth: usize) -> Option<Module> {
        let known = (1..=path.len()).rev().find(|length| self.files.contains_key(&path[..*length]))?;
        let (module, rest) = (path[..known].to_vec(), &path[known..]);
        let Some(name) = rest.first() else { return Some(module) };
        let import = self.files[&module].named.iter().find(|named| named.imported_as.as_ref() == Some(name));
        match import {
            Some(_) if depth > 8 => None,
            Some(import) => {
                let target = self.absolute(&module, &import.segments)?;
                self.end(below(&target, &rest[1..]), depth + 1)
            }
            None => Some(module),
        }
    }
}

fn below(module: &[String], rest: &[String]) -> Module {
    [module, rest].concat()
}

/// The module of a file. Example: `crates/hostler-engine/src/gateway/mod.rs` is `hostler_engine::gateway`.
fn module(path: &str) -> Module {
    let (folder, inside) = path.split_once("/src/").unwrap_or_default();
    let name = folder.rsplit('/').next().unwrap_or_default().replace('-', "_");
    let inside = inside.trim_end_matches(".rs").trim_end_matches("/mod");
    let segments = inside.split('/').filter(|segment| *segment != "lib").map(String::from);
    std::iter::once(name).chain(segments).collect()
}

/// The top modules that a file of the program or its engine uses, its tests included: as `crate::x`, as `hostler::x` or
/// `hostler_engine::x`, or as `super::x`. All of `hostler_gorouter` is one module, [`GOROUTER`].
pub fn used_modules(source: &Source) -> Vec<(String, usize)> {
    let own = module(&source.path);
    let top = |named: Named| {
        let first = named.segments[0].as_str();
        if first == "hostler_gorouter" || (own[0] == "hostler_gorouter" && matches!(first, "crate" | "super"))
        {
            return Some((GOROUTER.to_owned(), named.line));
        }
        let up = named.segments.iter().take_while(|segment| *segment == "super").count();
        let from_root =
            matches!(first, "crate" | "hostler" | "hostler_engine") || (up > 0 && up + 1 == own.len());
        Some((named.segments.get(up.max(1)).filter(|_| from_root)?.clone(), named.line))
    };
    // In a module of tests `super` is the file itself.
    let relative =
        named(source.text_without_tests()).into_iter().filter(|named| named.segments[0] == "super");
    let absolute = named(&source.text).into_iter().filter(|named| named.segments[0] != "super");
    absolute.chain(relative).filter_map(top).collect()
}

/// All paths of at least two names in a text, and all paths that a `use` imports.
fn named(text: &str) -> Vec<Named> {
    let text = blanked(text);
    let tokens = tokens(&text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        at = match tokens[at].0 {
            "use" if tokens.get(at + 1).is_some_and(|(next, _)| *next != "<") => {
                read_use(&tokens, at, &mut found)
            }
            word if is_name(word) => read_path(&tokens, at, &mut found),
            _ => at + 1,
        };
    }
    found
}

/// Reads a path outside a `use`. Returns the index after its end.
fn read_path(tokens: &[(&str, usize)], start: usize, found: &mut Vec<Named>) -> usize {
    let mut segments = vec![tokens[start].0.to_owned()];
    let mut at = start + 1;
    while let [("::", _), (name, _), ..] = tokens[at..]
        && is_name(name)
    {
        segments.push(name.to_owned());
        at += 2;
    }
    let is_whole = start == 0 || tokens[start - 1].0 != "::";
    if is_whole && segments.len() > 1 {
        found.push(Named { segments, line: tokens[start].1, imported_as: None, exported: false });
    }
    at
}

/// Reads a `use` with its tree. Returns the index after its end. Skips a `use` with `#[cfg(test)]`.
fn read_use(tokens: &[(&str, usize)], start: usize, found: &mut Vec<Named>) -> usize {
    let end =
        start + tokens[start..].iter().position(|(token, _)| *token == ";").unwrap_or(tokens.len() - start);
    let before: String = tokens[start.saturating_sub(12)..start].iter().map(|(token, _)| *token).collect();
    let is_exported = before.ends_with("pub")
        || before
            .rsplit_once("pub(")
            .is_some_and(|(_, rest)| rest.ends_with(')') && rest.matches(')').count() == 1);
    let is_for_tests = before.rsplit(';').next().is_some_and(|since| since.contains("#[cfg(test)]"));
    let first = found.len();
    read_tree(&tokens[start + 1..end], &[], found);
    match is_for_tests {
        true => found.truncate(first),
        false => found[first..].iter_mut().for_each(|named| named.exported = is_exported),
    }
    end + 1
}

/// Reads one tree of a `use`: a path, with or without `as`, or a path and a list of trees.
fn read_tree(tokens: &[(&str, usize)], prefix: &[String], found: &mut Vec<Named>) {
    let mut segments = prefix.to_vec();
    let Some(line) = tokens.first().map(|(_, line)| *line) else { return };
    for (at, (token, _)) in tokens.iter().enumerate() {
        match *token {
            "{" => {
                let list = &tokens[at + 1..tokens.len() - 1];
                return branches(list).into_iter().for_each(|branch| read_tree(branch, &segments, found));
            }
            "as" => break,
            "self" if !segments.is_empty() => {}
            "::" => {}
            name => segments.push(name.to_owned()),
        }
    }
    let renamed = tokens.iter().position(|(token, _)| *token == "as").and_then(|at| tokens.get(at + 1));
    let imported_as = renamed.map(|(name, _)| (*name).to_owned()).or_else(|| segments.last().cloned());
    found.push(Named { segments, line, imported_as, exported: false });
}

/// The parts between the outermost commas.
fn branches<'a, 'b>(tokens: &'a [(&'b str, usize)]) -> Vec<&'a [(&'b str, usize)]> {
    let mut depth = 0;
    let is_outer_comma = |(token, _): &(&str, usize)| {
        depth += i32::from(*token == "{") - i32::from(*token == "}");
        depth == 0 && *token == ","
    };
    tokens.split(is_outer_comma).collect()
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Names, `::` and single signs, each with its line.
fn tokens(text: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            c if c.is_alphanumeric() || c == '_' => {
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
            }
            ':' if rest.starts_with("::") => 2,
            c => c.len_utf8(),
        };
        line += usize::from(first == '\n');
        if !first.is_whitespace() {
            found.push((&rest[..length], line));
        }
        rest = &rest[length..];
    }
    found
}

/// The text without comments and quoted text. The line numbers stay the same.
fn blanked(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let inside_a_word = kept.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let skipped = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => quoted(rest),
            'r' if !inside_a_word || kept.ends_with('b') => raw(rest),
            '\'' => character(rest),
            _ => 0,
        };
        kept.extend(rest[..skipped].chars().filter(|c| *c == '\n'));
        if skipped == 0 {
            kept.push(first);
        }
        rest = &rest[skipped.max(first.len_utf8())..];
    }
    kept
}

/// The length of the quoted string at the start of a text.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

/// The length of the raw string at the start of a text. 0 if there is none.
fn raw(text: &str) -> usize {
    let hashes = text[1..].chars().take_while(|c| *c == '#').count();
    if !text[1 + hashes..].starts_with('"') {
        return 0;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    let begin = hashes + 2;
    text[begin..].find(&close).map_or(text.len(), |end| begin + end + close.len())
}

/// The length of the character literal at the start of a text. 0 if it is a lifetime.
fn character(text: &str) -> usize {
    let mut inside = text.chars().skip(1);
    match (inside.next(), inside.next()) {
        (Some('\\'), _) => text[3..].find('\'').map_or(0, |end| end + 4),
        (Some(c), Some('\'')) => c.len_utf8() + 2,
        _ => 0,
    }
}

#[test]
fn the_modules_that_a_file_uses_are_seen() {
    let used = |text: &str| {
        let source = Source { path: "crates/hostler/src/gateway/mod.rs".into(), text: text.into() };
        used_modules(&source).into_iter().map(|(module, _)| module).collect::<Vec<_>>()
    };
    assert_eq!(used("use crate::{\n    exchange::Exchange,\n    gateway,\n};"), ["exchange", "gateway"]);
    assert_eq!(used("    let x = crate::proxy::ask(1);"), ["proxy"]);
    assert_eq!(used("use hostler_engine::files::Files;"), ["files"]);
    assert_eq!(used("use hostler_gorouter::nats::Message;"), [GOROUTER]);
    assert_eq!(used("use super::server;\n#[cfg(test)]\nmod tests {\n    use super::cached;\n}"), ["server"]);
}

#[test]
fn paths_are_found_wherever_they_stand() {
    let text = "use crate::{\n    a::{self, B},\n    c as d,\n};\npub(crate) use super::e::F;\n#[cfg(test)]\nuse super::g;\nfn h() -> impl use<'a> I { \
                // crate::no\n \"crate::no\\\" crate::no\"; r#\"crate::no\"#; '\"'; self::j::<u8>(\n crate::k::L { m: '\\'' }) }";
    let found: Vec<_> = named(text)
        .into_iter()
        .map(|named| (named.segments.join("::"), named.line, named.exported))
        .collect();
    let expected = [
        ("crate::a", 2, false),
        ("crate::a::B", 2, false),
        ("crate::c", 3, false),
        ("super::e::F", 5, true),
        ("self::j", 9, false),
        ("crate::k::L", 10, false),
    ];
    assert_eq!(found, expected.map(|(path, line, exported)| (path.to_owned(), line, exported)));
}

#[test]
fn paths_lead_to_the_file_that_defines_what_they_name() {
    let file =
        |path: &str, text: &str| Source { path: format!("crates/x-y/src/{path}"), text: text.to_owned() };
    let code = Code::read(&[
        file("lib.rs", "mod a;\nmod b;"),
        file("a/mod.rs", "mod c;\npub use c::C;\nuse super::b;\nfn f() { c::g(); }"),
        file("a/c.rs", "use crate::a::C;\nuse super::b::B;\nuse super::A;"),
        file("b.rs", "use x_y::a::C;"),
    ]);
    let used = |name: &str| {
        let (_, module) = code.files().find(|(path, _)| path.ends_with(name)).unwrap();
        code.used_by(module).into_keys().map(|path| &path["crates/x-y/src/".len()..]).collect::<BTreeSet<_>>()
    };
    assert_eq!(used("a/mod.rs"), BTreeSet::from(["a/c.rs", "b.rs"]));
    assert_eq!(used("a/c.rs"), BTreeSet::from(["a/mod.rs", "b.rs"]));
    assert_eq!(used("src/b.rs"), BTreeSet::new());
}
