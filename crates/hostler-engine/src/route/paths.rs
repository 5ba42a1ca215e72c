//! How applications read a path: in normal form, or in another way. Knows no routes.
//!
//! Some applications do not resolve dot segments, some decode slashes, some stop at a semicolon or leave parameters out. `Marks` tells in one
//! pass over a path whether it has more than one reading.

use std::borrow::Cow;
use std::cell::RefCell;

use percent_encoding::percent_decode;

/// Stands for a slash that stays encoded. No pattern contains it.
const ENCODED_SLASH: u8 = 0;

thread_local! {
    // Buffers for the forms of a path. They grow to the longest path of this thread, which the limit on heads bounds.
    static PLAIN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static READING: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static LOWER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What a path contains, as bits.
#[derive(Clone, Copy)]
pub(super) struct Marks(u8);

impl Marks {
    const SLASH: u8 = 1;
    const DOT: u8 = 2;
    const PERCENT: u8 = 4;
    const SEMICOLON: u8 = 8;
    const CAPITAL: u8 = 16;
    /// A slash or dot after a slash is this many bits further left.
    const AFTER_SLASH: u32 = 5;
    const SLASH_AFTER_SLASH: u8 = Self::SLASH << Self::AFTER_SLASH;
    const DOT_AFTER_SLASH: u8 = Self::DOT << Self::AFTER_SLASH;

    const OF_BYTE: [u8; 256] = {
        let mut marks = [0; 256];
        marks[b'/' as usize] = Self::SLASH;
        marks[b'.' as usize] = Self::DOT;
        marks[b'%' as usize] = Self::PERCENT;
        marks[b';' as usize] = Self::SEMICOLON;
        let mut letter = b'A';
        while letter <= b'Z' {
            marks[letter as usize] = Self::CAPITAL;
            letter += 1;
        }
        marks
    };

    pub fn of(path: &[u8]) -> Self {
        let (mut all, mut before) = (0, 0);
        for byte in path {
            let mark = Self::OF_BYTE[usize::from(*byte)];
            // All bits or none, which avoids a branch.
            let after_slash = (before & Self::SLASH).wrapping_neg();
            all |= mark | (after_slash & mark & (Self::SLASH | Self::DOT)) << Self::AFTER_SLASH;
            before = mark;
        }
        Self(all)
    }

    fn has(self, marks: u8) -> bool {
        self.0 & marks != 0
    }

    /// The path stays the same when it is percent-decoded and its dot segments are resolved. With `folds`, capital letters do not count.
    pub fn is_plain(self, folds: bool) -> bool {
        !self.has(Self::PERCENT | Self::DOT_AFTER_SLASH | if folds { Self::CAPITAL } else { 0 })
    }

    /// The path contains something, apart from percent-encoding, that applications read in different ways.
    pub fn is_odd(self) -> bool {
        self.has(Self::SEMICOLON | Self::DOT_AFTER_SLASH | Self::SLASH_AFTER_SLASH)
    }

    /// The path may contain percent-encoded characters.
    pub fn has_percent(self) -> bool {
        self.has(Self::PERCENT)
    }

    /// The path may contain capital letters, also encoded ones.
    pub fn may_have_capitals(self) -> bool {
        self.has(Self::CAPITAL | Self::PERCENT)
    }
}

/// A path as sent, and what it contains. A request looks through its path once for that.
#[derive(Clone, Copy)]
pub struct MarkedPath<'a> {
    pub(super) path: &'a [u8],
    pub(super) marks: Marks,
}

impl<'a> MarkedPath<'a> {
    /// Looks through this path.
    pub fn of(path: &'a [u8]) -> Self {
        Self { path, marks: Marks::of(path) }
    }

    /// Calls `look` with the path percent-decoded and without dot segments (RFC 3986 sections 6.2.2 and 5.2.4), so that `/%61dmin` and
    /// `/x/../admin` do not bypass a route for `/admin`. With `folds` the path is also in lower case.
    pub fn with_plain<T>(self, folds: bool, look: impl FnOnce(&[u8]) -> T) -> T {
        if self.marks.is_plain(folds) {
            return look(self.path);
        }
        PLAIN.with_borrow_mut(|buffer| {
            buffer.clear();
            buffer.extend(percent_decode(self.path));
            if folds {
                buffer.make_ascii_lowercase();
            }
            remove_dots(buffer);
            look(buffer)
        })
    }

    /// Whether an application may read this path as one that is not below `prefix`. Both are as sent; `prefix` has no slash at its end.
    pub fn may_leave(self, prefix: &[u8]) -> bool {
        is_odd(self) && leaves(self.path, prefix)
    }
}

/// In place: the write position never passes the read position.
fn remove_dots(path: &mut Vec<u8>) {
    if !path.contains(&b'/') {
        return;
    }
    let (mut read, mut kept) = (memchr::memchr(b'/', path).unwrap_or(0), 0);
    let mut ends_in_dots = false;
    while read < path.len() {
        let begin = read + 1;
        let end = memchr::memchr(b'/', &path[begin..]).map_or(path.len(), |slash| begin + slash);
        ends_in_dots = matches!(&path[begin..end], b"." | b"..");
        match &path[begin..end] {
            b"." => {}
            b".." => kept = memchr::memrchr(b'/', &path[..kept]).unwrap_or(0),
            _ => {
                path.copy_within(read..end, kept);
                kept += end - read;
            }
        }
        read = end;
    }
    path.truncate(kept);
    if ends_in_dots || path.is_empty() {
        path.push(b'/');
    }
}

/// How encoded slashes are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slashes {
    Encoded,
    Decoded,
    /// Decoded after dot segments are resolved, so `..` behind an encoded slash stays.
    DecodedLast,
}

/// How semicolons are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Semicolons {
    Plain,
    /// The path ends at the first one.
    End,
    /// One begins a parameter, which is no part of its segment: `/a;x/..;/b` is `/a/../b`. Java's servers do so (Tomcat, Jetty).
    Parameter,
}

/// One way to read a path.
#[derive(Clone, Copy)]
struct PathReading {
    slashes: Slashes,
    keeps_dots: bool,
    semicolons: Semicolons,
    merges_slashes: bool,
}

/// Whether there is more than one way to read the path, apart from decoding letters. If a proxy in front decodes more letters than the
/// application behind it, that does no harm.
pub(super) fn is_odd(MarkedPath { path, marks }: MarkedPath<'_>) -> bool {
    marks.is_odd() || marks.has_percent() && has_encoded_mark(path)
}

fn has_encoded_mark(path: &[u8]) -> bool {
    memchr::memchr_iter(b'%', path)
        .any(|at| matches!(path[at + 1..], [b'2', b'e' | b'E' | b'f' | b'F', ..] | [b'5', b'c' | b'C', ..]))
}

/// Calls `look` with the path in lower case.
pub(super) fn in_lower_case<T>(path: &[u8], look: impl FnOnce(&[u8]) -> T) -> T {
    LOWER.with_borrow_mut(|lower| {
        lower.clear();
        lower.extend_from_slice(path);
        lower.make_ascii_lowercase();
        look(lower)
    })
}

/// Whether `is_such` is true for any way to read the path. `folds`: in lower case.
pub(super) fn is_any(path: &[u8], folds: bool, mut is_such: impl FnMut(&[u8]) -> bool) -> bool {
    READING.with_borrow_mut(|buffer| {
        readings(path).any(|reading| {
            reading.of(path, folds, buffer);
            is_such(buffer)
        })
    })
}

/// Whether there is a way to read the path in which it is not below `prefix`, read in the same way.
fn leaves(path: &[u8], prefix: &[u8]) -> bool {
    let mut above = Vec::new();
    READING.with_borrow_mut(|buffer| {
        readings(path).any(|reading| {
            reading.of(prefix, false, &mut above);
            reading.of(path, false, buffer);
            let rest = buffer.strip_prefix(above.as_slice());
            !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        })
    })
}

fn readings(path: &[u8]) -> impl Iterator<Item = PathReading> {
    let choices = |is_there: bool| if is_there { &[false, true][..] } else { &[false][..] };
    let semicolons = match memchr::memchr(b';', path) {
        Some(_) => &[Semicolons::Plain, Semicolons::End, Semicolons::Parameter][..],
        None => &[Semicolons::Plain][..],
    };
    // Without its parameters, `/;x/a` has two slashes as well.
    let has = |text: &[u8]| memchr::memmem::find(path, text).is_some();
    let doubles = choices(has(b"//") || has(b"/;") || has_encoded_mark(path));
    let ways = [
        (Slashes::Encoded, true),
        (Slashes::Encoded, false),
        (Slashes::Decoded, true),
        (Slashes::Decoded, false),
        (Slashes::DecodedLast, false),
    ];
    ways.into_iter().flat_map(move |(slashes, keeps_dots)| {
        semicolons.iter().flat_map(move |&semicolons| {
            doubles.iter().map(move |&merges_slashes| PathReading {
                slashes,
                keeps_dots,
                semicolons,
                merges_slashes,
            })
        })
    })
}

impl PathReading {
    fn of(self, path: &[u8], folds: bool, into: &mut Vec<u8>) {
        into.clear();
        let until_semicolon = |part: &[u8]| memchr::memchr(b';', part).unwrap_or(part.len());
        let path = match self.semicolons {
            Semicolons::Plain => Cow::Borrowed(path),
            Semicolons::End => Cow::Borrowed(&path[..until_semicolon(path)]),
            Semicolons::Parameter => {
                let segments = path.split(|&byte| byte == b'/');
                let plain: Vec<_> = segments.map(|segment| &segment[..until_semicolon(segment)]).collect();
                Cow::Owned(plain.join(&b'/'))
            }
        };
        let mut rest = &*path;
        let slash = if self.slashes == Slashes::Decoded { b'/' } else { ENCODED_SLASH };
        while let Some(at) = memchr::memchr(b'%', rest) {
            into.extend_from_slice(&rest[..at]);
            let encoded = &rest[at..rest.len().min(at + 3)];
            match encoded {
                b"%2f" | b"%2F" | b"%5c" | b"%5C" => into.push(slash),
                encoded => into.extend(percent_decode(encoded)),
            }
            rest = &rest[at + encoded.len()..];
        }
        into.extend_from_slice(rest);
        if folds {
            into.make_ascii_lowercase();
        }
        if self.merges_slashes {
            into.dedup_by(|next, before| *next == b'/' && *before == b'/');
        }
        if !self.keeps_dots {
            remove_dots(into);
        }
        if self.slashes == Slashes::DecodedLast {
            into.iter_mut().filter(|byte| **byte == ENCODED_SLASH).for_each(|byte| *byte = b'/');
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_mark_is_found_wherever_it_stands(path in "(/|a|A|\\.|;|%|b){0,10}") {
            let marks = Marks::of(path.as_bytes());
            let has_capital = path.contains('A');
            let is_plain = !path.contains('%') && !path.contains("/.");
            prop_assert_eq!(marks.is_plain(false), is_plain);
            prop_assert_eq!(marks.is_plain(true), is_plain && !has_capital);
            prop_assert_eq!(marks.is_odd(), path.contains(';') || path.contains("/.") || path.contains("//"));
            prop_assert_eq!(marks.has_percent(), path.contains('%'));
            prop_assert_eq!(marks.may_have_capitals(), has_capital || path.contains('%'));
        }
    }

    /// The same result, in the simplest code.
    fn slowly(path: &[u8]) -> Vec<u8> {
        let decoded: Vec<u8> = percent_decode(path).collect();
        let mut kept: Vec<&[u8]> = Vec::new();
        let mut ends_in_dots = false;
        for segment in decoded.split(|&byte| byte == b'/').skip(1) {
            ends_in_dots = segment == b"." || segment == b"..";
            match segment {
                b".." => drop(kept.pop()),
                b"." => {}
                other => kept.push(other),
            }
        }
        let mut out: Vec<u8> = kept.iter().flat_map(|segment| [b"/", *segment].concat()).collect();
        if ends_in_dots || out.is_empty() {
            out.push(b'/');
        }
        out
    }

    proptest! {
        #[test]
        fn the_fast_normalization_agrees_with_the_slow_one(path in "(/|/\\.|/\\.\\.|a|%2e|%2F|%61|\\.){0,12}") {
            let path = format!("/{path}");
            let made = MarkedPath::of(path.as_bytes()).with_plain(false, <[u8]>::to_vec);
            let wanted = match path.contains('%') || path.contains("/.") {
                true => slowly(path.as_bytes()),
                false => path.clone().into_bytes(),
            };
            prop_assert_eq!(made, wanted, "{}", path);
        }
    }

    #[test]
    fn a_normalized_path_is_not_changed() {
        for path in ["/", "/a/b", "*", "/a//", ""] {
            MarkedPath::of(path.as_bytes()).with_plain(false, |plain| assert_eq!(plain, path.as_bytes()));
        }
        MarkedPath::of(b"*").with_plain(true, |plain| assert_eq!(plain, b"*"));
    }

    fn all(path: &str) -> Vec<String> {
        let mut all = Vec::new();
        is_any(path.as_bytes(), false, |reading| {
            all.push(String::from_utf8_lossy(reading).replace('\0', "%2F"));
            false
        });
        all.sort();
        all.dedup();
        all
    }

    #[test]
    fn every_reading_of_a_path_is_listed() {
        assert_eq!(all("/a/../b"), ["/a/../b", "/b"]);
        assert_eq!(all("/a/%2e%2E%2fb/.."), ["/", "/a/", "/a/..%2Fb/..", "/a/../b/.."]);
        assert_eq!(all("/a;x/b"), ["/a", "/a/b", "/a;x/b"]);
        assert_eq!(all("/a/..;x/b"), ["/", "/a/..", "/a/../b", "/a/..;x/b", "/b"]);
        assert_eq!(all("/;x/b"), ["/", "//b", "/;x/b", "/b"]);
        assert_eq!(all("/a//b%zz%41"), ["/a//b%zzA", "/a/b%zzA"]);
    }

    proptest! {
        #[test]
        fn an_ordinary_path_has_one_reading(path in "(/|a|\\.|;|%41|%2e|%2F|%5c|%|b){0,10}") {
            let path = format!("/{path}");
            if !is_odd(MarkedPath::of(path.as_bytes())) {
                prop_assert_eq!(all(&path).len(), 1, "{}", path);
            }
        }
    }
}
