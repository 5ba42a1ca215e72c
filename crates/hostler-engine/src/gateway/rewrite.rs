//! Rewrites the request target: removes a prefix, adds another. Knows neither members nor files.

use std::borrow::Cow;

use percent_encoding::percent_decode;

use super::refusal::Refusal;
use crate::exchange::Exchange;
use crate::route::MarkedPath;

/// How a path is rewritten. The query stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// The prefix that is removed: decoded, without a slash at its end. Empty for none.
    pub strip: Box<str>,
    /// The prefix that is added: as in a URL, without a slash at its end. Empty for none.
    pub add: Box<str>,
}

/// Checks the rewritten path of a request to a pool. It must pass the same checks as the original path, and no app may read it as a path
/// outside of the prefix that was added.
pub(super) fn check(rewrite: Option<&Rewrite>, exchange: &Exchange) -> Result<(), Refusal> {
    let (Some(rewrite), Some(target)) = (rewrite, &exchange.rewritten) else { return Ok(()) };
    if target.starts_with(b"//") {
        return Err(Refusal::Target(
            "without the prefix of the route, its path could be read as a host name",
        ));
    }
    if rewrite.is_left_by(target) {
        return Err(Refusal::Target(
            "an app could read its path as one outside of the prefix that this route adds",
        ));
    }
    Ok(())
}

impl Rewrite {
    /// The new target. None if the path does not begin with the prefix, or is not a path (`OPTIONS *`).
    pub(super) fn apply(&self, target: &[u8]) -> Option<Box<[u8]>> {
        let path_end = memchr::memchr(b'?', target).unwrap_or(target.len());
        let rest = behind(&target[..path_end], &self.strip)?;
        let slash: &[u8] = if rest.starts_with(b"/") { b"" } else { b"/" };
        Some([self.add.as_bytes(), slash, &rest, &target[path_end..]].concat().into())
    }

    /// Whether an app may read this new target as one that is not below the added prefix, such as `/v2/..%2Fadmin`.
    fn is_left_by(&self, target: &[u8]) -> bool {
        let path_end = memchr::memchr(b'?', target).unwrap_or(target.len());
        !self.add.is_empty() && MarkedPath::of(&target[..path_end]).may_leave(self.add.as_bytes())
    }
}

/// What follows `prefix` in a path, as sent: empty, or from a slash on (which may be an encoded one). Paths are compared in the form in
/// which routes compare them: percent-decoded and without dot segments. Example: `/a/./b` behind `/a` is `/b`. The case of letters does not
/// count: the table of routes has matched the path already, and it may ignore case (`Table::folding_paths`).
pub(super) fn behind<'a>(path: &'a [u8], prefix: &str) -> Option<Cow<'a, [u8]>> {
    if !path.starts_with(b"/") {
        return None;
    }
    if let Some(rest) = behind_plainly(path, prefix.as_bytes()).filter(|_| !has_dots(path)) {
        return Some(Cow::Borrowed(rest));
    }
    let plain = without_dots(path);
    behind_plainly(&plain, prefix.as_bytes()).map(|rest| Cow::Owned(rest.to_vec()))
}

fn behind_plainly<'a>(path: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let mut rest = path;
    for &expected in prefix {
        let (byte, length) = first_decoded(rest)?;
        rest = byte.eq_ignore_ascii_case(&expected).then(|| &rest[length..])?;
    }
    let ends = first_decoded(rest).is_none_or(|(byte, _)| byte == b'/');
    ends.then_some(rest)
}

/// The first byte of the path after decoding, and how many bytes encode it.
fn first_decoded(path: &[u8]) -> Option<(u8, usize)> {
    let digit = |at: usize| path.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    let (&first, high, low) = (path.first()?, digit(1), digit(2));
    match (first, high, low) {
        (b'%', Some(high), Some(low)) => Some((u8::try_from(high * 16 + low).ok()?, 3)),
        _ => Some((first, 1)),
    }
}

fn has_dots(path: &[u8]) -> bool {
    path.split(|&byte| byte == b'/').any(|segment| dots(segment) > 0)
}

/// 1 for `.`, 2 for `..`, encoded or not; else 0.
fn dots(segment: &[u8]) -> usize {
    // A longer segment cannot decode to two dots.
    if segment.len() > 6 {
        return 0;
    }
    let decoded: Cow<'_, [u8]> = percent_decode(segment).into();
    match &*decoded {
        b"." => 1,
        b".." => 2,
        _ => 0,
    }
}

/// RFC 3986 section 5.2.4, on a path that is still encoded.
fn without_dots(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    let mut last_dots = 0;
    for segment in path.split(|&byte| byte == b'/').skip(1) {
        last_dots = dots(segment);
        match last_dots {
            0 => kept.push(segment),
            1 => {}
            _ => drop(kept.pop()),
        }
    }
    let mut plain: Vec<u8> = kept.iter().flat_map(|segment| [b"/", *segment].concat()).collect();
    if last_dots > 0 || plain.is_empty() {
        plain.push(b'/');
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(strip: &str, add: &str, target: &str) -> Option<String> {
        let rewrite = Rewrite { strip: strip.into(), add: add.into() };
        rewrite.apply(target.as_bytes()).map(|target| String::from_utf8(target.into()).unwrap())
    }

    #[test]
    fn a_prefix_goes_and_the_rest_stays_as_it_was_sent() {
        let cases = [
            ("/api", "", "/api/users%2F1?a=%20&b", "/users%2F1?a=%20&b"),
            ("/api", "", "/api", "/"),
            ("/api", "", "/api?x", "/?x"),
            ("/api", "", "/api/", "/"),
            ("/api", "/v2", "/api/x/", "/v2/x/"),
            ("", "/v2", "/x", "/v2/x"),
            ("/caf\u{e9}", "", "/caf%C3%A9/x", "/x"),
            ("/api", "", "/%61pi/x%61", "/x%61"),
            ("/api", "", "/API/X", "/X"),
            ("/Api", "", "/./%41pi/x", "/x"),
            ("/api", "", "/other/../api/./x", "/x"),
            ("/api", "", "/api/a/..", "/"),
            ("/api", "", "/api/%zz", "/%zz"),
            ("/api", "", "/api%2Fx", "/%2Fx"),
            ("/a%", "", "/a%/x", "/x"),
        ];
        for (strip, add, target, expected) in cases {
            assert_eq!(rewritten(strip, add, target).as_deref(), Some(expected), "{target} without {strip}");
        }
    }

    #[test]
    fn a_path_without_the_prefix_is_left_to_the_caller() {
        for target in ["/apis", "/ap", "*", "", "/api/../x", "/x%2F..%2Fapi/y", "/%2e%2e/ap"] {
            assert_eq!(rewritten("/api", "", target), None, "{target}");
        }
    }

    #[test]
    fn a_path_that_an_app_could_read_as_one_outside_of_the_new_prefix_is_found() {
        let leaves = |add: &str, target: &str| {
            let rewrite = Rewrite { strip: "".into(), add: add.into() };
            rewrite.is_left_by(&rewrite.apply(target.as_bytes()).unwrap())
        };
        for target in [
            "/..%2fadmin",
            "/..%2F..%2fshop/b/x",
            "/a%2f..%2f..%2fadmin",
            "/..%5cadmin",
            "/%2e%2E%2Fadmin",
            "/..;/admin",
            "/a//..%2f..%2f..%2fadmin",
            "/%2f..%2f../admin",
        ] {
            assert!(leaves("/shop/a", target), "{target}");
        }
        for target in [
            "/",
            "/x",
            "/a%2Fb",
            "/a%2f..%2fb",
            "/a;b=c/d",
            "/.well-known/x",
            "/a//b",
            "/../x",
            "/x?a=..%2f..",
        ] {
            assert!(!leaves("/shop/a", target), "{target}");
            assert!(!leaves("/a;b/c%2fd//e", target), "{target}");
            assert!(!leaves("", target), "{target}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_rewritten_path_is_below_the_new_prefix(
            target in "/(api|%61pi|\\.\\./api|a)(/(\\.|\\.\\.|%2e%2E|a|api|%2F\\.\\.|%)){0,6}(\\?x)?"
        ) {
            if let Some(target) = rewritten("/api", "/v2", &target) {
                let path = target.split('?').next().unwrap();
                proptest::prop_assert!(path.starts_with("/v2/") && !has_dots(path.as_bytes()), "{target}");
            }
        }
    }
}
