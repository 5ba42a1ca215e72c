//! Ranges of media types: `text/*`, `application/json`, `application/*+json`. Knows no responses.

use std::fmt;
use std::str::FromStr;

/// One media type or a range of them, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaRange {
    kind: Box<str>,
    /// `None` for any subtype.
    subtype: Option<Box<str>>,
    /// The required end of the subtype, with the `+`.
    suffix: Box<str>,
}

impl MediaRange {
    /// Whether a `Content-Type` is in the range. Its parameters are ignored.
    pub fn contains(&self, content_type: &[u8]) -> bool {
        let essence = hostler_wire::media_type(content_type);
        let Some(slash) = memchr::memchr(b'/', essence) else { return false };
        let (kind, subtype) = (&essence[..slash], &essence[slash + 1..]);
        kind.eq_ignore_ascii_case(self.kind.as_bytes())
            && match &self.subtype {
                Some(own) => subtype.eq_ignore_ascii_case(own.as_bytes()),
                None => {
                    let suffix = subtype.len().checked_sub(self.suffix.len()).map(|at| &subtype[at..]);
                    suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case(self.suffix.as_bytes()))
                }
            }
    }
}

impl FromStr for MediaRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        let (kind, subtype) = lower.split_once('/').unwrap_or_default();
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b))
        };
        let (own, suffix) = match subtype.strip_prefix('*') {
            None => (Some(subtype), ""),
            Some(suffix) => (None, suffix),
        };
        let is_sound =
            own.is_none_or(is_name) && (suffix.is_empty() || suffix.strip_prefix('+').is_some_and(is_name));
        if !is_name(kind) || !is_sound {
            return Err(
                "expected a media type such as \"text/html\", \"text/*\" or \"application/*+json\"".into()
            );
        }
        Ok(Self { kind: kind.into(), subtype: own.map(Into::into), suffix: suffix.into() })
    }
}

impl fmt::Display for MediaRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.kind)?;
        match &self.subtype {
            Some(subtype) => f.write_str(subtype),
            None => write!(f, "*{}", self.suffix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_range_matches_in_any_case_and_with_any_parameters() {
        let cases = [
            ("text/*", "text/html; charset=utf-8", true),
            ("text/*", "TEXT/HTML", true),
            ("text/*", "application/text", false),
            ("application/json", "application/json;charset=utf-8", true),
            ("application/json", "application/json5", false),
            ("application/json", "application/ld+json", false),
            ("application/*+json", "application/ld+JSON", true),
            ("application/*+json", "application/json", false),
            ("application/*+json", "application/+json", true),
            ("Application/JSON", "application/json", true),
            ("text/*", "text", false),
            ("text/*", "", false),
        ];
        for (range, kind, expected) in cases {
            let range: MediaRange = range.parse().unwrap();
            assert_eq!(range.contains(kind.as_bytes()), expected, "{range} {kind}");
        }
    }

    #[test]
    fn an_invalid_media_range_is_refused() {
        for text in [
            "",
            "text",
            "*/*",
            "*",
            "text/",
            "/html",
            "text/ht*",
            "text/html; charset=utf-8",
            "text/*json",
            "text/*+",
            "te xt/a",
        ] {
            assert!(text.parse::<MediaRange>().is_err(), "{text}");
        }
        for text in ["text/html", "text/*", "application/*+json", "image/svg+xml"] {
            assert_eq!(text.parse::<MediaRange>().unwrap().to_string(), text);
        }
    }
}
