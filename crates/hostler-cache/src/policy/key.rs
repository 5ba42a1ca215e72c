//! Under which key an answer is stored: host, path and query. Knows no store.

/// What of a query belongs to the key. Names are compared as they are sent; one that ends in `*` stands for all that begin so.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Query {
    /// All, as it was sent.
    #[default]
    AsSent,
    /// All, in whichever order its parameters come. Those with one name keep theirs.
    Sorted,
    /// Only these parameters, sorted.
    Only(Vec<Box<str>>),
    /// All but these parameters, sorted.
    Without(Vec<Box<str>>),
    /// Nothing.
    Ignored,
}

/// Writes the key of a request into `into`, which is emptied before: host (lower case, without port 80 and 443), path, and what
/// `query` leaves of the query. `target`: as in the request line, in origin form. Method, scheme and `Vary` are not in it.
pub fn write_key(query: &Query, host: &[u8], target: &[u8], into: &mut Vec<u8>) {
    into.clear();
    let host = host.strip_suffix(b":80").or_else(|| host.strip_suffix(b":443")).unwrap_or(host);
    into.extend(host.iter().map(u8::to_ascii_lowercase));
    let mark = target.iter().position(|&byte| byte == b'?').unwrap_or(target.len());
    let (path, sent) = target.split_at(mark);
    into.extend_from_slice(path);
    match (query, sent.split_first()) {
        (Query::Ignored, _) | (_, None) => {}
        (Query::AsSent, Some(_)) => into.extend_from_slice(sent),
        (query, Some((_, sent))) => write_parameters(query, sent, into),
    }
}

fn write_parameters(query: &Query, sent: &[u8], into: &mut Vec<u8>) {
    let is_one_of = |names: &[Box<str>], name: &[u8]| {
        names.iter().map(|one| one.as_bytes()).any(|one| match one.strip_suffix(b"*") {
            Some(start) => name.starts_with(start),
            None => name == one,
        })
    };
    let belongs = |parameter: &&[u8]| match query {
        Query::Only(names) => is_one_of(names, name_of(parameter)),
        Query::Without(names) => !is_one_of(names, name_of(parameter)),
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

/// Writes the key of `http://host/path?query`, with or without the scheme, as an operator names what he wants purged. False if it
/// is none.
pub fn write_key_of_url(query: &Query, url: &str, into: &mut Vec<u8>) -> bool {
    let is_url = url.bytes().all(|byte| byte.is_ascii_graphic());
    let rest = match url.split_once("://") {
        Some((scheme, rest))
            if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") =>
        {
            rest
        }
        // A query may hold another URL.
        Some((scheme, _)) if !scheme.contains('/') => return false,
        _ => url,
    };
    let rest = rest.split('#').next().unwrap_or_default();
    let (host, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let root = if target.starts_with('/') { "" } else { "/" };
    write_key(query, host.as_bytes(), format!("{root}{target}").as_bytes(), into);
    is_url && !host.is_empty()
}
