//! A list of names of programs, and the search for them in a text. Knows no requests.

use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};

/// The programs of one list.
pub(super) struct ProgramList {
    programs: Vec<ListedName>,
    search: AhoCorasick,
}

struct ListedName {
    /// As in the list, such as `facebookcatalog/`.
    text: &'static str,
    /// It counts only where a program names itself first ([`is_first`]).
    is_first: bool,
}

/// A program of the list that a text names.
pub(super) struct NamedProgram {
    /// Where its name is.
    pub at: Range<usize>,
    /// The name as the list has it, without the marks around it.
    pub name: &'static str,
}

impl ProgramList {
    /// One program a line. Lines with `#` are comments.
    pub fn of(list: &'static str) -> Self {
        let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let programs: Vec<_> = lines
            .map(|line| match line.strip_prefix('^') {
                Some(text) => ListedName { text, is_first: true },
                None => ListedName { text: line, is_first: false },
            })
            .collect();
        let search = search_for(programs.iter().map(|program| program.text));
        Self { programs, search }
    }

    /// The programs that the text names. A name begins where a word begins, in any case of letters.
    pub fn find(&self, text: &str) -> impl Iterator<Item = NamedProgram> {
        let found =
            self.search.find_iter(text).filter(|found| match self.programs[found.pattern()].is_first {
                true => is_first(text, found.start()),
                false => !before(text, found.start()).is_some_and(|byte| byte.is_ascii_alphanumeric()),
            });
        found.map(|found| {
            let listed = self.programs[found.pattern()].text;
            let is_mark = |character: char| !character.is_alphanumeric();
            let marks = listed.len() - listed.trim_start_matches(is_mark).len();
            let name = listed.trim_matches(is_mark);
            let start = found.start() + marks;
            NamedProgram { at: start..start + name.len(), name }
        })
    }

    /// Those whose name also ends where a word ends. A capital letter begins another word.
    pub fn find_whole(&self, text: &str) -> impl Iterator<Item = NamedProgram> {
        self.find(text).filter(|found| !text.as_bytes().get(found.at.end).is_some_and(u8::is_ascii_lowercase))
    }
}

/// Finds each of these names in a text, of two at one place the longer one.
pub(super) fn search_for(names: impl IntoIterator<Item = &'static str>) -> AhoCorasick {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostLongest)
        .build(names)
        .expect("invariant: it fails only for more names than a list can have")
}

/// Whether a name at this place is the first one that a program gives: at the start, or behind `compatible;`. Crawlers that render pages have the
/// names of a browser before that.
fn is_first(text: &str, at: usize) -> bool {
    at == 0 || text[..at].trim_end().ends_with("compatible;")
}

fn before(text: &str, at: usize) -> Option<u8> {
    text.as_bytes()[..at].last().copied()
}
