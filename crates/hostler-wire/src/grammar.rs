//! The pieces of grammar that several fields share: numbers, lists, hosts, sets of bytes. Knows no field.

/// The number that `1*DIGIT` says (RFC 5234 appendix B.1), for example 7 for `007`. Text with a sign, with white space or without a digit
/// is no number. A number beyond `u64::MAX` counts as `u64::MAX`.
#[inline]
pub fn parse_digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0, |sum: u64, byte| {
        byte.is_ascii_digit().then(|| sum.saturating_mul(10).saturating_add(u64::from(byte - b'0')))
    })
}

/// The members of a comma-separated list, trimmed, without empty ones (RFC 9110 section 5.6.1), for example `a` and `b` for `a ,, b`.
pub fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&b| b == b',').map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
}

/// A `Host` field or an authority without userinfo, cut in two (RFC 3986 section 3.2): the host, and the port with its colon. For example
/// `a.test` and `:80`, or `[::1]` and nothing. Checks neither.
#[inline]
pub fn split_host(text: &[u8]) -> (&[u8], &[u8]) {
    let end = match text.first() {
        Some(b'[') => memchr::memchr(b']', text).map(|bracket| bracket + 1),
        _ => memchr::memchr(b':', text),
    };
    text.split_at(end.unwrap_or(text.len()))
}

/// A set of bytes as a table: `byte_set(b"ab")[usize::from(byte)]` says whether `byte` is in it.
pub const fn byte_set(members: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut at = 0;
    while at < members.len() {
        table[members[at] as usize] = true;
        at += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_digits_only_and_the_largest_is_large_enough() {
        let cases: [(&[u8], _); 10] = [
            (b"0", Some(0)),
            (b"007", Some(7)),
            (b"18446744073709551615", Some(u64::MAX)),
            (b"18446744073709551616", Some(u64::MAX)),
            (b"99999999999999999999999", Some(u64::MAX)),
            (b"", None),
            (b"-1", None),
            (b"+1", None),
            (b" 1", None),
            (b"1, 2", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_digits(text), expected, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn a_list_has_no_empty_members() {
        assert_eq!(tokens(b" a ,, b,").collect::<Vec<_>>(), [b"a", b"b"]);
    }

    #[test]
    fn the_host_is_read_without_its_port() {
        for (text, host, port) in [
            ("a.test", "a.test", ""),
            ("a.test:80", "a.test", ":80"),
            ("a.test:", "a.test", ":"),
            ("[::1]:8080", "[::1]", ":8080"),
            ("[::1]", "[::1]", ""),
            ("[::1", "[::1", ""),
            (":80", "", ":80"),
            ("", "", ""),
        ] {
            assert_eq!(split_host(text.as_bytes()), (host.as_bytes(), port.as_bytes()), "{text}");
        }
    }

    #[test]
    fn a_set_has_its_members_and_no_others() {
        const VOWELS: [bool; 256] = byte_set(b"aeiou");
        for byte in 0..=u8::MAX {
            assert_eq!(VOWELS[usize::from(byte)], b"aeiou".contains(&byte), "{byte}");
        }
    }
}
