//! Names of header fields that only a trusted proxy may set (who the client is and how it came), in every spelling that an app could read
//! as them. Knows no values.

use hostler_wire::Name;

use crate::exchange::Edits;

/// Fields that Hostler writes itself, or has consumed: it has answered the expectation and frames the body anew.
pub(super) fn is_ours(name: Name) -> bool {
    matches!(name, Name::ContentLength | Name::Expect | Name::XForwardedFor | Name::XRequestId)
}

/// Fields that say who the client is, what it asked for or how it came. They count only if the peer is trusted.
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
    let begins = |beginnings: &[&[u8]]| beginnings.iter().any(|beginning| starts_with(name, beginning));
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
        || starts_with(&dashed, b"hostler-")
        || edits.writes_other_than(name, &dashed)
}

fn starts_with(name: &[u8], prefix: &[u8]) -> bool {
    name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Edit;

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
    fn names_with_underscores_shadow_ours_and_those_of_the_route() {
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
