//! The ways in which applications read a path that is not in normal form: some resolve dot segments, some decode slashes, some stop at a
//! semicolon. Knows no routes.

use std::cell::RefCell;

use percent_encoding::percent_decode;

use super::marks::Marks;
use super::plain::remove_dots;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static LOWER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Stands for a slash that stays encoded. No pattern contains it.
const ENCODED_SLASH: u8 = 0;

/// How encoded slashes are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slashes {
    Encoded,
    Decoded,
    /// Decoded after dot segments are resolved, so `..` behind an encoded slash stays.
    DecodedLast,
}

/// One way to read a path.
#[derive(Clone, Copy)]
struct PathReading {
    slashes: Slashes,
    keeps_dots: bool,
    stops_at_semicolon: bool,
    merges_slashes: bool,
}

/// Whether there is more than one way to read the path, apart from decoding letters. If a proxy in front decodes more letters than the
/// application behind it, that does no harm.
pub(super) fn is_odd(path: &[u8], marks: Marks) -> bool {
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
    SCRATCH.with_borrow_mut(|scratch| {
        readings(path).any(|reading| {
            reading.of(path, folds, scratch);
            is_such(scratch)
        })
    })
}

fn readings(path: &[u8]) -> impl Iterator<Item = PathReading> {
    let choices = |is_there: bool| if is_there { &[false, true][..] } else { &[false][..] };
    let semicolons = choices(memchr::memchr(b';', path).is_some());
    let doubles = choices(memchr::memmem::find(path, b"//").is_some() || has_encoded_mark(path));
    let ways = [
        (Slashes::Encoded, true),
        (Slashes::Encoded, false),
        (Slashes::Decoded, true),
        (Slashes::Decoded, false),
        (Slashes::DecodedLast, false),
    ];
    ways.into_iter().flat_map(move |(slashes, keeps_dots)| {
        semicolons.iter().flat_map(move |&stops_at_semicolon| {
            doubles.iter().map(move |&merges_slashes| PathReading {
                slashes,
                keeps_dots,
                stops_at_semicolon,
                merges_slashes,
            })
        })
    })
}

impl PathReading {
    fn of(self, path: &[u8], folds: bool, into: &mut Vec<u8>) {
        into.clear();
        let semicolon = memchr::memchr(b';', path).filter(|_| self.stops_at_semicolon);
        let mut rest = &path[..semicolon.unwrap_or(path.len())];
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
    use super::*;
    use proptest::prelude::*;

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
    fn each_way_to_read_a_path_is_there() {
        assert_eq!(all("/a/../b"), ["/a/../b", "/b"]);
        assert_eq!(all("/a/%2e%2E%2fb/.."), ["/", "/a/", "/a/..%2Fb/..", "/a/../b/.."]);
        assert_eq!(all("/a;x/b"), ["/a", "/a;x/b"]);
        assert_eq!(all("/a//b%zz%41"), ["/a//b%zzA", "/a/b%zzA"]);
    }

    proptest! {
        #[test]
        fn what_is_not_odd_is_read_in_one_way(path in "(/|a|\\.|;|%41|%2e|%2F|%5c|%|b){0,10}") {
            let path = format!("/{path}");
            if !is_odd(path.as_bytes(), Marks::of(path.as_bytes())) {
                prop_assert_eq!(all(&path).len(), 1, "{}", path);
            }
        }
    }
}
