//! Heads between HTTP/2 and what the rest of us knows: a request's as strict as one that came in HTTP/1.1. Knows no streams.

use bytes::Bytes;
use hostler_wire::{BodyLength, Fields, Limits, RequestHead, ResponseHead};
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
    write_fields(head, authority, request.headers())?;
    if let Some(key) = key {
        key.write_upgrade(head)?;
    }
    head.finish(limits)?;
    check::check(head)
}

fn write_fields(head: &mut RequestHead, authority: Option<&[u8]>, fields: &HeaderMap) -> Result<(), Refusal> {
    if let Some(authority) = authority {
        head.line(b"host", [authority], b"")?;
    }
    let (mut hosts, mut has_cookies) = (0, false);
    for (name, value) in fields {
        let value = value.as_bytes();
        if *name == HOST {
            hosts += 1;
            check_host(authority, value, hosts)?;
            if authority.is_some() {
                continue;
            }
        } else if *name == COOKIE {
            if !has_cookies {
                // Browsers send it in crumbs, for the sake of compression (RFC 9113 section 8.2.3).
                let crumbs = fields.get_all(COOKIE).iter().map(HeaderValue::as_bytes);
                head.line(b"cookie", crumbs, b"; ")?;
            }
            has_cookies = true;
            continue;
        } else if *name == SEC_WEBSOCKET_KEY {
            continue;
        }
        head.line(name.as_str().as_bytes(), [value], b"")?;
    }
    Ok(())
}

/// `:authority` is what `Host` was; where both are, they must say the same (RFC 9113 section 8.3.1).
fn check_host(authority: Option<&[u8]>, host: &[u8], hosts: usize) -> Result<(), Refusal> {
    match authority {
        _ if hosts > 1 => Err(Refusal::Host("there is more than one")),
        Some(authority) if !authority.eq_ignore_ascii_case(host) => {
            Err(Refusal::Host(":authority names another"))
        }
        _ => Ok(()),
    }
}

/// A final head, a member's or our own.
pub(super) fn answer(head: &ResponseHead, edits: &Edits, framing: Framing) -> Response<()> {
    let keeps = |name: &[u8]| edits.is_empty() || edits.keeps(name);
    let mut fields = HeaderMap::with_capacity(head.fields.len() + 2);
    // One copy of all values instead of one of each.
    let bytes = Bytes::copy_from_slice(head.fields.bytes());
    for (field, name, _) in head.fields.iter() {
        if is_kept(field, framing, head.status) && keeps(name) {
            append(&mut fields, name, HeaderValue::from_maybe_shared(bytes.slice(field.value())));
        }
    }
    for (name, value) in edits.lines(&head.fields) {
        append(&mut fields, name.as_bytes(), HeaderValue::from_bytes(value));
    }
    if !fields.contains_key(DATE) {
        with_date(|date| append(&mut fields, DATE.as_str().as_bytes(), HeaderValue::from_str(date)));
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
            append(&mut fields, name, HeaderValue::from_bytes(value));
        }
    }
    response(head.status, fields)
}

/// The trailers of an answer.
pub(super) fn trailers(trailers: &Fields) -> HeaderMap {
    let mut fields = HeaderMap::with_capacity(trailers.len());
    for (field, name, value) in trailers.iter().filter(|(field, ..)| !field.known.is_hop_by_hop()) {
        debug_assert!(!field.listed, "a trailer section has no Connection");
        append(&mut fields, name, HeaderValue::from_bytes(value));
    }
    fields
}

fn append<E>(fields: &mut HeaderMap, name: &[u8], value: Result<HeaderValue, E>) {
    // What has been read as a field is one here, too.
    if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), value) {
        fields.append(name, value);
    }
}

fn response(status: u16, fields: HeaderMap) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    *response.headers_mut() = fields;
    response
}
