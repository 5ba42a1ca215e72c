//! Redirects: builds the URL from parts of the request. Knows no connection.

use hostler_config::{Piece, Redirect};
use hostler_wire::{ResponseHead, Whole, split_host};
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};

use super::answer::Answer;
use super::refusal::Refusal;
use super::rewrite::behind;
use crate::exchange::Exchange;

/// Characters that must not stand in a header field, and the backslash, which browsers read as a slash.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\');

pub(super) fn answer(redirect: &Redirect, exchange: &Exchange) -> Result<Answer, Refusal> {
    if exchange.host().is_empty() && redirect.to.contains(&Piece::Host) {
        return Err(Refusal::Host("it is missing"));
    }
    let mut head = ResponseHead::with_status(redirect.status.as_u16());
    let (host, target) = (exchange.host(), exchange.head.target());
    head.fields.add(b"Location", location(redirect, host, target).as_bytes());
    Ok(Answer::Whole(Whole::new(head, Vec::new())))
}

fn location(redirect: &Redirect, host: &[u8], target: &[u8]) -> String {
    let (path, query) = target.split_at(memchr::memchr(b'?', target).unwrap_or(target.len()));
    let mut to = String::new();
    for piece in &redirect.to {
        let part = match piece {
            Piece::Text(text) => text.as_bytes(),
            Piece::Host => split_host(host).0,
            // The target of `OPTIONS *` has no path.
            Piece::Path if path.starts_with(b"/") => path,
            Piece::Path => b"/",
            Piece::Rest => {
                let rest = behind(path, &redirect.prefix).unwrap_or_default();
                let rest = rest.iter().skip_while(|byte| **byte == b'/').copied().collect::<Vec<_>>();
                to.extend(percent_encode(&rest, ESCAPED));
                continue;
            }
            Piece::Query => query,
        };
        to.extend(percent_encode(part, ESCAPED));
    }
    // Browsers read two leading slashes as the beginning of another host.
    let extra = if to.starts_with('/') { to.len() - to.trim_start_matches('/').len() - 1 } else { 0 };
    to.split_off(extra)
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    fn filled(to: Vec<Piece>, target: &str) -> String {
        let redirect = Redirect { status: StatusCode::FOUND, to, prefix: "/old".into() };
        location(&redirect, b"Shop.test:8080", target.as_bytes())
    }

    #[test]
    fn a_redirect_url_is_filled_from_the_request() {
        let text = |text: &str| Piece::Text(text.into());
        let whole = || vec![text("https://"), Piece::Host, Piece::Path, Piece::Query];
        assert_eq!(filled(whole(), "/old/a%20b?x=%2F"), "https://Shop.test/old/a%20b?x=%2F");
        assert_eq!(filled(whole(), "*"), "https://Shop.test/");
        let rest = || vec![text("/new/"), Piece::Rest, Piece::Query];
        assert_eq!(filled(rest(), "/old/a/b?c"), "/new/a/b?c");
        assert_eq!(filled(rest(), "/old"), "/new/");
        assert_eq!(filled(rest(), "/%6fld/a"), "/new/a");
        assert_eq!(filled(rest(), "/OLD/A"), "/new/A");
    }

    #[test]
    fn a_redirect_never_leads_to_a_host_that_the_request_names() {
        let text = |text: &str| Piece::Text(text.into());
        assert_eq!(filled(vec![text("/"), Piece::Rest], "/old//evil.org/x"), "/evil.org/x");
        assert_eq!(filled(vec![text("/"), Piece::Rest], "/old/\\evil.org"), "/%5Cevil.org");
        assert_eq!(filled(vec![text("/"), Piece::Rest], "/old/%2Fevil.org"), "/%2Fevil.org");
        assert_eq!(filled(vec![text("/"), Piece::Path], "//evil.org"), "/evil.org");
        assert_eq!(filled(vec![text("/a"), Piece::Query], "/?\u{e9}\u{7f}"), "/a?%C3%A9%7F");
    }
}
