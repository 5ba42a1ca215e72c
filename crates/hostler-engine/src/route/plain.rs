//! A path in the normal form that applications read. Allocates nothing. Knows no routes.

use std::cell::RefCell;

use percent_encoding::percent_decode;

use super::marks::Marks;

thread_local! {
    /// The buffer for normal forms. It grows to the longest path of this thread, which the limit on heads bounds.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Calls `look` with the path percent-decoded and without dot segments (RFC 3986 sections 6.2.2 and 5.2.4), so that `/%61dmin` and
/// `/x/../admin` do not bypass a route for `/admin`. With `folds` the path is also in lower case.
pub fn with<T>(path: &[u8], folds: bool, look: impl FnOnce(&[u8]) -> T) -> T {
    if Marks::of(path).is_plain(folds) {
        return look(path);
    }
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.clear();
        scratch.extend(percent_decode(path));
        if folds {
            scratch.make_ascii_lowercase();
        }
        remove_dots(scratch);
        look(scratch)
    })
}

/// In place: the write position never passes the read position.
pub(super) fn remove_dots(path: &mut Vec<u8>) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        fn it_is_what_the_slow_way_makes_of_it(path in "(/|/\\.|/\\.\\.|a|%2e|%2F|%61|\\.){0,12}") {
            let path = format!("/{path}");
            let made = with(path.as_bytes(), false, <[u8]>::to_vec);
            let wanted = match path.contains('%') || path.contains("/.") {
                true => slowly(path.as_bytes()),
                false => path.clone().into_bytes(),
            };
            prop_assert_eq!(made, wanted, "{}", path);
        }
    }

    #[test]
    fn what_is_plain_already_is_not_touched() {
        for path in ["/", "/a/b", "*", "/a//", ""] {
            with(path.as_bytes(), false, |plain| assert_eq!(plain, path.as_bytes()));
        }
        with(b"*", true, |plain| assert_eq!(plain, b"*"));
    }
}
