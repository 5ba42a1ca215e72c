//! Heads between HTTP/2 and what the rest of us knows: a request's as strict as one that came in HTTP/1.1. Knows no streams.

use hostler_wire::{BodyLength, Fields, HeadError, Limits, RequestHead, ResponseHead};
use http::header::{
    CONTENT_LENGTH, COOKIE, DATE, HOST, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
};
use http::{HeaderMap, Method, Request, Response, StatusCode};

use super::websocket::Key;
use crate::exchange::Edits;
use crate::gateway::Refusal;
use crate::listen::check;
use crate::listen::head::{Framing, is_kept, with_date};

/// Puts a request's head together as it would have come in HTTP/1.1, and checks it by the same rules. With a key, it is the
/// CONNECT that wants a WebSocket.
pub(super) fn read_request<B>(
    head: &mut RequestHead,
    request: &Request<B>,
    key: Option<&Key>,
    limits: &Limits,
) -> Result<BodyLength, Refusal> {
    let uri = request.uri();
    let target = uri.path_and_query().ok_or(Refusal::Connect)?.as_str();
    let method = match (request.method(), key) {
        (&Method::CONNECT, None) => return Err(Refusal::Connect),
        (_, Some(_)) => Method::GET.as_str(),
        (method, None) => method.as_str(),
    };
    head.compose(method.as_bytes(), target.as_bytes())?;
    let authority = uri.authority().map(|authority| authority.as_str().as_bytes());
    write_host(head, authority, request.headers())?;
    write_fields(head, request.headers())?;
    if let Some(key) = key {
        key.write_upgrade(head)?;
    }
    head.finish(limits)?;
    check::check(head)
}

/// `:authority` is what `Host` was; where both are, they must say the same (RFC 9113 section 8.3.1).
fn write_host(head: &mut RequestHead, authority: Option<&[u8]>, fields: &HeaderMap) -> Result<(), Refusal> {
    let mut hosts = fields.get_all(HOST).iter().map(HeaderValue::as_bytes);
    let host = match (authority, hosts.next(), hosts.next()) {
        (_, _, Some(_)) => return Err(Refusal::Host("there is more than one")),
        (Some(authority), Some(host), None) if !authority.eq_ignore_ascii_case(host) => {
            return Err(Refusal::Host(":authority names another"));
        }
        (Some(host), ..) | (None, Some(host), None) => host,
        (None, None, None) => return Err(Refusal::Host("it is missing")),
    };
    Ok(head.line(b"host", [host], b"")?)
}

fn write_fields(head: &mut RequestHead, fields: &HeaderMap) -> Result<(), HeadError> {
    for name in fields.keys().filter(|name| **name != HOST && **name != SEC_WEBSOCKET_KEY) {
        let values = fields.get_all(name).iter().map(HeaderValue::as_bytes);
        let name = name.as_str().as_bytes();
        if name == COOKIE.as_str().as_bytes() {
            // Browsers send it in crumbs, for the sake of compression (RFC 9113 section 8.2.3).
            head.line(name, values, b"; ")?;
            continue;
        }
        for value in values {
            head.line(name, [value], b"")?;
        }
    }
    Ok(())
}

/// A final head, a member's or our own.
pub(super) fn answer(head: &ResponseHead, edits: &Edits, framing: Framing) -> Response<()> {
    let keeps = |name: &[u8]| edits.is_empty() || edits.keeps(name);
    let mut fields = HeaderMap::with_capacity(head.fields.len() + 2);
    for (field, name, value) in head.fields.iter() {
        if is_kept(field, framing, head.status) && keeps(name) {
            append(&mut fields, name, value);
        }
    }
    for (name, value) in edits.lines(&head.fields) {
        append(&mut fields, name.as_bytes(), value);
    }
    if !fields.contains_key(DATE) {
        with_date(|date| append(&mut fields, DATE.as_str().as_bytes(), date.as_bytes()));
    }
    if let Framing::Length(length) = framing {
        fields.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    response(head.status, fields)
}

/// The head that says that a WebSocket is open (RFC 8441 section 5): that of the 101 but for what was between us and the member.
pub(super) fn switch(head: &ResponseHead, edits: &Edits) -> Response<()> {
    let mut response = answer(head, edits, Framing::Chunked);
    response.headers_mut().remove(SEC_WEBSOCKET_ACCEPT);
    *response.status_mut() = StatusCode::OK;
    response
}

/// An interim head.
pub(super) fn interim(head: &ResponseHead) -> Response<()> {
    let mut fields = HeaderMap::new();
    for (field, name, value) in head.fields.iter() {
        if is_kept(field, Framing::Chunked, head.status) {
            append(&mut fields, name, value);
        }
    }
    response(head.status, fields)
}

/// The trailers of an answer.
pub(super) fn trailers(trailers: &Fields) -> HeaderMap {
    let mut fields = HeaderMap::with_capacity(trailers.len());
    for (field, name, value) in trailers.iter().filter(|(field, ..)| !field.known.is_hop_by_hop()) {
        debug_assert!(!field.listed, "a trailer section has no Connection");
        append(&mut fields, name, value);
    }
    fields
}

fn append(fields: &mut HeaderMap, name: &[u8], value: &[u8]) {
    // What has been read as a field is one here, too.
    if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
        fields.append(name, value);
    }
}

fn response(status: u16, fields: HeaderMap) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    *response.headers_mut() = fields;
    response
}
