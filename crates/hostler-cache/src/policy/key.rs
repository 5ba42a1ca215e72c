//! The key of a stored response: host, path and query. Knows no store.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::iter;

use percent_encoding::{CONTROLS, percent_decode, utf8_percent_encode};
use url::Host;

/// Which part of a query belongs to the key. Names are compared as they are sent. A name that ends in `*` stands for all
/// names with that beginning.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Query {
    /// The whole query, as it was sent.
    #[default]
    AsSent,
    /// The whole query with its parameters sorted. Parameters with the same name keep their order.
    Sorted,
    /// Only these parameters, sorted. One that an app could read as one of them belongs to the key, too: with percent-encoded or
    /// capital letters, with brackets, dots or leading spaces, or after a semicolon. Otherwise a client could change what the app
    /// reads, but not the key.
    Only(Vec<Box<str>>),
    /// All but these parameters, sorted. One of these belongs to the key if an app could read another one after a semicolon in it.
    Without(Vec<Box<str>>),
    /// No part.
    Ignored,
}

/// A query with more parameters counts as it was sent. Apps read only so many, such as Express and Koa the first 1000, and count empty ones, too:
/// if some of those that an app counts were not in the key, a client could choose where the app stops to read.
const MOST_PARAMETERS: usize = 100;

/// Writes the key of a request into `into`, which is emptied first.
///
/// The key is the host (lower case, without the default port of the scheme), the path, and the part of the query that
/// `query` selects. `secure`: the request came over TLS, as its member is told. `target`: as in the request line, in
/// origin form. Method, scheme and `Vary` are not part of the key.
pub fn write_key(query: &Query, secure: bool, host: &[u8], target: &[u8], into: &mut Vec<u8>) {
    into.clear();
    into.extend(without_default_port(secure, host).iter().map(u8::to_ascii_lowercase));
    let mark = target.iter().position(|&byte| byte == b'?').unwrap_or(target.len());
    let (path, sent) = target.split_at(mark);
    into.extend_from_slice(path);
    match (query, sent.split_first()) {
        (Query::Ignored, _) | (_, None) => {}
        (Query::Only(names), _) if names.is_empty() => {}
        (Query::AsSent, Some(_)) => into.extend_from_slice(sent),
        (_, Some((_, parameters))) if has_very_many(parameters) => into.extend_from_slice(sent),
        (query, Some((_, parameters))) => write_parameters(query, parameters, into),
    }
}

fn has_very_many(parameters: &[u8]) -> bool {
    parameters.split(|&byte| byte == b'&').nth(MOST_PARAMETERS).is_some()
}

/// Whether a member sees the same host in `Host` as in the key. `A.test` and `a.test:80` have the key of `a.test`. But a
/// page that repeats its `Host` (in `Access-Control-Allow-Origin`, for example) differs for them, so such a response must
/// not be stored for others.
pub fn is_host_of_key(secure: bool, host: &[u8]) -> bool {
    !host.is_empty()
        && without_default_port(secure, host).len() == host.len()
        && !host.iter().any(u8::is_ascii_uppercase)
}

/// Removes port 80 of `http` and 443 of `https`. A URL with another port names another server.
fn without_default_port(secure: bool, host: &[u8]) -> &[u8] {
    host.strip_suffix(if secure { b":443".as_slice() } else { b":80" }).unwrap_or(host)
}

fn write_parameters(query: &Query, sent: &[u8], into: &mut Vec<u8>) {
    let is_one_of = |names: &[Box<str>], name: &[u8]| {
        names.iter().map(|one| one.as_bytes()).any(|one| match one.strip_suffix(b"*") {
            Some(start) => name.starts_with(start),
            None => name == one,
        })
    };
    let plain_names = LazyCell::new(|| plain_names(query));
    let belongs = |parameter: &&[u8]| match query {
        Query::Only(names) => read_names(parameter).any(|name| {
            let is_any_odd = || is_odd(name) || names.iter().any(|one| is_odd(one.as_bytes()));
            is_one_of(names, name) || is_any_odd() && could_be_read_as(&plain_names, name)
        }),
        Query::Without(names) => !read_names(parameter).all(|name| is_one_of(names, name)),
        Query::AsSent | Query::Sorted | Query::Ignored => true,
    };
    let parameters = sent.split(|&byte| byte == b'&').filter(|parameter| !parameter.is_empty());
    let mut parameters: Vec<_> = parameters.filter(belongs).collect();
    parameters.sort_by_key(|parameter| name_of(parameter));
    for (at, parameter) in parameters.into_iter().enumerate() {
        into.push(if at == 0 { b'?' } else { b'&' });
        into.extend_from_slice(parameter);
    }
}

fn name_of(parameter: &[u8]) -> &[u8] {
    parameter.split(|&byte| byte == b'=').next().unwrap_or_default()
}

/// The name of a parameter, and those that an app reads in it that separates parameters by `;`, too, such as one with Rack 2.
fn read_names(parameter: &[u8]) -> impl Iterator<Item = &[u8]> {
    let parts = parameter.contains(&b';').then(|| parameter.split(|&byte| byte == b';'));
    let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
    iter::once(parameter).chain(parts).map(name_of)
}

/// The names in [`plain`] form, each with whether it stands for all names with that beginning.
fn plain_names(query: &Query) -> Vec<(Vec<u8>, bool)> {
    match query {
        Query::Only(names) => names.iter().map(|name| plain_listed(name.as_bytes())).collect(),
        _ => Vec::new(),
    }
}

fn plain_listed(name: &[u8]) -> (Vec<u8>, bool) {
    name.strip_suffix(b"*").map_or_else(|| (plain(name), false), |start| (plain(start), true))
}

/// Whether an app could read a name as one of these: `%71`, `q[]`, `q[x]`, `[q]`, `+q` and `Q` as `q`, and `a.b` as `a_b`. Express reads
/// those with brackets so, PHP the space and the dot, and ASP.NET the capital letter.
fn could_be_read_as(plain_names: &[(Vec<u8>, bool)], name: &[u8]) -> bool {
    let name = plain(name);
    plain_names.iter().any(|(one, is_beginning)| {
        let rest = name.strip_prefix(one.as_slice());
        rest.is_some_and(|rest| *is_beginning || rest.is_empty() || rest.starts_with(b"["))
    })
}

/// Whether the [`plain`] form of a name can be another one. `_` does not count: the other name is odd then.
fn is_odd(name: &[u8]) -> bool {
    name.iter().any(|byte| byte.is_ascii_uppercase() || b"%+[.".contains(byte))
}

/// A name without encoding, capital letters and leading spaces, up to its first NUL, with `_` for other spaces and dots, and with one `[`
/// between its parts.
fn plain(name: &[u8]) -> Vec<u8> {
    let spaced: Vec<u8> = name.iter().map(|&byte| if byte == b'+' { b' ' } else { byte }).collect();
    let decoded: Vec<u8> = percent_decode(&spaced).collect();
    let read = decoded.split(|&byte| byte == 0).next().unwrap_or_default().trim_ascii_start();
    let parts = read.split(|byte| b"[]".contains(byte)).filter(|part| !part.is_empty());
    let mut plain = parts.collect::<Vec<_>>().join(&b"["[..]);
    for byte in &mut plain {
        *byte = if b" .".contains(byte) { b'_' } else { byte.to_ascii_lowercase() };
    }
    plain
}

/// The keys of `http://host/path?query`, as an operator names a URL to purge: one key, or without the scheme
/// (`host:80/path`) the keys with each scheme. Characters outside of ASCII are written as browsers send them. `None` if it is
/// not a URL.
pub fn keys_of_url(query: &Query, url: &str) -> Option<Vec<Vec<u8>>> {
    let (schemes, rest): (&[bool], _) = match url.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (&[false], rest),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (&[true], rest),
        // A query may contain another URL.
        Some((scheme, _)) if !scheme.contains('/') => return None,
        _ => (&[false, true], url),
    };
    let rest = rest.split('#').next().unwrap_or_default();
    let (host, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if host.is_empty() || !url.bytes().all(|byte| !byte.is_ascii() || byte.is_ascii_graphic()) {
        return None;
    }
    let host = sent_host(host)?;
    let root = if target.starts_with('/') { "" } else { "/" };
    let target = format!("{root}{}", utf8_percent_encode(target, CONTROLS));
    let key = |secure: &bool| {
        let mut key = Vec::new();
        write_key(query, *secure, host.as_bytes(), target.as_bytes(), &mut key);
        key
    };
    let mut keys: Vec<_> = schemes.iter().map(key).collect();
    keys.dedup();
    Some(keys)
}

/// A name outside of ASCII in its form for DNS (`xn--`).
fn sent_host(host: &str) -> Option<Cow<'_, str>> {
    if host.is_ascii() {
        return Some(host.into());
    }
    let (name, port) = host.split_at(host.rfind(':').unwrap_or(host.len()));
    let name = Host::parse(name).ok()?;
    Some(format!("{name}{port}").into())
}
