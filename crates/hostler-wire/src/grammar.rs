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

/// The media type of a `Content-Type`, or the range of a member of `Accept`, without its parameters (RFC 9110 section 8.3.1), for example
/// `text/html` for `text/html; charset=utf-8`.
pub fn media_type(value: &[u8]) -> &[u8] {
    let end = memchr::memchr(b';', value).unwrap_or(value.len());
    value[..end].trim_ascii()
}

/// Whether the name of a field ends with `end`, in any case of letters.
pub fn name_ends_with(name: &[u8], end: &[u8]) -> bool {
    name.len().checked_sub(end.len()).is_some_and(|at| name[at..].eq_ignore_ascii_case(end))
}

/// Whether a text, such as the name of a field or a URL, begins with `start`, in any case of letters.
pub fn starts_in_any_case(text: &[u8], start: &[u8]) -> bool {
    text.get(..start.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(start))
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    write_hex(&mut text, bytes);
    text
}

/// Appends bytes as lower-case hexadecimal digits.
pub fn write_hex(out: &mut String, bytes: &[u8]) {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    for byte in bytes {
        out.extend([digit(byte >> 4), digit(byte & 15)]);
    }
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

/// The bytes of a token (RFC 9110 section 5.6.2).
pub const TOKEN: [bool; 256] = byte_set(b"!#$%&'*+-.^_`|~");

/// `1*tchar` (RFC 9110 section 5.6.2), for example the name of a field.
pub fn is_token(text: &[u8]) -> bool {
    // Without a branch for each byte: nearly all are allowed.
    !text.is_empty() && text.iter().fold(true, |all, byte| all & TOKEN[usize::from(*byte)])
}

/// The letters, the digits and these marks, as a table: `byte_set(b"-_")[usize::from(byte)]` says whether `byte` is one of them.
pub const fn byte_set(marks: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut at = 0;
    while at < marks.len() {
        table[marks[at] as usize] = true;
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
    fn a_media_type_is_read_without_its_parameters() {
        for value in ["text/html", " text/html ;q=1", "text/html;", "text/html; charset=utf-8; a=b"] {
            assert_eq!(media_type(value.as_bytes()), b"text/html", "{value}");
        }
        assert_eq!(media_type(b";q=1"), b"");
    }

    #[test]
    fn bytes_have_two_lower_case_digits_each() {
        assert_eq!(hex(&[0, 0x0f, 0x9a, 0xff]), "000f9aff");
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
    fn a_set_has_letters_digits_and_its_marks_and_no_others() {
        const SET: [bool; 256] = byte_set(b"-_\xff");
        for byte in 0..=u8::MAX {
            let is_member = byte.is_ascii_alphanumeric() || b"-_\xff".contains(&byte);
            assert_eq!(SET[usize::from(byte)], is_member, "{byte}");
        }
    }

    #[test]
    fn a_token_is_not_empty_and_has_no_other_bytes() {
        assert!(is_token(b"X-Trace!#$%&'*+-.^_`|~09azAZ"));
        for other in [&b""[..], b"a b", b"a:", b"a/b", b"\"a\"", "\u{e9}".as_bytes(), b"a\0"] {
            assert!(!is_token(other), "{}", other.escape_ascii());
        }
    }
}
