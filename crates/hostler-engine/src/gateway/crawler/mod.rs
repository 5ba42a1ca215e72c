//! The name of a crawler, as its `User-Agent` says it. Does not find crawlers that call themselves browsers.
//!
//! `scripts/crawlers.mjs` makes the two lists. The first one has crawlers whose names have none of [`PARTS`]. The second one has programs that are no
//! crawlers although their `User-Agent` looks like one: clients of APIs, monitors, and phones such as those of CUBOT.

mod names_of_networks;
mod programs;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use hostler_wire::{Fields, Name};

use programs::{ProgramList, search_for};

pub(super) use names_of_networks::NamesOfNetworks;

/// Parts of the names of crawlers, so that new crawlers are known without a list.
const PARTS: [&str; 4] = ["bot", "crawl", "spider", "slurp"];
/// Names that each browser has, and that crawlers have before their own name.
const BROWSERS: [&str; 2] = ["Mozilla", "MSIE"];
/// The most characters of a name. A client can send one of thousands, and each line of the log would have it.
const LONGEST: usize = 64;
const SEPARATORS: &[char] = &[' ', ';', ',', '(', ')', '[', ']'];

static KNOWN: LazyLock<Known> = LazyLock::new(|| Known {
    parts: search_for(PARTS),
    crawlers: ProgramList::of(include_str!("crawlers.txt")),
    others: ProgramList::of(include_str!("other_programs.txt")),
});

/// What a `User-Agent` is searched for.
struct Known {
    parts: AhoCorasick,
    crawlers: ProgramList,
    others: ProgramList,
}

/// Reads the lists now if `is_used`, so that the first request does not have to wait for that.
pub(super) fn prepare(is_used: bool) {
    if is_used {
        LazyLock::force(&KNOWN);
    }
}

/// The name of the crawler that the request says it comes from.
pub(super) fn of(fields: &Fields) -> Option<Cow<'_, str>> {
    let cut = |name: &str| name.char_indices().nth(LONGEST).map_or(name.len(), |(end, _)| end);
    // A byte that is no UTF-8 must not hide a crawler.
    match String::from_utf8_lossy(fields.first(Name::UserAgent)?) {
        Cow::Borrowed(user_agent) => name(user_agent).map(|name| Cow::Borrowed(&name[..cut(name)])),
        Cow::Owned(user_agent) => name(&user_agent).map(|name| Cow::Owned(name[..cut(name)].to_owned())),
    }
}

/// The name without its version: `Googlebot` of `Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)`.
/// `None` for a browser or another program.
fn name(user_agent: &str) -> Option<&str> {
    by_part(user_agent).or_else(|| by_list(user_agent)).or_else(|| by_page(user_agent))
}

/// The first product whose name has one of [`PARTS`]. Looks only once at each word, and once at each name of the list of other programs: a
/// client can send thousands of both.
fn by_part(user_agent: &str) -> Option<&str> {
    by_part_of(word, user_agent)
}

/// `word` is the word around a position. The test of the cost counts what it looks at.
fn by_part_of(mut word: impl FnMut(&str, usize) -> Range<usize>, user_agent: &str) -> Option<&str> {
    let mut others = KNOWN.others.find_whole(user_agent).map(|other| other.at).peekable();
    let mut seen = 0;
    KNOWN.parts.find_iter(user_agent).find_map(|part| {
        // A word with several parts was judged at its first part.
        if part.start() < seen {
            return None;
        }
        let word = word(user_agent, part.start());
        seen = word.end;
        let product = product(user_agent, word).filter(|product| part.end() <= product.end)?;
        while others.next_if(|other| other.end <= product.start).is_some() {}
        let is_other = others.peek().is_some_and(|other| other.start < product.end);
        (!is_other).then(|| &user_agent[product])
    })
}

/// A name of the list is often only a part of the crawler's own one: `findlink` of `findlinks/1.0`.
fn by_list(user_agent: &str) -> Option<&str> {
    let found = KNOWN.crawlers.find(user_agent).next()?;
    let own = product(user_agent, word(user_agent, found.at.start));
    let own = own.filter(|product| found.at.end <= product.end);
    Some(own.map_or(found.name, |product| {
        // Some write their version without a slash: `binlar_2.6.3`.
        let is_version = |character: char| character.is_ascii_digit() || "._-".contains(character);
        let without_version = user_agent[product.clone()].trim_end_matches(is_version);
        &user_agent[product.start..found.at.end.max(product.start + without_version.len())]
    }))
}

/// Others have the URL of a page that explains them: `Example/1.1 (+http://...)`. If they have no name besides, it is the host of that page.
fn by_page(user_agent: &str) -> Option<&str> {
    let page = ["+http://", "+https://"].iter().find_map(|scheme| user_agent.split_once(scheme))?.1;
    if KNOWN.others.find_whole(user_agent).next().is_some() {
        return None;
    }
    let compatible = user_agent.split_once("compatible;").map_or(user_agent, |(_, rest)| rest);
    let mut products = compatible.split(SEPARATORS).filter(|part| !part.is_empty() && !part.contains("//"));
    let first = products.next().and_then(|product| product.split('/').next());
    let host = page.split(['/', ':']).next()?.split(SEPARATORS).next()?;
    let host = host.strip_prefix("www.").unwrap_or(host);
    first.filter(|first| !BROWSERS.contains(first)).or(Some(host)).filter(|name| !name.is_empty())
}

/// The word around this position.
fn word(user_agent: &str, at: usize) -> Range<usize> {
    let start = user_agent[..at].rfind(SEPARATORS).map_or(0, |separator| separator + 1);
    let end = user_agent[at..].find(SEPARATORS).map_or(user_agent.len(), |length| at + length);
    start..end
}

/// The name of the product that is this word, without its version. `None` if it is a URL.
fn product(user_agent: &str, word: Range<usize>) -> Option<Range<usize>> {
    let product = &user_agent[word.clone()];
    let name = product.find('/').unwrap_or(product.len());
    (!product.contains("//")).then_some(word.start..word.start + name)
}

#[cfg(test)]
mod tests;
