//! Converts heads between HTTP/2 and HTTP/1.1. Requests pass the same checks in both. Knows no streams.

use bytes::Bytes;
use hostler_engine::exchange::Exchange;
use hostler_engine::gateway::Refusal;
use hostler_wire::{BodyLength, Limits, RequestHead, ResponseHead};
use http::header::{
    AGE, CONTENT_LENGTH, COOKIE, DATE, HOST, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT,
    SEC_WEBSOCKET_KEY, VARY,
};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};

use super::websocket::WebSocketKey;
use crate::listen::check;
use crate::listen::head::{CACHE_STATUS, Framing, cache_status, is_kept, more_vary, new_age, with_date};

/// Up to this size, one copy of a head is shared by all its values, and lives as long as any of them.
const MOST_SHARED: usize = 1024;

/// Converts a request's head to HTTP/1.1 and checks it by the same rules. `key`: the request is a CONNECT that wants a WebSocket.
pub(super) fn read_request<B>(
    head: &mut RequestHead,
    request: &Request<B>,
    key: Option<&WebSocketKey>,
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
    write_fields(head, uri, request.headers())?;
    if let Some(key) = key {
        key.write_upgrade(head)?;
    }
    head.finish(limits)?;
    check::check(head)
}

fn write_fields(head: &mut RequestHead, uri: &Uri, fields: &HeaderMap) -> Result<(), Refusal> {
    let authority = uri.authority().map(|authority| authority.as_str().as_bytes());
    if let Some(authority) = authority {
        head.line(b"host", [authority], b"")?;
    }
    let (mut hosts, mut has_cookies) = (0, false);
    for (name, value) in fields {
        let value = value.as_bytes();
        if *name == HOST {
            hosts += 1;
            if hosts > 1 {
                return Err(Refusal::Host("there is more than one"));
            }
            check_host(authority, value, uri.scheme_str())?;
            if authority.is_some() {
                continue;
            }
        } else if *name == COOKIE {
            if !has_cookies {
                // Browsers split it into several fields, for better compression (RFC 9113 section 8.2.3).
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

/// `:authority` replaces `Host`. If a request has both, they must name the same host and port (RFC 9113 section 8.3.1).
fn check_host(authority: Option<&[u8]>, host: &[u8], scheme: Option<&str>) -> Result<(), Refusal> {
    let default_port: &[u8] = if scheme == Some("https") { b":443" } else { b":80" };
    match authority {
        Some(authority) if !check::same_host(host, authority, default_port) => {
            Err(Refusal::Host("it contradicts :authority"))
        }
        _ => Ok(()),
    }
}

/// Converts a final head.
pub(super) fn answer(head: &ResponseHead, exchange: &Exchange, framing: Framing) -> Response<()> {
    let mut answer = edited(head, exchange, framing);
    let fields = answer.headers_mut();
    if let Some(age) = new_age(exchange) {
        fields.insert(AGE, HeaderValue::from(age));
    }
    if let Some(cache) = cache_status(exchange) {
        append(fields, CACHE_STATUS.as_bytes(), HeaderValue::from_str(&format!("Hostler; {cache}")));
    }
    answer
}

fn edited(head: &ResponseHead, exchange: &Exchange, framing: Framing) -> Response<()> {
    let edits = &exchange.to_client;
    let keeps = |name: &[u8]| edits.is_empty() || edits.keeps(name);
    let mut fields = HeaderMap::with_capacity(head.fields.len() + 2);
    // One copy for all values instead of one for each. HPACK's table may keep a value, and so the whole copy, for a long time.
    let bytes = head.fields.bytes();
    let shared = (bytes.len() <= MOST_SHARED).then(|| Bytes::copy_from_slice(bytes));
    for (field, name, value) in head.fields.iter() {
        if is_kept(field, name, framing, head.status) && keeps(name) {
            let value = match &shared {
                Some(shared) => shared.slice(field.value()),
                None => Bytes::copy_from_slice(value),
            };
            append(&mut fields, name, HeaderValue::from_maybe_shared(value));
        }
    }
    for (name, value) in edits.lines(&head.fields) {
        append(&mut fields, name.as_bytes(), HeaderValue::from_bytes(value));
    }
    if let Some(names) = more_vary(head, exchange) {
        append(&mut fields, VARY.as_str().as_bytes(), HeaderValue::from_bytes(names));
    }
    if !fields.contains_key(DATE) {
        with_date(exchange, |date| {
            append(&mut fields, DATE.as_str().as_bytes(), HeaderValue::from_str(date))
        });
    }
    if let Framing::Length(length) = framing {
        fields.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    response(head.status, fields)
}

/// The head that tells the client that its WebSocket is open (RFC 8441 section 5): that of the 101, without the fields of the handshake.
pub(super) fn switch(head: &ResponseHead, exchange: &Exchange) -> Response<()> {
    let mut response = edited(head, exchange, Framing::Chunked);
    response.headers_mut().remove(SEC_WEBSOCKET_ACCEPT);
    *response.status_mut() = StatusCode::OK;
    response
}

/// Converts an interim head.
pub(super) fn interim(head: &ResponseHead) -> Response<()> {
    let mut fields = HeaderMap::new();
    for (field, name, value) in head.fields.iter() {
        if is_kept(field, name, Framing::Chunked, head.status) {
            append(&mut fields, name, HeaderValue::from_bytes(value));
        }
    }
    response(head.status, fields)
}

fn append<E>(fields: &mut HeaderMap, name: &[u8], value: Result<HeaderValue, E>) {
    // A field that was parsed before is valid here too.
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

#[cfg(test)]
mod tests {
    use hostler_cache::CacheStatus;
    use hostler_engine::exchange::Sweep;

    use super::*;

    #[test]
    fn our_cache_status_follows_the_others_and_our_age_replaces_theirs() {
        let anywhere = "127.0.0.1:80".parse().unwrap();
        let mut exchange = Exchange::new(anywhere, anywhere, Sweep::new().deadline());
        let mut head = ResponseHead::with_status(200);
        head.fields.add(b"Age", b"1");
        head.fields.add(b"Cache-Status", b"Origin; hit");
        let shown = |exchange: &Exchange| {
            let answer = answer(&head, exchange, Framing::Length(0));
            let values = |name| answer.headers().get_all(name).iter().cloned().collect::<Vec<_>>();
            [values("age"), values("cache-status")]
        };
        assert_eq!(shown(&exchange), [vec!["1"], vec!["Origin; hit"]]);
        (exchange.log_facts.age, exchange.log_facts.cache) = (Some(7), Some(CacheStatus::Hit { ttl: -3 }));
        assert_eq!(shown(&exchange), [vec!["7"], vec!["Origin; hit", "Hostler; hit; ttl=-3"]]);
    }
}
