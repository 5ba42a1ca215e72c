//! Asking whether a stored answer is still good, and what the word that it is changes of it (RFC 9111 sections 3.1, 3.2, 4.3).

use hostler_wire::parse_digits;

use super::heard::unstored_fields;
use super::{CachingRules, CookiesOfAnswers, Freshness};
use crate::{Head, Moment};

/// The lines that a request for validation carries instead of the client's own `If-None-Match`, `If-Modified-Since`, `If-Range` and
/// `Range`. With neither, the request is an ordinary one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Validators<'a> {
    /// The value of `If-None-Match`.
    pub if_none_match: Option<&'a [u8]>,
    /// The value of `If-Modified-Since`.
    pub if_modified_since: Option<&'a [u8]>,
}

/// Which lines of an answer are stored with it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kept {
    /// In lower case.
    unstored: Vec<Box<str>>,
}

impl<'a> Validators<'a> {
    /// Of a stored answer.
    pub fn of(stored: &'a impl Head) -> Self {
        Self {
            if_none_match: stored.lines("etag").next().filter(|tag| !tag.is_empty()),
            if_modified_since: stored.lines("last-modified").next(),
        }
    }
}

/// Whether a 304 is about the stored answer (RFC 9111 section 4.3.4). If not, it is about something that is gone: what is stored is
/// forgotten, and the request sent once more without validators.
pub fn confirms(stored: &impl Head, not_modified: &impl Head) -> bool {
    let same = |name| match (not_modified.lines(name).next(), stored.lines(name).next()) {
        (None, _) => None,
        (new, old) => Some(new == old),
    };
    let tag = match (not_modified.lines("etag").next(), stored.lines("etag").next()) {
        // A weak tag confirms the strong one: whoever compresses what he sends weakens it on the way.
        (Some(new), Some(old)) => Some(new == old || new.strip_prefix(b"W/") == Some(old)),
        (None, _) => None,
        (Some(_), None) => Some(false),
    };
    tag.or_else(|| same("last-modified")).unwrap_or(true)
}

/// What an answer to HEAD says of the stored answer to GET.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likeness {
    /// A GET would bring the same.
    Same,
    /// It would bring another one.
    Other,
    /// It says nothing by which one could tell. RFC 9111 would have the stored answer updated then as well (section 4.3.5); but a
    /// page that is made for each request would be declared good by every HEAD.
    Unknown,
}

/// Compares a stored 200 to GET, with a body of `length` bytes, to a 200 to HEAD (RFC 9111 section 4.3.5).
pub fn compare(stored: &impl Head, length: u64, to_head: &impl Head) -> Likeness {
    let says = |name| {
        let said = to_head.lines(name).next();
        said.map(|said| stored.lines(name).next() == Some(said))
    };
    let length_says = to_head.lines("content-length").next();
    let length_says = length_says.map(|said| parse_digits(said.trim_ascii()) == Some(length));
    match (says("etag"), says("last-modified"), length_says) {
        (Some(false), ..) | (_, Some(false), _) | (.., Some(false)) => Likeness::Other,
        (None, None, _) => Likeness::Unknown,
        (Some(true), ..) | (_, Some(true), _) => Likeness::Same,
    }
}

/// The terms of a stored answer that has turned out to be another one than would come: it is stale from now on. None if it is so
/// already.
pub fn outdated(freshness: &Freshness, now: Moment) -> Option<Freshness> {
    let is_fresh = freshness.millis_left(now) > 0;
    is_fresh
        .then(|| Freshness { lifetime: u32::try_from(freshness.age(now)).unwrap_or(u32::MAX), ..*freshness })
}

impl Kept {
    /// Of an answer that is about to be stored.
    pub fn of(rules: &CachingRules, status: u16, answer: &impl Head) -> Self {
        let mut unstored = unstored_fields(rules, status, answer);
        if rules.set_cookie == CookiesOfAnswers::Drop {
            unstored.push("set-cookie".into());
        }
        Self { unstored }
    }

    /// Whether a line with this name, in any case, is stored. Lines that `Connection` names are the caller's to leave out.
    pub fn keeps(&self, name: &[u8]) -> bool {
        !is_for_one_hop(name)
            && !self.unstored.iter().any(|unstored| unstored.as_bytes().eq_ignore_ascii_case(name))
    }

    /// Whether a line of a 304 comes into the stored head, in place of all lines there with its name (RFC 9111 section 3.2).
    pub fn replaces(name: &[u8]) -> bool {
        // What says how the body is to be read stays with the body.
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

    /// Whether a stored line stays when this 304 has confirmed it. A stored `Date` or `Age` would leave the answer as old as it was.
    pub fn outlives(name: &[u8], not_modified: &impl Head) -> bool {
        if is_one_of(name, &["date", "age"]) {
            return false;
        }
        let is_there = |name: &str| not_modified.lines(name).next().is_some();
        !Self::replaces(name) || !std::str::from_utf8(name).is_ok_and(is_there)
    }
}

/// Fields about one connection, or about one proxy (RFC 9111 section 3.1).
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
