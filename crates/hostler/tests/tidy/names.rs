//! The paths that a Rust source names, `use` lists over several lines included. Knows no files.

use std::collections::BTreeSet;

/// A path as a file names it: `super::refusal::Refusal`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The names between the `::`.
    pub segments: Vec<String>,
    /// Counted from 1.
    pub line: usize,
    /// The name under which a `use` brings it in.
    pub imported_as: Option<String>,
    /// `pub use`.
    pub exported: bool,
}

/// All paths of at least two names in a text, and all paths that a `use` imports.
pub fn named(text: &str) -> Vec<Named> {
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

/// The names in a text that a `use` can have brought in: they stand outside of any `use`, and nothing stands before them that
/// makes them a part of a path, a method, a field or a module.
pub fn words(text: &str) -> BTreeSet<String> {
    let text = blanked(text);
    let tokens = tokens(&text);
    let mut found = BTreeSet::new();
    let mut at = 0;
    while at < tokens.len() {
        let before = at.checked_sub(1).map(|before| tokens[before].0);
        match tokens[at].0 {
            "use" if tokens.get(at + 1).is_some_and(|(next, _)| *next != "<") => at = end_of_use(&tokens, at),
            word if is_name(word) && !matches!(before, Some("::" | "." | "mod")) => {
                found.insert(word.to_owned());
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// A method that is defined in an `impl` block of its type, or called there on `self`. Example: `("Shard", "settle")`.
pub type Method = (String, String);

/// The methods that a text defines, and those that it calls. Calls on other values than `self` are not seen.
#[derive(Default)]
pub struct Methods {
    pub defined: BTreeSet<Method>,
    /// Each as a path: the type, the method.
    pub called: Vec<Named>,
}

/// Reads the `impl` blocks of a text. A method of a trait does not count as defined.
pub fn methods(text: &str) -> Methods {
    let text = blanked(text);
    let tokens = tokens(&text);
    let mut found = Methods::default();
    let mut at = 0;
    while at < tokens.len() {
        at = match tokens[at].0 {
            "impl" if at == 0 || matches!(tokens[at - 1].0, "}" | ";" | "]") => {
                read_impl(&tokens, at, &mut found)
            }
            _ => at + 1,
        };
    }
    found
}

/// Reads an `impl` block. Returns the index after its end.
fn read_impl(tokens: &[(&str, usize)], start: usize, found: &mut Methods) -> usize {
    let Some(open) = tokens[start..].iter().position(|(token, _)| *token == "{").map(|at| start + at) else {
        return tokens.len();
    };
    let Some((name, is_inherent)) = type_of_impl(&tokens[start + 1..open]) else { return open + 1 };
    let mut depth = 0;
    let mut at = open;
    while at < tokens.len() {
        match tokens[at].0 {
            "{" => depth += 1,
            "}" => depth -= 1,
            "fn" if depth == 1 && is_inherent => {
                let method = tokens.get(at + 1).map_or("", |(name, _)| *name);
                found.defined.insert((name.to_owned(), method.to_owned()));
            }
            "self" | "Self"
                if let [("." | "::", _), (method, line), ("(", _), ..] = tokens[at + 1..]
                    && is_name(method)
                    && tokens[at - 1].0 != "." =>
            {
                let segments = vec![name.to_owned(), method.to_owned()];
                found.called.push(Named { segments, line, imported_as: None, exported: false });
            }
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at
}

/// The type of an `impl` block by the block's head, and whether the block is for no trait. Example: `<H: Send> Tier<H>` is for `Tier`.
fn type_of_impl<'a>(head: &[(&'a str, usize)]) -> Option<(&'a str, bool)> {
    let (mut depth, mut name, mut is_inherent, mut before) = (0, None, true, "");
    for (token, _) in head {
        match *token {
            "<" => depth += 1,
            ">" if before != "-" => depth -= 1,
            "where" if depth == 0 => break,
            "for" if depth == 0 => is_inherent = false,
            word if depth == 0 && is_name(word) => name = Some(word),
            _ => {}
        }
        before = token;
    }
    Some((name?, is_inherent))
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
    let end = end_of_use(tokens, start);
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

/// The index of the `;` after a `use`.
fn end_of_use(tokens: &[(&str, usize)], start: usize) -> usize {
    start + tokens[start..].iter().position(|(token, _)| *token == ";").unwrap_or(tokens.len() - start)
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
fn methods_are_found_by_the_type_of_their_block() {
    let text = "impl<H: Fn() -> u8> Tier<H> {\n    pub async fn a(&self) { self.b().c(); self.d.e(); Self::f(g); }\n}\n\
                impl fmt::Display for Tier<u8> { fn h(&self) { if true { self.i() } } }\nfn j(tier: &Tier) { tier.k() }";
    let Methods { defined, called } = methods(text);
    assert_eq!(defined, BTreeSet::from([("Tier".to_owned(), "a".to_owned())]));
    let called: Vec<_> = called.into_iter().map(|called| (called.segments.join("::"), called.line)).collect();
    assert_eq!(
        called,
        [("Tier::b", 2), ("Tier::f", 2), ("Tier::i", 4)].map(|(name, line)| (name.to_owned(), line))
    );
}
