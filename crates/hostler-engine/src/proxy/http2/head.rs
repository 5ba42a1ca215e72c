//! Converts heads between HTTP/1.1, which the rest of Hostler uses, and HTTP/2. Knows no connections.

use hostler_wire::{
    CallError, Fields, Limits, Name, ResponseHead, ScanError, write_field, write_head_end, write_status_line,
};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, Uri, Version};

/// Characters that a target may contain but a URI may not, and that `http` refuses. They are sent percent-encoded.
const NOT_IN_URIS: &[u8] = b"\"<>\\^`{|}";

/// What each field counts besides its name and its value.
const FIELD_OVERHEAD: usize = 32;

/// Converts the head of a request for a member. None if HTTP/2 cannot express it.
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

/// The size of a head as a member counts it (RFC 9113 section 6.5.2).
pub(super) fn size(request: &Request<()>) -> usize {
    let uri = request.uri();
    let pseudo_fields = [
        (":method", Some(request.method().as_str())),
        (":scheme", uri.scheme_str()),
        (":authority", uri.authority().map(Authority::as_str)),
        (":path", uri.path_and_query().map(PathAndQuery::as_str)),
    ];
    let pseudo_fields = pseudo_fields.iter().map(|(name, value)| name.len() + value.map_or(0, str::len));
    let fields = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len());
    pseudo_fields.chain(fields).map(|length| length + FIELD_OVERHEAD).sum()
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

/// Reads the head of an answer as strictly as in HTTP/1.1.
pub(super) fn answer(
    into: &mut ResponseHead,
    status: u16,
    fields: &HeaderMap,
    limits: &Limits,
) -> Result<(), CallError> {
    // A 101 exists only in HTTP/1.1 (RFC 9113 section 8.6).
    if status == 101 {
        return Err(CallError::Switched);
    }
    let mut text = Vec::with_capacity(512);
    write_status_line(&mut text, status, b"");
    for (name, value) in fields {
        write_field(&mut text, name.as_str().as_bytes(), value.as_bytes());
    }
    write_head_end(&mut text);
    if text.len() > limits.max_size {
        return Err(ScanError::TooLarge(limits.max_size).into());
    }
    Ok(into.parse(&text, limits)?)
}

/// Trailers, of at most so many bytes.
pub(super) fn trailers(fields: &HeaderMap, most: usize) -> Result<Option<Fields>, CallError> {
    let mut found = Fields::default();
    fields.iter().for_each(|(name, value)| found.add(name.as_str().as_bytes(), value.as_bytes()));
    if found.bytes().len() > most {
        return Err(ScanError::TooLarge(most).into());
    }
    Ok((!found.is_empty()).then_some(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_head_counts_each_field() {
        let text = b"GET /a?b HTTP/1.1\r\nHost: a.test\r\nX-One: 1\r\n\r\n";
        let request = request(text, Scheme::HTTP, false).unwrap();
        let words = ":methodGET:schemehttp:authoritya.test:path/a?bx-one1";
        assert_eq!(size(&request), words.len() + 5 * FIELD_OVERHEAD);
    }

    #[test]
    fn trailers_have_a_limit() {
        let fields = HeaderMap::from_iter([("x-sum".parse().unwrap(), "1".parse().unwrap())]);
        let length = "x-sum: 1\r\n".len();
        assert_eq!(trailers(&fields, length).unwrap().unwrap().len(), 1);
        assert!(trailers(&fields, length - 1).is_err());
        assert!(trailers(&HeaderMap::new(), 0).unwrap().is_none());
    }
}
