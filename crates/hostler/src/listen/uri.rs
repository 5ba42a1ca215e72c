//! Checks which characters the path and the query of a target contain (RFC 3986), and how the path begins. Knows no routes.

/// The characters of a path: `pchar` and the slash (RFC 3986 section 3.3), and the brackets, which are reserved but which browsers do not
/// encode.
const IN_PATH: [bool; 256] = table(b"-._~!$&'()*+,;=:@/[]");
/// The characters of a query: those of a path, `?`, and the characters that browsers do not encode there although RFC 3986 does not allow
/// them (the URL standard's query percent-encode set). All apps read them in the same way.
const IN_QUERY: [bool; 256] = table(b"-._~!$&'()*+,;=:@/[]?%\\^`{|}");
/// The characters that are allowed in both and need no further check.
const IN_BOTH: [bool; 256] = table(b"-._~!$&'()*+,;=:@/[]?");

const fn table(marks: &[u8]) -> [bool; 256] {
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

/// Checks a target in origin-form, or `*`. The error is the reason.
pub(super) fn check(target: &[u8]) -> Result<(), &'static str> {
    if target.starts_with(b"//") {
        return Err("a path that begins with two slashes can be read as a host name");
    }
    if target.iter().all(|byte| IN_BOTH[usize::from(*byte)]) {
        return Ok(());
    }
    let path_end = memchr::memchr(b'?', target).unwrap_or(target.len());
    let (path, query) = target.split_at(path_end);
    if !query.iter().all(|byte| IN_QUERY[usize::from(*byte)]) {
        return Err("there is a character in the query that must be percent-encoded");
    }
    let mut rest = path;
    while let Some(at) = rest.iter().position(|byte| !IN_PATH[usize::from(*byte)]) {
        match rest[at..] {
            [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                rest = &rest[at + 3..];
            }
            [b'%', ..] => return Err("there is a percent sign in the path that encodes nothing"),
            _ => return Err("there is a character in the path that must be percent-encoded"),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_holds_what_a_uri_may_hold() {
        for good in ["/", "*", "/a/b-._~!$&'()*+,;=:@[x]", "/%20%C3%a9%5C%7c", "/a//b", "/a/?//b?c", "/?"] {
            assert_eq!(check(good.as_bytes()), Ok(()), "{good}");
        }
        for byte in (0..=255_u8).filter(|byte| !byte.is_ascii_alphanumeric()) {
            let fine = b"-._~!$&'()*+,;=:@/[]?".contains(&byte);
            assert_eq!(check(&[b"/x", &[byte][..], b"y"].concat()).is_ok(), fine, "{byte:#04x}");
        }
        for bad in ["/%", "/%4", "/%zz", "/a%/b", "/%%20", "//", "//a", "//a/b?c", "/\\a", "/x\\..\\admin"] {
            assert!(check(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_query_holds_besides_what_browsers_leave_in_it() {
        let from_a_browser = "/?a=\\^`{|}[]'~!@$&*()_-+=:;,./?100%%zz";
        assert_eq!(check(from_a_browser.as_bytes()), Ok(()));
        for byte in (0..=255_u8).filter(|byte| !byte.is_ascii_alphanumeric()) {
            let fine = byte.is_ascii_graphic() && !b"\"#<>".contains(&byte);
            assert_eq!(check(&[b"/?x", &[byte][..], b"y"].concat()).is_ok(), fine, "{byte:#04x}");
        }
    }
}
