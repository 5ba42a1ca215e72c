//! Whether a request meets the conditions of a route. Knows no table of routes and no targets.
//!
//! A part of a request that has to be put together or decoded first goes into a buffer of the thread, so that conditions allocate nothing.

use std::cell::RefCell;
use std::iter::once;

use aws_lc_rs::digest::{SHA256, digest};
use hostler_config::{Conditions, MatchPattern, Saying, Wanted};
use hostler_wire::Fields;
use percent_encoding::percent_decode;

use super::sticky::cookies;
use super::{crawler, field_lines, prefetch};
use crate::exchange::Exchange;

thread_local! {
    /// Grows to the longest value of this thread, which the limit on heads bounds.
    static VALUE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The conditions of a route.
#[derive(Debug)]
pub struct When {
    conditions: Conditions,
    identity: u64,
}

impl When {
    /// The conditions of the route with this pattern.
    pub fn new(pattern: &MatchPattern, conditions: &Conditions) -> Self {
        let text = format!("{pattern} {conditions:?}");
        let hash = digest(&SHA256, text.as_bytes());
        let bytes = hash.as_ref().first_chunk().copied().unwrap_or_default();
        let says = |conditions: &Conditions| conditions.sayings.contains(&Saying::Crawler);
        crawler::prepare(says(conditions) || conditions.not.as_deref().is_some_and(says));
        // 0 stands for a route without conditions.
        Self { conditions: conditions.clone(), identity: u64::from_be_bytes(bytes).max(1) }
    }

    /// Tells the answers of this route in the cache from those of others. It is the same in every process with this pattern and these
    /// conditions, because several Hostlers may share a memcached. Never 0.
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// Whether the request meets all conditions.
    pub fn holds(&self, exchange: &Exchange) -> bool {
        results(&self.conditions, exchange).all(|is_met| is_met)
            && self.conditions.not.as_ref().is_none_or(|not| !results(not, exchange).any(|is_met| is_met))
    }
}

/// Whether each condition is met, without those in `not`.
fn results<'a>(conditions: &'a Conditions, exchange: &'a Exchange) -> impl Iterator<Item = bool> {
    let Conditions { methods, fields, parameters, cookies, clients, sayings, not: _ } = conditions;
    let head = &exchange.head;
    let method = once(methods).filter(|methods| !methods.is_empty());
    let client = once(clients).filter(|clients| !clients.is_empty());
    let saying = once(sayings).filter(|sayings| !sayings.is_empty());
    let method = method.map(|methods| methods.iter().any(|method| is_method(method, head.method())));
    let client = client.map(|networks| {
        let ip = exchange.client.ip.to_canonical();
        networks.iter().any(|network| network.contains(&ip))
    });
    let saying = saying.map(|sayings| sayings.iter().any(|saying| says(*saying, &head.fields)));
    let fields = fields.iter().map(|(name, wanted)| is_field(&head.fields, name, wanted));
    let parameters = parameters.iter().map(|(name, wanted)| is_parameter(head.target(), name, wanted));
    let cookies = cookies.iter().map(|(name, wanted)| is_cookie(&head.fields, name, wanted));
    method.chain(client).chain(saying).chain(fields).chain(parameters).chain(cookies)
}

/// GET includes HEAD, which has the same header as the answer to GET (RFC 9110 section 9.3.2).
fn is_method(wanted: &str, method: &[u8]) -> bool {
    wanted.as_bytes() == method || wanted == "GET" && method == b"HEAD"
}

fn says(saying: Saying, fields: &Fields) -> bool {
    match saying {
        Saying::Prefetch => prefetch::is_in_advance(fields),
        Saying::Crawler => crawler::of(fields).is_some(),
    }
}

fn is_field(fields: &Fields, name: &str, wanted: &Wanted) -> bool {
    let mut lines = fields.values(name);
    let first = lines.next();
    if lines.next().is_none() {
        return wanted.is_met(first);
    }
    VALUE.with_borrow_mut(|value| {
        value.clear();
        field_lines::join(fields, name, value);
        wanted.is_met(Some(value))
    })
}

/// The first parameter with this name counts.
fn is_parameter(target: &[u8], name: &str, wanted: &Wanted) -> bool {
    let query = memchr::memchr(b'?', target).map_or(&b""[..], |at| &target[at + 1..]);
    let mut parameters = query.split(|&byte| byte == b'&').map(|parameter| {
        let end = memchr::memchr(b'=', parameter);
        (&parameter[..end.unwrap_or(parameter.len())], end.map_or(&b""[..], |end| &parameter[end + 1..]))
    });
    let found = parameters.find(|(own, _)| decoded(own, |own| own == name.as_bytes()));
    match found {
        None => wanted.is_met(None),
        Some((_, value)) => decoded(value, |value| wanted.is_met(Some(value))),
    }
}

/// As a form encodes it: percent-decoded, with a space for each plus sign.
fn decoded<T>(text: &[u8], look: impl FnOnce(&[u8]) -> T) -> T {
    if memchr::memchr2(b'%', b'+', text).is_none() {
        return look(text);
    }
    VALUE.with_borrow_mut(|value| {
        value.clear();
        for (at, part) in text.split(|&byte| byte == b'+').enumerate() {
            value.extend_from_slice(if at > 0 { b" " } else { b"" });
            value.extend(percent_decode(part));
        }
        look(value)
    })
}

/// The first cookie with this name counts: browsers send the one with the longest path first (RFC 6265 section 5.4).
fn is_cookie(fields: &Fields, name: &str, wanted: &Wanted) -> bool {
    let value = cookies(fields, name).next();
    let inner = value.and_then(|value| value.strip_prefix(b"\"")?.strip_suffix(b"\""));
    wanted.is_met(inner.or(value))
}

#[cfg(test)]
mod tests;
