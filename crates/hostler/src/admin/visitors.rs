//! No web page of another site may use the admin listener through an operator's browser: the checks of a request's fields. Knows no commands and no answers.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderValue, Method, header};

/// Why a request is refused. `Host` must be an address, `localhost` or one of these names. Otherwise a web page could use DNS rebinding: it
/// makes the DNS name of its own site resolve to this listener's address, and the browser then lets the page read the answers. Such a
/// request has the site's name as its `Host`.
pub(super) fn objection(method: &Method, fields: &HeaderMap, names: &[String]) -> Option<&'static str> {
    let reads = matches!(*method, Method::GET | Method::HEAD);
    let host = fields.get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    // Only HTTP/1.0 requests may have no `Host`. Some load balancers send health checks so; browsers never do.
    if !host.map_or(reads, |host| is_ours(host, names)) {
        return Some(
            "Host must be an IP address, localhost or a name in server.admin_hosts: ask http://127.0.0.1:8081 and not \
             http://a.name:8081, or add the name to server.admin_hosts",
        );
    }
    let is_own_page = |origin: &HeaderValue| {
        let (_, at) = origin.to_str().ok()?.split_once("://")?;
        Some(at.eq_ignore_ascii_case(host?))
    };
    if fields.get_all(header::ORIGIN).iter().any(|origin| is_own_page(origin) != Some(true)) {
        return Some(
            "requests from web pages of other sites are refused: Origin is not the address of this listener",
        );
    }
    let says = |name: &str, values: &[&[u8]]| {
        fields.get(name).is_some_and(|value| values.contains(&value.as_bytes()))
    };
    // A browser may follow a link here from another site's page: that page cannot read the answer.
    let is_followed =
        reads && says("sec-fetch-mode", &[b"navigate"]) && says("sec-fetch-dest", &[b"document"]);
    let is_of_another = says("sec-fetch-site", &[b"cross-site", b"same-site"]);
    (is_of_another && !is_followed)
        .then_some("requests from web pages of other sites are refused (Sec-Fetch-Site)")
}

/// No site can make an address or `localhost` resolve to this listener. The operator has chosen the names.
fn is_ours(host: &str, names: &[String]) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').unwrap_or_default(),
        None => host.split_once(':').unwrap_or((host, "")),
    };
    let port = port.strip_prefix(':').unwrap_or(port);
    let is_known = name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok()
        || names.iter().any(|known| known.eq_ignore_ascii_case(name));
    is_known && port.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    #[test]
    fn only_an_address_or_localhost_is_a_trusted_host() {
        for host in [
            "127.0.0.1:8081",
            "127.0.0.1",
            "[::1]:8081",
            "[::1]",
            "localhost:8081",
            "localhost",
            "LocalHost",
            "10.1.2.3:8081",
        ] {
            assert!(is_ours(host, &[]), "{host}");
        }
        for host in [
            "",
            "evil.example:8081",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "localhost.",
            "[",
            ":80",
            "127.0.0.1:evil",
            "[::1]evil",
            "evil@127.0.0.1",
        ] {
            assert!(!is_ours(host, &["admin.internal".into()]), "{host}");
        }
    }

    #[test]
    fn a_name_of_the_configuration_is_a_trusted_host() {
        let names = ["admin.internal".to_owned()];
        for (host, is_trusted) in [
            ("admin.internal", true),
            ("Admin.Internal:8081", true),
            ("admin.internal:evil", false),
            ("x.admin.internal", false),
            ("admin.internal.evil.example", false),
        ] {
            assert_eq!(is_ours(host, &names), is_trusted, "{host}");
        }
    }

    #[test]
    fn a_page_of_another_site_may_link_to_an_admin_page_but_not_read_it() {
        let objects = |method: Method, lines: &[(&'static str, &'static str)]| {
            let lines = [("host", "127.0.0.1:8081")].iter().chain(lines);
            let fields =
                lines.map(|&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            objection(&method, &fields.collect(), &[]).is_some()
        };
        let cross = ("sec-fetch-site", "cross-site");
        let followed = [cross, ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
        let framed = [cross, ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")];
        assert!(!objects(Method::GET, &[]));
        assert!(!objects(Method::GET, &[("sec-fetch-site", "none")]));
        assert!(!objects(Method::GET, &[("sec-fetch-site", "same-origin")]));
        assert!(!objects(Method::GET, &followed));
        assert!(objects(Method::POST, &followed));
        assert!(objects(Method::GET, &framed));
        assert!(objects(Method::GET, &[cross]));
        assert!(objects(Method::GET, &[("sec-fetch-site", "same-site")]));
        assert!(objects(Method::GET, &[("origin", "null")]));
        for other in ["http://127.0.0.1:8080", "http://evil.example", "http://127.0.0.1", "127.0.0.1:8081"] {
            assert!(objects(Method::POST, &[("origin", other)]), "{other}");
        }
        assert!(!objects(Method::POST, &[("origin", "http://127.0.0.1:8081")]));
        assert!(objects(Method::POST, &[("origin", "http://127.0.0.1:8081"), ("origin", "null")]));
        assert!(objection(&Method::GET, &HeaderMap::new(), &[]).is_none());
        assert!(objection(&Method::POST, &HeaderMap::new(), &[]).is_some());
    }
}
