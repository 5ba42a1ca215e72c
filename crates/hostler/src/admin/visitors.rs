//! Access rules of the admin listener: no web page in an operator's browser may use it. Knows no commands and no answers.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Lets a request pass whose `Host` is an address or `localhost`. Otherwise a web page could use DNS rebinding: it makes the DNS name of
/// its own site resolve to this listener's address, and the browser then lets the page read the answers. Such a request has the site's
/// name as its `Host`.
pub async fn only_here(request: Request, next: Next) -> Response {
    match objection(request.method(), request.headers()) {
        None => next.run(request).await,
        Some(why) => (StatusCode::FORBIDDEN, format!("{why}\n")).into_response(),
    }
}

fn objection(method: &Method, fields: &HeaderMap) -> Option<&'static str> {
    let reads = matches!(*method, Method::GET | Method::HEAD);
    // Only HTTP/1.0 requests may have no `Host`. Some load balancers send health checks so; browsers never do.
    let is_ours = match fields.get(header::HOST) {
        Some(host) => host.to_str().is_ok_and(is_unnamed),
        None => reads,
    };
    if !is_ours {
        return Some(
            "Host must be an IP address or localhost: ask http://127.0.0.1:8081 and not http://a.name:8081, \
             or send Host: localhost",
        );
    }
    if fields.contains_key(header::ORIGIN) {
        return Some("requests from web pages are refused: there is an Origin field");
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

/// No site can make an address or `localhost` resolve to this listener.
fn is_unnamed(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').unwrap_or_default(),
        None => host.split_once(':').unwrap_or((host, "")),
    };
    let port = port.strip_prefix(':').unwrap_or(port);
    let is_name = name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok();
    is_name && port.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

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
            assert!(is_unnamed(host), "{host}");
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
            assert!(!is_unnamed(host), "{host}");
        }
    }

    #[test]
    fn a_page_of_another_site_may_link_to_an_admin_page_but_not_read_it() {
        let objects = |method: Method, lines: &[(&'static str, &'static str)]| {
            let lines = [("host", "127.0.0.1:8081")].iter().chain(lines);
            let fields =
                lines.map(|&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            objection(&method, &fields.collect()).is_some()
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
        assert!(objection(&Method::GET, &HeaderMap::new()).is_none());
        assert!(objection(&Method::POST, &HeaderMap::new()).is_some());
    }
}
