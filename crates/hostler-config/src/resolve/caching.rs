//! The meaning of a route's `cache` and `collapse`. Knows no responses.

use std::time::Duration;

use hostler_cache::{self as cache, CachingRules, CookiesOfAnswers, Ttl};
use http::HeaderName;

use super::Resolver;
use crate::document::KeyPath;
use crate::file::{self, CacheSwitch, Precedence, Query, SetCookie, Storing};
use crate::resolved::Caching;

impl Resolver<'_> {
    /// `None` for a route that neither stores nor shares responses.
    pub(super) fn caching(&mut self, path: &KeyPath, written: &file::Route) -> Option<Caching> {
        let collapses = written.collapse;
        let (rules, query) = match &written.cache {
            None | Some(CacheSwitch::Word(Storing::Off)) if collapses => {
                return Some(Caching { stores: false, collapses, ..Caching::default() });
            }
            None | Some(CacheSwitch::Word(Storing::Off)) => return None,
            Some(CacheSwitch::Word(Storing::Standard)) => Default::default(),
            Some(CacheSwitch::Value(table)) => {
                let path = path.key("cache");
                self.check_names(&path, table);
                (self.rules(&path, table), self.query(&path, table))
            }
        };
        Some(Caching { rules, query, stores: true, collapses })
    }

    /// With a name that no request has, pages of one client or of one parameter would reach others.
    fn check_names(&mut self, path: &KeyPath, table: &file::Caching) {
        let list = path.key("personal_cookies");
        for (index, name) in table.personal_cookies.iter().enumerate() {
            let here = list.index(index);
            // Some apps have names that are no tokens, such as `user[id]`.
            if name.is_empty() || name.trim() != name || name.contains(['=', ';']) {
                self.refuse(&here, format!("{name:?} is not a valid name of a cookie"));
            } else if name.contains('*') {
                let why = "is compared as a whole name: * has no special meaning here; write each name";
                let written = self.document.original(&here);
                self.report.warn(self.document.place_of_value(&here), format!("{written}: {name:?} {why}"));
            }
        }
        let query_only = table.query_only.as_deref().unwrap_or_default();
        for (key, names) in [("query_only", query_only), ("query_without", &*table.query_without)] {
            let is_sent = |byte: u8| byte.is_ascii_graphic() && !b"&=#".contains(&byte);
            for (index, name) in names.iter().enumerate().filter(|(_, name)| !name.bytes().all(is_sent)) {
                let why = "is not a name as requests have it: write %XX for blanks and non-ASCII characters";
                self.refuse(&path.key(key).index(index), format!("{name:?} {why}"));
            }
        }
    }

    fn rules(&mut self, path: &KeyPath, table: &file::Caching) -> CachingRules {
        let mut ttls = Vec::new();
        for (status, ttl) in &table.ttl_by_status {
            match status.parse::<u16>() {
                Ok(status @ 200..=599) if !matches!(status, 206 | 304) => {
                    ttls.push(Ttl { seconds: seconds(ttl.0), statuses: vec![status] });
                }
                _ => {
                    let why = "is not a status whose response can be stored, such as 404";
                    self.refuse(&path.key("ttl_by_status").key(status), why);
                }
            }
        }
        ttls.extend(table.ttl.map(|ttl| Ttl { seconds: seconds(ttl.0), statuses: Vec::new() }));
        if table.precedence != Precedence::Answer && ttls.is_empty() && !self.report.has_errors() {
            self.refuse(&path.key("precedence"), "needs ttl or ttl_by_status");
        }
        let mut targeted = Vec::new();
        for (index, name) in table.targeted.iter().enumerate() {
            match name.parse::<HeaderName>() {
                Ok(name) => targeted.push(name.as_str().into()),
                Err(_) => {
                    self.refuse(&path.key("targeted").index(index), "is not a valid name of a header field")
                }
            }
        }
        CachingRules {
            ttls,
            precedence: match table.precedence {
                Precedence::Answer => cache::Precedence::Answer,
                Precedence::Lifetime => cache::Precedence::Lifetime,
                Precedence::Route => cache::Precedence::Route,
            },
            longest: table.max_ttl.map(|ttl| seconds(ttl.0)),
            stale_while_revalidate: seconds(table.stale_while_revalidate.0),
            stale_if_error: seconds(table.stale_if_error.0),
            heuristics: table.heuristics,
            set_cookie: match table.set_cookie {
                SetCookie::Refuse => CookiesOfAnswers::Refuse,
                SetCookie::Drop => CookiesOfAnswers::Drop,
                SetCookie::Keep => CookiesOfAnswers::Keep,
            },
            personal_cookies: boxed(&table.personal_cookies),
            obeys_requests: table.request_directives,
            targeted,
        }
    }

    fn query(&mut self, path: &KeyPath, table: &file::Caching) -> cache::Query {
        let lists =
            [("query_only", table.query_only.is_some()), ("query_without", !table.query_without.is_empty())];
        let mut there = lists.iter().filter(|(_, there)| *there).map(|(key, _)| *key);
        if let Some(first) = there.next() {
            let other = there.next().or((table.query != Query::AsSent).then_some("query"));
            if let Some(other) = other {
                self.refuse(&path.key(other), format!("cannot be set together with {first}"));
            }
        }
        match (&table.query_only, &*table.query_without, table.query) {
            (Some(only), _, _) => cache::Query::Only(boxed(only)),
            (None, [], Query::AsSent) => cache::Query::AsSent,
            (None, [], Query::Sorted) => cache::Query::Sorted,
            (None, [], Query::Ignored) => cache::Query::Ignored,
            (None, without, _) => cache::Query::Without(boxed(without)),
        }
    }
}

/// Whole seconds, because HTTP uses seconds. Less than one second is one second.
fn seconds(period: Duration) -> u32 {
    u32::try_from(period.as_millis().div_ceil(1000)).unwrap_or(u32::MAX)
}

fn boxed(names: &[String]) -> Vec<Box<str>> {
    names.iter().map(|name| name.as_str().into()).collect()
}
