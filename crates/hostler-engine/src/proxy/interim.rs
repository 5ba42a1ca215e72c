//! The heads that a member sends: counts the interim ones, and removes fields that only Hostler may set. Knows no calls and no clients.

use hostler_wire::{CallError, ResponseHead};

/// The interim heads of one answer so far.
#[derive(Default)]
pub(super) struct Interims {
    count: usize,
    bytes: usize,
}

impl Interims {
    /// Counts an interim head. All of them together may have `size` bytes, and there may be `count` of them.
    pub fn note(&mut self, head: &ResponseHead, count: usize, size: usize) -> Result<(), CallError> {
        self.count += 1;
        self.bytes += head.fields.bytes().len();
        match self.count > count || self.bytes > size {
            true => Err(CallError::Interim { count, size }),
            false => Ok(()),
        }
    }
}

/// Removes the fields in which Hostler describes itself. A final head keeps what our cache has yet to read (`Hostler-Cache-Control`, RFC
/// 9213). The client does not get that either.
pub(super) fn remove_own_fields(head: &mut ResponseHead) {
    let is_final = !head.is_interim();
    let is_strange = |name: &[u8]| is_of_hostlers(name) && !(is_final && is_for_our_cache(name));
    if head.fields.iter().any(|(_, name, _)| is_strange(name)) {
        head.fields.remove(is_strange);
    }
}

/// `Hostler-*` and `Cache-Status` (RFC 9211). An underscore counts as a hyphen, because many programs read it as one.
fn is_of_hostlers(name: &[u8]) -> bool {
    let is = |name: &[u8], of: &[u8]| {
        let same = |(a, b): (&u8, &u8)| a.eq_ignore_ascii_case(b) || (*a == b'_' && *b == b'-');
        name.iter().zip(of).all(same)
    };
    match name.first() {
        Some(b'h' | b'H') => name.len() >= 8 && is(name, b"hostler-"),
        Some(b'c' | b'C') => name.len() == 12 && is(name, b"cache-status"),
        _ => false,
    }
}

/// A targeted field for Hostler's cache, under any name that the route sets (`routes.cache.targeted`). Clients do not get it: caches in
/// front of Hostler have fields of their own, such as `CDN-Cache-Control`.
pub fn is_for_our_cache(name: &[u8]) -> bool {
    const END: &[u8] = b"cache-control";
    matches!(name.first(), Some(b'h' | b'H'))
        && is_of_hostlers(name)
        && name.len() >= END.len()
        && name[name.len() - END.len()..].eq_ignore_ascii_case(END)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workers_head_does_not_speak_for_hostler() {
        let names = ["Hostler-Refusal", "hostler-x", "Hostler_Fallback", "Cache-Status", "CACHE_STATUS"];
        let others =
            ["Hostler", "Hostler-Cache-Control", "Hostess-X", "Cache-Control", "Cache-Status-X", "Host", ""];
        for status in [200, 103] {
            let mut head = ResponseHead::new(status, "");
            names.iter().chain(&others).for_each(|name| head.fields.add(name.as_bytes(), b"x"));
            remove_own_fields(&mut head);
            let left: Vec<_> = head.fields.iter().map(|(_, name, _)| String::from_utf8_lossy(name)).collect();
            let expected: Vec<_> =
                others.iter().filter(|name| status == 200 || **name != "Hostler-Cache-Control").collect();
            assert_eq!(
                left.iter().map(|name| &**name).collect::<Vec<_>>(),
                expected.into_iter().copied().collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn what_is_for_our_cache_is_known_by_its_ends() {
        for (name, is) in [
            ("Hostler-Cache-Control", true),
            ("hostler-edge-cache-control", true),
            ("CDN-Cache-Control", false),
            ("Cache-Control", false),
            ("Hostler-Refusal", false),
            ("h", false),
            ("", false),
        ] {
            assert_eq!(is_for_our_cache(name.as_bytes()), is, "{name}");
        }
    }
}
