//! Whether a client has an answer already (RFC 9110 section 13). Knows no service.

use std::time::SystemTime;

use hostler_wire::{Fields, Name};

/// Whether the client's copy is the one with this tag (quotes included), made then.
pub fn has_it(fields: &Fields, etag: &str, modified: Option<SystemTime>) -> bool {
    let mut tags = fields.all(Name::IfNoneMatch).peekable();
    if tags.peek().is_some() {
        return tags.any(|list| names(list, etag.as_bytes()));
    }
    let since = modified.and_then(|modified| Some((modified, fields.get("if-modified-since")?)));
    since.is_some_and(|(modified, since)| {
        let since = std::str::from_utf8(since).ok().and_then(|since| httpdate::parse_http_date(since).ok());
        since.is_some_and(|since| modified <= since)
    })
}

/// Whether a list of tags names one; weakly, because what was compressed on its way bears a weak one. Ours have no comma.
fn names(list: &[u8], etag: &[u8]) -> bool {
    let is_it = |tag: &[u8]| tag.strip_prefix(b"W/").unwrap_or(tag) == etag;
    hostler_wire::tokens(list).any(|tag| tag == b"*" || is_it(tag))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn a_client_has_it_when_it_names_its_tag_or_a_later_date() {
        let asked = |name: &str, value: &str| {
            let mut fields = Fields::default();
            fields.add(name.as_bytes(), value.as_bytes());
            has_it(&fields, "\"a-1\"", Some(UNIX_EPOCH + Duration::from_secs(1_000_000_000)))
        };
        for yes in ["\"a-1\"", "W/\"a-1\"", "\"x\", \"a-1\"", "*"] {
            assert!(asked("If-None-Match", yes), "{yes}");
        }
        for no in ["\"a-2\"", "a-1", "", "\"a-1"] {
            assert!(!asked("If-None-Match", no), "{no}");
        }
        assert!(asked("If-Modified-Since", "Sun, 09 Sep 2001 01:46:40 GMT"));
        assert!(!asked("If-Modified-Since", "Sun, 09 Sep 2001 01:46:39 GMT"));
        assert!(!asked("If-Modified-Since", "yesterday"));
    }
}
