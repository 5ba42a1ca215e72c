//! Validation of a stored response, and what a 304 or a response to HEAD changes in it (RFC 9111 sections 3.1, 3.2, 4.3). Knows no store.

use hostler_wire::parse_digits;

use super::response_directives::unstored_fields;
use super::{CachingRules, CookiesOfAnswers, Freshness};
use crate::{Head, Moment};

/// The fields of a request for validation. They replace the client's own `If-None-Match`, `If-Modified-Since`, `If-Range`
/// and `Range`. Without either, the request is an ordinary one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Validators<'a> {
    /// The value of `If-None-Match`.
    pub if_none_match: Option<&'a [u8]>,
    /// The value of `If-Modified-Since`.
    pub if_modified_since: Option<&'a [u8]>,
}

/// Which lines of a response are stored with it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kept {
    /// The names of fields that are not stored, in lower case.
    unstored: Vec<Box<str>>,
}

impl<'a> Validators<'a> {
    /// The validators of a stored response.
    pub fn of(stored: &'a impl Head) -> Self {
        Self {
            if_none_match: stored.lines("etag").next().filter(|tag| !tag.is_empty()),
            if_modified_since: stored.lines("last-modified").next(),
        }
    }
}

/// Whether a 304 is about the stored response (RFC 9111 section 4.3.4). If not, it is about an older one: the caller
/// forgets the stored response and sends the request again without validators.
pub fn confirms(stored: &impl Head, not_modified: &impl Head) -> bool {
    let same = |name| match (not_modified.lines(name).next(), stored.lines(name).next()) {
        (None, _) => None,
        (new, old) => Some(new == old),
    };
    let tag = match (not_modified.lines("etag").next(), stored.lines("etag").next()) {
        // A weak tag confirms the strong one: a proxy that compresses a response makes its tag weak.
        (Some(new), Some(old)) => Some(new == old || new.strip_prefix(b"W/") == Some(old)),
        (None, _) => None,
        (Some(_), None) => Some(false),
    };
    tag.or_else(|| same("last-modified")).unwrap_or(true)
}

/// What a response to HEAD says about the stored response to GET.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadComparison {
    /// A GET would get the same response.
    Same,
    /// A GET would get another response.
    Other,
    /// It has nothing to compare. By RFC 9111 section 4.3.5 the stored response would be updated in this case too. But
    /// then every HEAD would make a page that is generated for each request fresh again.
    Unknown,
}

/// Compares a stored 200 to a GET, with a body of `length` bytes, to a 200 to a HEAD (RFC 9111 section 4.3.5).
pub fn compare(stored: &impl Head, length: u64, to_head: &impl Head) -> HeadComparison {
    let says = |name| {
        let said = to_head.lines(name).next();
        said.map(|said| stored.lines(name).next() == Some(said))
    };
    let length_says = to_head.lines("content-length").next();
    let length_says = length_says.map(|said| parse_digits(said.trim_ascii()) == Some(length));
    match (says("etag"), says("last-modified"), length_says) {
        (Some(false), ..) | (_, Some(false), _) | (.., Some(false)) => HeadComparison::Other,
        (None, None, _) => HeadComparison::Unknown,
        (Some(true), ..) | (_, Some(true), _) => HeadComparison::Same,
    }
}

/// The freshness of a stored response that turned out to be outdated: it is stale from now on. `None` if it is stale
/// already.
pub fn outdated(freshness: &Freshness, now: Moment) -> Option<Freshness> {
    let is_fresh = freshness.millis_left(now) > 0;
    let lifetime = u32::try_from(freshness.age(now)).unwrap_or(u32::MAX);
    is_fresh.then_some(Freshness { lifetime, from_arrival: false, ..*freshness })
}

impl Kept {
    /// The lines to store of a response.
    pub fn of(rules: &CachingRules, status: u16, answer: &impl Head) -> Self {
        let mut unstored = unstored_fields(rules, status, answer);
        if rules.set_cookie == CookiesOfAnswers::Drop {
            unstored.push("set-cookie".into());
        }
        Self { unstored }
    }

    /// Whether a line with this name, in any case, is stored. The caller leaves out the lines that `Connection` names.
    pub fn keeps(&self, name: &[u8]) -> bool {
        !is_for_one_hop(name)
            && !self.unstored.iter().any(|unstored| unstored.as_bytes().eq_ignore_ascii_case(name))
    }

    /// Whether a line of a 304 replaces all stored lines with its name (RFC 9111 section 3.2).
    pub fn replaces(name: &[u8]) -> bool {
        // Fields that describe the encoding of the body stay with the body.
        const OF_THE_BODY: [&str; 8] = [
            "content-length",
            "content-encoding",
            "content-range",
            "content-md5",
            "content-digest",
            "repr-digest",
            "digest",
            "etag",
        ];
        !is_for_one_hop(name) && !is_one_of(name, &OF_THE_BODY)
    }

    /// Whether a stored line stays when this 304 has confirmed the response. `Date` and `Age` do not stay, because they would
    /// leave the response as old as it was. `Vary` stays, because its fields have selected the body, even if the 304 names
    /// fewer fields: the compression of Express names `Accept-Encoding` only where there is a body.
    pub fn outlives(name: &[u8], not_modified: &impl Head) -> bool {
        if is_one_of(name, &["date", "age"]) {
            return false;
        }
        if is_one_of(name, &["vary"]) {
            return true;
        }
        let is_there = |name: &str| not_modified.lines(name).next().is_some();
        !Self::replaces(name) || !std::str::from_utf8(name).is_ok_and(is_there)
    }
}

/// Fields for one connection or one proxy (RFC 9111 section 3.1).
fn is_for_one_hop(name: &[u8]) -> bool {
    const FOR_ONE_HOP: [&str; 11] = [
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authentication-info",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "http2-settings",
    ];
    is_one_of(name, &FOR_ONE_HOP)
}

fn is_one_of(name: &[u8], names: &[&str]) -> bool {
    names.iter().any(|one| one.as_bytes().eq_ignore_ascii_case(name))
}
