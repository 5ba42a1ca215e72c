//! Heads between HTTP/1.1, in which everything else thinks, and HTTP/2. Knows no connections.

use hostler_wire::{
    CallError, Fields, Limits, Name, ResponseHead, may_trail, write_field, write_head_end, write_status_line,
};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, Uri, Version};

/// What a target may have in it that a URI may not, and `http` does not take: it is sent as what it stands for.
const NOT_IN_URIS: &[u8] = b"\"<>\\^`{|}";

/// A request's head for a member, from the same head in HTTP/1.1. None if HTTP/2 has no way to say it.
pub(super) fn request(text: &[u8], scheme: Scheme, takes_trailers: bool) -> Option<Request<()>> {
    let mut lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let mut words = lines.next()?.split(|&byte| byte == b' ');
    let (method, target) = (Method::from_bytes(words.next()?).ok()?, words.next()?);
    let mut fields = HeaderMap::new();
    let mut authority = None;
    for line in lines.take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_at_checked(memchr::memchr(b':', line)?)?;
        let value = value[1..].trim_ascii();
        match Name::of(name) {
            Name::Host => authority = Some(Authority::try_from(value).ok()?),
            known if known.is_hop_by_hop() => {}
            _ => {
                fields.append(HeaderName::from_bytes(name).ok()?, HeaderValue::from_bytes(value).ok()?);
            }
        }
    }
    if takes_trailers {
        fields.insert(http::header::TE, HeaderValue::from_static("trailers"));
    }
    let path = PathAndQuery::try_from(encoded(target)).ok()?;
    let uri = Uri::builder().scheme(scheme).authority(authority?).path_and_query(path).build().ok()?;
    let mut request = Request::new(());
    (*request.method_mut(), *request.uri_mut(), *request.version_mut()) = (method, uri, Version::HTTP_2);
    *request.headers_mut() = fields;
    Some(request)
}

fn encoded(target: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(target.len());
    for &byte in target {
        match byte {
            b'!'..=b'~' if !NOT_IN_URIS.contains(&byte) => out.push(byte),
            _ => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    out
}

/// Reads an answer's head as strictly as one in HTTP/1.1.
pub(super) fn answer(
    into: &mut ResponseHead,
    status: u16,
    fields: &HeaderMap,
    limits: &Limits,
) -> Result<(), CallError> {
    // It may switch nothing: that is for HTTP/1.1 (RFC 9113 section 8.6).
    if status == 101 {
        return Err(CallError::Switched);
    }
    let mut text = Vec::with_capacity(512);
    write_status_line(&mut text, status, b"");
    for (name, value) in fields {
        write_field(&mut text, name.as_str().as_bytes(), value.as_bytes());
    }
    write_head_end(&mut text);
    Ok(into.parse(&text, limits)?)
}

/// Trailer fields of an answer.
pub(super) fn trailers(fields: &HeaderMap) -> Option<Fields> {
    let mut found = Fields::default();
    fields.iter().for_each(|(name, value)| found.add(name.as_str().as_bytes(), value.as_bytes()));
    (!found.is_empty()).then_some(found)
}

/// Trailer fields of a request.
pub(super) fn trailers_to_send(fields: &Fields) -> HeaderMap {
    let mut found = HeaderMap::new();
    for (_, name, value) in fields.iter().filter(|(_, name, _)| may_trail(name)) {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            found.append(name, value);
        }
    }
    found
}
