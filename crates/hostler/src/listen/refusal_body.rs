//! The body of a refusal, as text, as a page for people or as a problem document (RFC 9457). Knows no connection.

use hostler_engine::gateway::{Refusal, RefusalFacts};
use hostler_wire::{Fields, ResponseHead, by_weight, reason_phrase};
use serde_json::json;

use crate::html::escaped;

const PAGE: &str = include_str!("refusal_page.html");

/// The page has its style inside and needs nothing else.
const PAGE_POLICY: &[u8] =
    b"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Page,
    Problem,
}

impl Form {
    /// The form that the client prefers. A browser that asks for a page names `text/html`; `*/*` alone gets text.
    fn preferred(asked: &Fields) -> Self {
        by_weight(asked, "accept").find_map(Self::of_media_type).unwrap_or(Self::Text)
    }

    fn of_media_type(name: &[u8]) -> Option<Self> {
        let is = |media: &str| name.eq_ignore_ascii_case(media.as_bytes());
        if is("text/html") || is("application/xhtml+xml") {
            Some(Self::Page)
        } else if is("application/json") || is("application/problem+json") {
            Some(Self::Problem)
        } else if is("text/plain") || is("text/*") || is("*/*") {
            Some(Self::Text)
        } else {
            None
        }
    }
}

/// Head and body for a refusal, in the form that `asked`, the fields of the request, prefers. `id`: the id of the request, or nothing.
pub(super) fn of(
    refusal: &Refusal,
    facts: &RefusalFacts,
    asked: &Fields,
    id: &str,
) -> (ResponseHead, String) {
    let mut head = ResponseHead::with_status(facts.status);
    let mut typed = |media: &str| head.fields.add(b"Content-Type", media.as_bytes());
    let body = match Form::preferred(asked) {
        Form::Text => {
            typed("text/plain; charset=utf-8");
            format!("{} {}\n{refusal}\n", facts.status, reason_phrase(facts.status))
        }
        Form::Problem => {
            typed("application/problem+json");
            problem(refusal, facts, id)
        }
        Form::Page => {
            typed("text/html; charset=utf-8");
            head.fields.add(b"Content-Security-Policy", PAGE_POLICY);
            page(refusal, facts, id)
        }
    };
    head.fields.add(b"Cache-Control", b"no-store");
    (head, body)
}

fn problem(refusal: &Refusal, facts: &RefusalFacts, id: &str) -> String {
    let mut members = json!({
        "type": "about:blank",
        "title": reason_phrase(facts.status),
        "status": facts.status,
        "detail": refusal.to_string(),
        "reason": facts.reason,
    });
    if !id.is_empty() {
        members["request_id"] = id.into();
    }
    format!("{members}\n")
}

fn page(refusal: &Refusal, facts: &RefusalFacts, id: &str) -> String {
    let again = match facts.retry_after {
        Some(_) => "<a href=\"\">Try again</a>\n",
        None => "",
    };
    let id = match id {
        "" => String::new(),
        id => format!("<dt>Request ID</dt><dd>{}</dd>", escaped(id)),
    };
    // The sentence is the last one, because it may repeat bytes of the request.
    PAGE.replace("{{status}}", &facts.status.to_string())
        .replace("{{phrase}}", reason_phrase(facts.status))
        .replace("{{title}}", title(facts.status))
        .replace("{{again}}", again)
        .replace("{{reason}}", facts.reason)
        .replace("{{id}}", &id)
        .replace("{{sentence}}", &escaped(&sentence(refusal)))
}

/// What happened, for a visitor who knows nothing of servers.
fn title(status: u16) -> &'static str {
    match status {
        404 => "This page does not exist",
        413 | 414 | 431 => "The request is too large",
        408 => "The request did not arrive in time",
        429 => "Too many requests",
        400..=499 => "The server cannot accept this request",
        502 => "The application could not answer",
        503 => "The service is not available right now",
        504 => "The application took too long",
        _ => "Something went wrong",
    }
}

/// The text of the refusal as a sentence.
fn sentence(refusal: &Refusal) -> String {
    let text = refusal.to_string();
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), letters.as_str()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepting(accept: &str) -> Fields {
        let mut fields = Fields::default();
        if !accept.is_empty() {
            fields.add(b"Accept", accept.as_bytes());
        }
        fields
    }

    #[test]
    fn the_accept_field_decides_between_text_a_page_and_a_problem() {
        let chromium =
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";
        for (accept, form) in [
            ("", Form::Text),
            ("*/*", Form::Text),
            (chromium, Form::Page),
            ("text/html", Form::Page),
            ("TEXT/HTML", Form::Page),
            ("text/html;q=0, */*", Form::Text),
            ("text/html;q=0.5, application/json", Form::Problem),
            ("application/json, text/plain, */*", Form::Problem),
            ("application/problem+json", Form::Problem),
            ("image/avif, image/webp, */*;q=0.8", Form::Text),
            ("image/png", Form::Text),
        ] {
            assert_eq!(Form::preferred(&accepting(accept)), form, "Accept: {accept}");
        }
    }

    #[test]
    fn a_page_escapes_what_it_repeats() {
        let refusal = Refusal::Host("<script>\"&{{id}}");
        let (_, body) = of(&refusal, &refusal.facts(), &accepting("text/html"), "<id>");
        assert!(body.contains("Host: &lt;script&gt;&quot;&amp;{{id}}."), "{body}");
        assert!(body.contains("<dd>&lt;id&gt;</dd>"), "{body}");
    }

    #[test]
    fn a_problem_has_the_reason_and_the_id() {
        let refusal = Refusal::QueueFull { limit: 7 };
        let (head, body) = of(&refusal, &refusal.facts(), &accepting("application/json"), "abc");
        assert_eq!(head.fields.get("content-type"), Some(&b"application/problem+json"[..]));
        let problem: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(
            problem,
            json!({
                "type": "about:blank", "title": "Service Unavailable", "status": 503, "reason": "queue_full",
                "detail": "the queue is full: 7 requests wait already", "request_id": "abc",
            })
        );
    }
}
