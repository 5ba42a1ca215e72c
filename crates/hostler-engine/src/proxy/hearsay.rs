//! Names of fields that say who the client is and how it came, in every spelling that an app could take for them. Knows no values.

use hostler_wire::Name;

use crate::exchange::Edits;

/// Fields that we write ourselves, or that ended with us: we have answered the expectation and framed the body anew.
pub(super) fn is_ours(name: Name) -> bool {
    matches!(name, Name::ContentLength | Name::Expect | Name::XForwardedFor | Name::XRequestId)
}

/// Fields that say who the client is, what it asked for and how it came: worth something only from a peer that is trusted.
pub(super) fn is_hearsay(known: Name, name: &[u8]) -> bool {
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
        Name::Other => begins_like_hearsay(name),
        _ => false,
    }
}

/// Beginnings of names, by their first letter. Certificates: RFC 9440, and what nginx, Apache, HAProxy, Azure and AWS call it.
/// Targets: what IIS and nginx's `auth_request` write, and some frameworks route by. Addresses: what balancers write.
fn begins_like_hearsay(name: &[u8]) -> bool {
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

/// `X_Real_IP` is another name than `X-Real-IP` to us and to Node, but the same to whatever is made after CGI (WSGI, Rack, PHP),
/// where it would take the place of ours. That holds for what the route writes as well. No proxy needs such a name, so that it is
/// believed from none: those that let their clients' underscores through are many.
pub(super) fn is_in_disguise(name: &[u8], edits: &Edits) -> bool {
    if memchr::memchr(b'_', name).is_none() {
        return false;
    }
    let dashed: Vec<u8> = name.iter().map(|&byte| if byte == b'_' { b'-' } else { byte }).collect();
    let known = Name::of(&dashed);
    is_ours(known)
        || known.is_hop_by_hop()
        || is_hearsay(known, &dashed)
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
        is_hearsay(Name::of(name.as_bytes()), name.as_bytes())
    }

    #[test]
    fn what_only_a_proxy_can_know_is_hearsay() {
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
            assert!(is_in_disguise(name.as_bytes(), &none), "{name}");
        }
        for name in ["my_own", "X-Real-IP", "X_User"] {
            assert!(!is_in_disguise(name.as_bytes(), &none), "{name}");
        }
        let own =
            vec![Edit::Set("X-User".into(), b"me".to_vec()), Edit::Set("x_kept".into(), b"me".to_vec())];
        let edits = Edits { own, ..Edits::default() };
        assert!(is_in_disguise(b"X_USER", &edits));
        assert!(!is_in_disguise(b"X_Kept", &edits));
    }
}
