//! Parses `Cache-Control` (RFC 9111 section 5.2) and the targeted fields (RFC 9213). Knows no other fields.
//!
//! Malformed input is read so that less is stored: a name is recognised anywhere, a number only if it is well-formed.

use std::borrow::Cow;

use hostler_wire::{is_token, parse_digits};
use sfv::{BareItem, Dictionary, Integer, ListEntry, Parser};

/// The directives of a response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ResponseCacheControl {
    pub public: bool,
    pub private: Scope,
    pub no_store: bool,
    pub no_cache: Scope,
    pub must_revalidate: bool,
    pub proxy_revalidate: bool,
    pub immutable: bool,
    pub must_understand: bool,
    pub max_age: Seconds,
    pub s_maxage: Seconds,
    pub stale_while_revalidate: Seconds,
    pub stale_if_error: Seconds,
}

/// The directives of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct RequestCacheControl {
    pub no_store: bool,
    pub no_cache: bool,
    pub only_if_cached: bool,
    pub max_age: Seconds,
    pub min_fresh: Seconds,
    pub max_stale: Seconds,
    pub stale_if_error: Seconds,
}

/// The scope of a directive that may name fields.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Scope {
    #[default]
    Absent,
    /// The whole response.
    Whole,
    /// Only these fields, in lower case.
    Fields(Vec<Box<str>>),
}

/// The argument of a directive with a number of seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Seconds {
    #[default]
    Absent,
    Given(u32),
    /// Not a number, or two different ones. Counts as 0 (RFC 9111 section 4.2.1).
    Invalid,
}

/// The argument of a directive.
type Argument<'a> = Option<Cow<'a, [u8]>>;

impl ResponseCacheControl {
    /// Reads the lines of `Cache-Control`.
    pub fn of<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut cache_control = Self::default();
        lines.for_each(|line| directives(line, |name, argument| cache_control.take(name, argument)));
        cache_control
    }

    /// Reads the lines of a targeted field. `None` if there are none, if they are empty, or if they are not a dictionary:
    /// then the field is ignored (RFC 9213 section 2.1).
    pub fn of_targeted<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let all = lines.collect::<Vec<_>>().join(&b", "[..]);
        let members = Parser::new(&all).parse::<Dictionary>().ok().filter(|members| !members.is_empty())?;
        let mut cache_control = Self::default();
        for (name, member) in &members {
            let ListEntry::Item(item) = member else { continue };
            let argument = match &item.bare_item {
                BareItem::Boolean(false) => continue,
                BareItem::Boolean(true) => None,
                BareItem::Integer(number) if *number >= Integer::ZERO => {
                    Some(Cow::Owned(number.to_string().into_bytes()))
                }
                BareItem::String(text) => Some(Cow::Borrowed(text.as_str().as_bytes())),
                BareItem::Token(text) => Some(Cow::Borrowed(text.as_str().as_bytes())),
                _ => Some(Cow::Borrowed(&b"?"[..])),
            };
            // In `Cache-Control` a quoted number counts as a number. Here it has the wrong type.
            let is_number = matches!(item.bare_item, BareItem::Integer(_));
            let is_good = argument.is_none() || is_number || !has_seconds(name.as_str());
            let argument = if is_good { argument } else { Some(b"?"[..].into()) };
            cache_control.take(name.as_str().as_bytes(), argument);
        }
        Some(cache_control)
    }

    /// Whether it is never served stale. For a shared cache both directives mean the same there (RFC 9111 section 5.2.2.8).
    pub fn forbids_stale(&self) -> bool {
        self.must_revalidate || self.proxy_revalidate
    }

    fn take(&mut self, name: &[u8], argument: Argument) {
        match &*name.to_ascii_lowercase() {
            b"public" => self.public = true,
            b"private" => self.private.add(argument),
            b"no-store" => self.no_store = true,
            b"no-cache" => self.no_cache.add(argument),
            b"must-revalidate" => self.must_revalidate = true,
            b"proxy-revalidate" => self.proxy_revalidate = true,
            b"immutable" => self.immutable = true,
            b"must-understand" => self.must_understand = true,
            b"max-age" => self.max_age.add(argument),
            b"s-maxage" => self.s_maxage.add(argument),
            // Nitro and older versions of Next.js send `stale-while-revalidate` alone. It names no time, so that of the route counts.
            b"stale-while-revalidate" | b"stale-if-error" if argument.is_none() => {}
            b"stale-while-revalidate" => self.stale_while_revalidate.add(argument),
            b"stale-if-error" => self.stale_if_error.add(argument),
            _ => {}
        }
    }
}

impl RequestCacheControl {
    /// Reads the lines of `Cache-Control`.
    pub fn of<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut cache_control = Self::default();
        lines.for_each(|line| directives(line, |name, argument| cache_control.take(name, argument)));
        cache_control
    }

    fn take(&mut self, name: &[u8], argument: Argument) {
        match &*name.to_ascii_lowercase() {
            b"no-store" => self.no_store = true,
            b"no-cache" => self.no_cache = true,
            b"only-if-cached" => self.only_if_cached = true,
            b"max-age" => self.max_age.add(argument),
            b"min-fresh" => self.min_fresh.add(argument),
            b"max-stale" if argument.is_none() => self.max_stale = Seconds::Given(u32::MAX),
            b"max-stale" => self.max_stale.add(argument),
            b"stale-if-error" => self.stale_if_error.add(argument),
            _ => {}
        }
    }
}

fn has_seconds(name: &str) -> bool {
    matches!(name, "max-age" | "s-maxage" | "stale-while-revalidate" | "stale-if-error")
}

impl Scope {
    /// The named fields. Empty if the directive is about the whole response.
    pub fn fields(&self) -> &[Box<str>] {
        match self {
            Self::Fields(fields) => fields,
            Self::Absent | Self::Whole => &[],
        }
    }

    fn add(&mut self, argument: Argument) {
        let names = argument.as_deref().and_then(field_names);
        match (names, &mut *self) {
            (None, _) => *self = Self::Whole,
            (Some(_), Self::Whole) => {}
            (Some(names), Self::Fields(fields)) => fields.extend(names),
            (Some(names), Self::Absent) => *self = Self::Fields(names),
        }
    }
}

/// The names in a list, in lower case. `None` if there are none, if one is not a name, or if the rest would mean
/// something else without such a field: then the directive is about the whole response.
fn field_names(list: &[u8]) -> Option<Vec<Box<str>>> {
    let names = std::str::from_utf8(list).ok()?.split(',').map(str::trim).filter(|name| !name.is_empty());
    let name = |name: &str| {
        let name = name.to_ascii_lowercase();
        let is_name = is_token(name.as_bytes());
        let carries = name.starts_with("content-")
            || matches!(
                &*name,
                "vary" | "etag" | "last-modified" | "cache-control" | "expires" | "date" | "age"
            );
        (is_name && !carries).then(|| name.into_boxed_str())
    };
    let names: Vec<_> = names.map(name).collect::<Option<_>>()?;
    (!names.is_empty()).then_some(names)
}

impl Seconds {
    fn add(&mut self, argument: Argument) {
        let new = argument.and_then(|digits| delta_seconds(&digits)).map_or(Self::Invalid, Self::Given);
        *self = if *self == Self::Absent || *self == new { new } else { Self::Invalid };
    }

    /// The number, if there is one.
    pub fn given(self) -> Option<u32> {
        match self {
            Self::Given(seconds) => Some(seconds),
            Self::Absent | Self::Invalid => None,
        }
    }

    /// The number, or 0 if it is invalid.
    pub fn lifetime(self) -> Option<u32> {
        match self {
            Self::Given(seconds) => Some(seconds),
            Self::Invalid => Some(0),
            Self::Absent => None,
        }
    }
}

/// A number of seconds. A number beyond 2^31 counts as 2^31 (RFC 9111 section 1.2.2).
pub(super) fn delta_seconds(digits: &[u8]) -> Option<u32> {
    const MOST: u32 = 1 << 31;
    parse_digits(digits).map(|number| u32::try_from(number).map_or(MOST, |number| number.min(MOST)))
}

/// Calls `take` for each directive of a line, with its name as written and its argument without quotes.
fn directives<'a>(line: &'a [u8], mut take: impl FnMut(&'a [u8], Argument<'a>)) {
    let mut rest = line;
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| matches!(byte, b'=' | b',')).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let name = name.trim_ascii();
        let argument;
        forbidding(name).for_each(|word| take(word, None));
        (argument, rest) = match after.split_first() {
            Some((b'=', after)) => {
                let (argument, after) = quoted(after).unwrap_or_else(|| {
                    let end = after.iter().position(|&byte| byte == b',').unwrap_or(after.len());
                    let argument = after[..end].trim_ascii_end();
                    forbidding(argument).for_each(|word| take(word, None));
                    (Cow::Borrowed(argument), &after[end..])
                });
                (Some(argument), after)
            }
            _ => (None, after),
        };
        rest = rest.strip_prefix(b",").unwrap_or(rest);
        if !name.is_empty() {
            take(name, argument);
        }
    }
}

/// The names of directives that forbid something, in text that is not one token: some apps separate directives with a
/// semicolon or a space, as in `private; max-age=0`. nginx finds the names there as well.
fn forbidding(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    const NAMES: [&str; 5] = ["no-store", "no-cache", "private", "must-revalidate", "proxy-revalidate"];
    let text = if is_token(text) { &[] } else { text };
    let words = text.split(|byte| !is_token(&[*byte]));
    words.filter(|word| NAMES.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(word)))
}

/// Splits a quoted string from the start of `text`. `None` if there is none, if it does not end, or if more text follows
/// it: then its commas separate directives, so that no `no-store` after them is lost.
fn quoted(text: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let inner = text.strip_prefix(b"\"")?;
    let mut plain = Vec::new();
    let mut bytes = inner.iter().enumerate();
    let end = loop {
        match bytes.next()? {
            (end, b'"') => break end,
            (_, b'\\') => plain.push(*bytes.next()?.1),
            (_, &byte) => plain.push(byte),
        }
    };
    let rest = inner[end + 1..].trim_ascii_start();
    let argument = if plain.len() == end { Cow::Borrowed(&inner[..end]) } else { Cow::Owned(plain) };
    matches!(rest.first(), None | Some(b',')).then_some((argument, rest))
}
