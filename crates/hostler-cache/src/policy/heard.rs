//! What an answer says to a cache, as far as the route listens, and what of it forbids to keep it. Knows no times.

use super::directives::{Says, Scope};
use super::{CachingRules, CookiesOfAnswers, NotStored, Precedence, RequestDirectives};
use crate::Head;

/// What an answer says, as far as the route listens.
pub(super) struct Heard {
    pub says: Says,
    /// A targeted field said it: `Expires` and `Pragma` count as little as `Cache-Control` (RFC 9213 section 2.1).
    pub targeted: bool,
}

impl Heard {
    pub fn of(rules: &CachingRules, status: u16, answer: &impl Head) -> Self {
        if rules.precedence == Precedence::Route && rules.ttl(status).is_some() {
            return Self { says: Says::default(), targeted: true };
        }
        let targeted = rules.targeted.iter().find_map(|name| Says::of_targeted(answer.lines(name)));
        let (mut says, targeted) = match targeted {
            Some(says) => (says, true),
            None => (Says::of(answer.lines("cache-control")), false),
        };
        let is_silent = !targeted && answer.lines("cache-control").next().is_none();
        if is_silent && answer.lines("pragma").any(|pragma| pragma.eq_ignore_ascii_case(b"no-cache")) {
            // In an answer it means nothing by the book, but whoever says it never means that it may be kept.
            says.no_cache = Scope::Whole;
        }
        if rules.precedence == Precedence::Lifetime
            && rules.ttl(status).is_some()
            && says.no_cache == Scope::Whole
        {
            says.no_cache = Scope::Absent;
        }
        Self { says, targeted }
    }

    /// RFC 9111 section 3.5.
    pub fn is_shared(&self) -> bool {
        self.says.public || self.says.must_revalidate || self.says.s_maxage.given().is_some()
    }
}

/// All that forbids to keep an answer, whatever its lifetime (RFC 9111 section 3).
pub(super) fn may_be_kept(
    rules: &CachingRules,
    request_directives: &RequestDirectives,
    status: u16,
    answer: &impl Head,
    heard: &Heard,
) -> Result<(), NotStored> {
    let says = &heard.says;
    // 206 is a part, 304 is none, 412 and 416 are about what a request asked besides.
    if status < 200
        || matches!(status, 206 | 304 | 412 | 416)
        || says.must_understand && !is_understood(status)
    {
        return Err(NotStored::Status);
    }
    if request_directives.no_store || says.no_store && !says.must_understand {
        return Err(NotStored::NoStore);
    }
    if says.private == Scope::Whole {
        return Err(NotStored::Private);
    }
    if request_directives.authorized && !heard.is_shared() {
        return Err(NotStored::Authorized);
    }
    let refuses_cookies = rules.set_cookie == CookiesOfAnswers::Refuse && !lists(says, "set-cookie");
    if request_directives.personal || refuses_cookies && answer.lines("set-cookie").next().is_some() {
        return Err(NotStored::Cookie);
    }
    let mut varies = answer.lines("vary").flat_map(|line| line.split(|&byte| byte == b','));
    if varies.any(|name| name.trim_ascii() == b"*") {
        return Err(NotStored::Vary);
    }
    Ok(())
}

/// Whether a field with this name is left out of what is stored.
fn lists(says: &Says, name: &str) -> bool {
    unstored(says).any(|unstored| unstored == name)
}

/// The fields that `private="..."` and `no-cache="..."` name: they are not stored, as that is the same to whoever is served.
fn unstored(says: &Says) -> impl Iterator<Item = &str> {
    says.private.fields().iter().chain(says.no_cache.fields()).map(|name| &**name)
}

/// As [`unstored`], of an answer.
pub(super) fn unstored_fields(rules: &CachingRules, status: u16, answer: &impl Head) -> Vec<Box<str>> {
    unstored(&Heard::of(rules, status, answer).says).map(Box::from).collect()
}

/// The final statuses of RFC 9110 and its kin: none of them asks anything of a cache that we do not do.
fn is_understood(status: u16) -> bool {
    matches!(status, 200..=205 | 300..=303 | 307 | 308 | 400..=417 | 421 | 422 | 426 | 428 | 429 | 431 | 451 | 500..=505)
}
