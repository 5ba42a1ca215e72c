//! The head of a request for a member: the client's fields, without those for Hostler itself, plus Hostler's own. Fields that only a trusted
//! proxy may set are removed in every spelling. Knows no connection.

use std::io::Write as _;
use std::net::SocketAddr;

use hostler_wire::{
    BodyLength, Field, Name, starts_in_any_case, tokens, write_body_length, write_field, write_head_end,
    write_request_line,
};

use crate::exchange::trace::{TRACEPARENT, TRACESTATE};
use crate::exchange::{Edits, Exchange, via};

/// Tells the app that a request of its client went to another member than the ones before, and why.
pub const MOVED: &str = "X-Hostler-Moved";

/// Writes the request's head for a member.
pub fn write_head(out: &mut Vec<u8>, exchange: &Exchange, framing: Option<BodyLength>) {
    let head = &exchange.head;
    write_request_line(out, head.method(), exchange.target());
    let mut seen = ForwardedSeen::default();
    head.fields.copy_lines(out, |field, name| {
        let action = action_for(exchange, field, name);
        if let FieldAction::Trusted = action {
            seen.note(field.known);
        }
        action != FieldAction::None
    });
    let edited = exchange.to_member.lines_beside(&head.fields, |field, name| goes_on(exchange, field, name));
    for (name, value) in edited {
        write_field(out, name.as_bytes(), value);
    }
    write_forwarding(out, exchange, &seen);
    if let Some(offer) = &exchange.offer {
        write_field(out, b"Connection", b"Upgrade");
        write_field(out, b"Upgrade", offer);
    }
    match framing {
        Some(length @ (BodyLength::Known(_) | BodyLength::Chunked)) => write_body_length(out, length),
        // A POST without a body gets `Content-Length: 0`, so that its length is not in doubt.
        _ if head.fields.first(Name::ContentLength).is_some() => write_body_length(out, BodyLength::Known(0)),
        _ => {}
    }
    write_head_end(out);
}

/// Whether a field line from the client is passed on unchanged.
pub fn goes_on(exchange: &Exchange, field: &Field, name: &[u8]) -> bool {
    action_for(exchange, field, name) != FieldAction::None
}

/// What happens with a field line from the client.
#[derive(PartialEq, Eq)]
enum FieldAction {
    None,
    Plain,
    /// It is passed on because the proxy that set it is trusted.
    Trusted,
}

#[inline]
fn action_for(exchange: &Exchange, field: &Field, name: &[u8]) -> FieldAction {
    // The quick answer for most fields: a known name without special rules, and no change by the route.
    let is_plain = field.known != Name::Other && !field.known.is_hop_by_hop() && !is_ours(field.known);
    if is_plain && !field.listed && !needs_trust(field.known, b"") && exchange.to_member.is_empty() {
        return FieldAction::Plain;
    }
    action_for_special(exchange, field, name)
}

fn action_for_special(exchange: &Exchange, field: &Field, name: &[u8]) -> FieldAction {
    if field.listed || field.known.is_hop_by_hop() || is_ours(field.known) {
        return FieldAction::None;
    }
    if field.known == Name::Other
        && (is_moved(field.own, name)
            || is_traced(exchange, name)
            || is_underscore_alias(name, &exchange.to_member))
    {
        return FieldAction::None;
    }
    let is_trusted_only = !field.own && needs_trust(field.known, name);
    if is_trusted_only
        && (!exchange.client.peer_trusted || is_settled(exchange, field) || says_nothing(exchange, field))
    {
        return FieldAction::None;
    }
    let kept = exchange.to_member.is_empty() || exchange.to_member.keeps(name);
    match (kept, is_trusted_only) {
        (false, _) => FieldAction::None,
        (true, false) => FieldAction::Plain,
        (true, true) => FieldAction::Trusted,
    }
}

/// Only Hostler may send this field, so it is removed, even if a trusted proxy sent it: proxies pass on what their clients have sent.
fn is_moved(own: bool, name: &[u8]) -> bool {
    !own && name.len() == MOVED.len() && name.eq_ignore_ascii_case(MOVED.as_bytes())
}

/// Whether the client's line is removed because of the trace. Hostler writes `traceparent` itself, with its own span as parent.
/// `tracestate` is passed on only with a valid `traceparent`, and only if it can be read.
fn is_traced(exchange: &Exchange, name: &[u8]) -> bool {
    exchange.trace.as_ref().is_some_and(|trace| {
        name.eq_ignore_ascii_case(TRACEPARENT.as_bytes())
            || name.eq_ignore_ascii_case(TRACESTATE.as_bytes()) && !trace.passes_state
    })
}

/// Which fields of a trusted proxy are passed on unchanged.
#[derive(Default)]
struct ForwardedSeen {
    proto: bool,
    host: bool,
}

impl ForwardedSeen {
    fn note(&mut self, name: Name) {
        self.proto |= name == Name::XForwardedProto;
        self.host |= name == Name::XForwardedHost;
    }
}

/// The settings decide the value of `X-Forwarded-Proto`, so the proxy's field is removed.
fn is_settled(exchange: &Exchange, field: &Field) -> bool {
    field.known == Name::XForwardedProto && exchange.forwarded_proto.is_some()
}

/// An empty field from a proxy counts as if the field were missing.
fn says_nothing(exchange: &Exchange, field: &Field) -> bool {
    tokens(&exchange.head.fields.bytes()[field.value()]).next().is_none()
}

fn write_forwarding(out: &mut Vec<u8>, exchange: &Exchange, seen: &ForwardedSeen) {
    out.extend_from_slice(b"X-Forwarded-For: ");
    for hop in earlier_hops(exchange) {
        out.extend_from_slice(hop);
        out.extend_from_slice(b", ");
    }
    out.extend_from_slice(exchange.peer_ip.as_bytes());
    out.extend_from_slice(b"\r\n");
    if let Some(scheme) = our_scheme(exchange, seen.proto) {
        write_field(out, b"X-Forwarded-Proto", scheme);
    }
    if exchange.host().is_empty() && exchange.to_member.keeps(b"host") {
        // An HTTP/1.0 request may have no `Host`, but HTTP/1.1 to the member needs one.
        out.extend_from_slice(b"Host: ");
        // A socket for both families reports `[::ffff:10.0.0.1]:80`.
        let local = SocketAddr::new(exchange.local.ip().to_canonical(), exchange.local.port());
        // Writing to memory does not fail.
        let _ = write!(out, "{local}");
        out.extend_from_slice(b"\r\n");
    }
    if let Some(host) = our_host(exchange, seen.host) {
        write_field(out, b"X-Forwarded-Host", host);
    }
    write_field(out, b"X-Request-Id", exchange.id.as_bytes());
    if let Some(trace) = &exchange.trace
        && exchange.to_member.keeps(TRACEPARENT.as_bytes())
    {
        write_field(out, TRACEPARENT.as_bytes(), trace.for_member().as_bytes());
    }
    // RFC 9110 section 7.6.3 requires that a gateway adds `Via`.
    write_field(out, b"Via", via::value(exchange.protocol, exchange.head.version));
}

/// The values of this name that Hostler itself writes, if the client has sent a `Host`. `passes`: whether lines of the client with this
/// name are passed on. The cache needs this before a member is asked.
pub fn writes<'e>(
    exchange: &'e Exchange,
    name: &[u8],
    passes: impl FnOnce() -> bool,
) -> impl Iterator<Item = &'e [u8]> {
    let (mut hops, mut own): (_, Option<&[u8]>) = (None, None);
    match Name::of(name) {
        Name::XForwardedFor => {
            (hops, own) = (Some(earlier_hops(exchange)), Some(exchange.peer_ip.as_bytes()));
        }
        Name::XForwardedProto => own = our_scheme(exchange, passes()),
        Name::XForwardedHost => own = our_host(exchange, passes()),
        Name::XRequestId => own = Some(exchange.id.as_bytes()),
        Name::Via => own = Some(via::value(exchange.protocol, exchange.head.version)),
        _ => {}
    }
    hops.into_iter().flatten().chain(own)
}

/// The earlier hops in `X-Forwarded-For`, if the peer is trusted.
fn earlier_hops(exchange: &Exchange) -> impl Iterator<Item = &[u8]> {
    let trusted = exchange.client.peer_trusted;
    trusted.then(|| exchange.head.fields.all(Name::XForwardedFor).flat_map(tokens)).into_iter().flatten()
}

/// The value of `X-Forwarded-Proto` that Hostler writes. None if that of a trusted proxy is passed on (`is_said`).
fn our_scheme(exchange: &Exchange, is_said: bool) -> Option<&'static [u8]> {
    let scheme = exchange.forwarded_proto.unwrap_or(exchange.scheme);
    (!(is_said && exchange.client.peer_trusted)).then(|| scheme.as_str().as_bytes())
}

/// The value of `X-Forwarded-Host` that Hostler writes. None if there is no host, or if that of a trusted proxy is passed on.
fn our_host(exchange: &Exchange, is_said: bool) -> Option<&[u8]> {
    let host = exchange.host();
    let needs_none = host.is_empty() || is_said && exchange.client.peer_trusted;
    (!needs_none).then_some(host)
}

/// Whether the request is a step of NTLM or Negotiate (RFC 4559). Some members keep the user with the connection, and take later requests on it for
/// those of the same user. So no other request may follow on it.
pub(super) fn authenticates_connection(exchange: &Exchange) -> bool {
    let mut credentials = exchange.head.fields.all(Name::Authorization);
    credentials.any(|credentials| {
        let scheme = credentials.split(|&byte| byte == b' ').next().unwrap_or_default();
        [&b"negotiate"[..], b"ntlm"].iter().any(|other| scheme.eq_ignore_ascii_case(other))
    })
}

/// Fields that Hostler writes itself, or has consumed: it has answered the expectation and frames the body anew.
pub(super) fn is_ours(name: Name) -> bool {
    matches!(name, Name::ContentLength | Name::Expect | Name::XForwardedFor | Name::XRequestId)
}

/// Fields that say who the client is, what it asked for or how it came. They count only if the peer is trusted.
#[inline]
pub(super) fn needs_trust(known: Name, name: &[u8]) -> bool {
    match known {
        Name::Forwarded
        | Name::XForwardedProto
        | Name::XForwardedHost
        | Name::XForwardedPort
        | Name::XForwardedServer
        | Name::XForwardedPrefix
        | Name::XRealIp
        | Name::CfConnectingIp
        | Name::TrueClientIp => true,
        Name::Other => has_trusted_prefix(name),
        _ => false,
    }
}

/// Prefixes of names, by their first letter. Certificates: RFC 9440, and the names that nginx, Apache, HAProxy, Azure and AWS use. Targets:
/// names that IIS and nginx's `auth_request` write, and that some frameworks route by. Addresses: names that balancers write.
fn has_trusted_prefix(name: &[u8]) -> bool {
    let begins =
        |beginnings: &[&[u8]]| beginnings.iter().any(|beginning| starts_in_any_case(name, beginning));
    match name.first().map_or(0, |first| first | 0x20) {
        b'x' => match name.get(2).map_or(0, |third| third | 0x20) {
            b'f' => begins(&[b"x-forwarded-"]),
            b'g' => begins(&[b"x-geo-"]),
            b'o' => {
                begins(&[b"x-original-ur", b"x-original-host", b"x-original-forwarded-", b"x-original-proto"])
            }
            b'r' => begins(&[b"x-rewrite-url"]),
            b's' => begins(&[b"x-ssl-"]),
            b'c' => {
                let certificate: &[&[u8]] =
                    &[b"x-client-cert", b"x-client-verify", b"x-client-dn", b"x-client-subject"];
                begins(certificate) || begins(&[b"x-client-ip", b"x-cluster-client-ip"])
            }
            b'a' => begins(&[b"x-arr-clientcert", b"x-arr-ssl", b"x-amzn-mtls-"]),
            b'e' => begins(&[b"x-envoy-external-address"]),
            _ => false,
        },
        b'c' => begins(&[b"client-cert"]),
        b's' => begins(&[b"ssl-client-"]),
        b'f' => begins(&[b"fastly-client-ip"]),
        _ => false,
    }
}

/// Whether a proxy tells of the client's certificate in a field with this name: RFC 9440, and the names that other proxies use.
pub fn tells_certificate(name: &[u8]) -> bool {
    const BEGINNINGS: [&[u8]; 10] = [
        b"client-cert",
        b"ssl-client-",
        b"x-amzn-mtls-",
        b"x-arr-clientcert",
        b"x-client-cert",
        b"x-client-dn",
        b"x-client-subject",
        b"x-client-verify",
        b"x-forwarded-client-cert",
        b"x-ssl-client-",
    ];
    BEGINNINGS.iter().any(|beginning| starts_in_any_case(name, beginning))
}

/// Hostler and Node treat `X_Real_IP` and `X-Real-IP` as two names. CGI-like interfaces (WSGI, Rack, PHP) treat them as one, so the first
/// could replace ours. The same holds for fields that the route writes. No proxy needs such a name, and many pass on their clients'
/// underscores, so it is removed even from trusted proxies.
pub(super) fn is_underscore_alias(name: &[u8], edits: &Edits) -> bool {
    if memchr::memchr(b'_', name).is_none() {
        return false;
    }
    let dashed: Vec<u8> = name.iter().map(|&byte| if byte == b'_' { b'-' } else { byte }).collect();
    let known = Name::of(&dashed);
    is_ours(known)
        || known.is_hop_by_hop()
        || needs_trust(known, &dashed)
        || starts_in_any_case(&dashed, b"hostler-")
        || starts_in_any_case(&dashed, b"x-hostler-")
        || edits.writes_other_than(name, &dashed)
}

#[cfg(test)]
mod tests {
    use hostler_wire::Limits;

    use super::*;
    use crate::exchange::{Edit, Sweep};

    fn heard(name: &str) -> bool {
        needs_trust(Name::of(name.as_bytes()), name.as_bytes())
    }

    #[test]
    fn fields_that_only_a_proxy_can_know_need_trust() {
        for name in [
            "Client-Cert",
            "client-cert-chain",
            "X-Client-Cert",
            "X-Client-Verify",
            "X-Client-IP",
            "X-SSL-Client-DN",
            "SSL-Client-Verify",
            "X-ARR-ClientCert",
            "X-Amzn-Mtls-Clientcert-Leaf",
            "X-Forwarded-Client-Cert",
            "X-Original-URL",
            "X-Rewrite-URL",
            "X-Cluster-Client-Ip",
            "X-Envoy-External-Address",
            "Fastly-Client-IP",
            "X-Real-IP",
            "X-Geo-City",
        ] {
            assert!(heard(name), "{name}");
        }
        for name in [
            "X-Client-Data",
            "X-Client-Version",
            "X-Original-Name",
            "X-CSRF-Token",
            "Accept",
            "X",
            "",
            "X-",
            "Client",
            "Sec-Ch-Ua",
            "X-Api-Key",
        ] {
            assert!(!heard(name), "{name}");
        }
    }

    #[test]
    fn a_request_without_host_names_the_ipv4_address_of_a_socket_for_both_families() {
        let (peer, local) = ("192.0.2.1:1".parse().unwrap(), "[::ffff:10.0.0.5]:8080".parse().unwrap());
        let mut exchange = Exchange::new(peer, local, Sweep::new().deadline());
        exchange.head.parse(b"GET / HTTP/1.0\r\n\r\n", &Limits::default()).unwrap();
        let mut out = Vec::new();
        write_head(&mut out, &exchange, None);
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("\r\nHost: 10.0.0.5:8080\r\n"), "{text}");
    }

    #[test]
    fn names_with_underscores_that_shadow_known_fields_are_found() {
        let none = Edits::default();
        for name in [
            "X_Forwarded_For",
            "x-real_ip",
            "Client_Cert",
            "SSL_CLIENT_VERIFY",
            "HOSTLER_X",
            "TRANSFER_ENCODING",
        ] {
            assert!(is_underscore_alias(name.as_bytes(), &none), "{name}");
        }
        for name in ["my_own", "X-Real-IP", "X_User"] {
            assert!(!is_underscore_alias(name.as_bytes(), &none), "{name}");
        }
        let own =
            vec![Edit::Set("X-User".into(), b"me".to_vec()), Edit::Set("x_kept".into(), b"me".to_vec())];
        let edits = Edits { own, ..Edits::default() };
        assert!(is_underscore_alias(b"X_USER", &edits));
        assert!(!is_underscore_alias(b"X_Kept", &edits));
    }
}
