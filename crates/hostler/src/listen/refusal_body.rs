//! The body of a refusal, as text, as a page for people or as a problem document (RFC 9457). Knows no connection.

use std::fmt::Write as _;
use std::sync::LazyLock;

use hostler_engine::gateway::{Refusal, RefusalFacts};
use hostler_wire::{Fields, ResponseHead, by_weight, reason_phrase};
use serde::Serialize;

use crate::html::push_escaped;

const PAGE: &str = include_str!("refusal_page.html");

/// The page in parts: a mark such as `status`, and the text after it. The first mark is empty. Under overload the page is made for every
/// request that is refused, so the marks are searched once and not for each page.
static PARTS: LazyLock<Vec<(&str, &str)>> =
    LazyLock::new(|| PAGE.split("{{").map(|part| part.split_once("}}").unwrap_or(("", part))).collect());

/// Room for what the marks of the page become, and for a body of text or JSON.
const BODY_ROOM: usize = 512;
/// Room for the fields of a refusal, so that their memory is not moved as they are added.
const FIELDS_ROOM: (usize, usize) = (8, 448);

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
    head.fields.reserve(FIELDS_ROOM.0, FIELDS_ROOM.1);
    let mut typed = |media: &str| head.fields.add(b"Content-Type", media.as_bytes());
    let body = match Form::preferred(asked) {
        Form::Text => {
            typed("text/plain; charset=utf-8");
            let mut text = String::with_capacity(BODY_ROOM);
            // Here and below: writing to a String does not fail.
            let _ = writeln!(text, "{} {}\n{refusal}", facts.status, reason_phrase(facts.status));
            text
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

/// The members of a problem document, in the order of their names.
#[derive(Serialize)]
struct Problem<'a> {
    detail: String,
    reason: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    request_id: &'a str,
    status: u16,
    title: &'a str,
    r#type: &'a str,
}

fn problem(refusal: &Refusal, facts: &RefusalFacts, id: &str) -> String {
    let members = Problem {
        detail: refusal.to_string(),
        reason: facts.reason,
        request_id: id,
        status: facts.status,
        title: reason_phrase(facts.status),
        r#type: "about:blank",
    };
    // Text and numbers can always be written as JSON.
    let mut json = serde_json::to_string(&members).unwrap_or_default();
    json.push('\n');
    json
}

fn page(refusal: &Refusal, facts: &RefusalFacts, id: &str) -> String {
    let mut page = String::with_capacity(PAGE.len() + BODY_ROOM);
    for (mark, text) in PARTS.iter() {
        match *mark {
            "status" => page.push_str(itoa::Buffer::new().format(facts.status)),
            "phrase" => page.push_str(reason_phrase(facts.status)),
            "title" => page.push_str(title(facts.status)),
            "again" if facts.retry_after.is_some() => page.push_str("<a href=\"\">Try again</a>\n"),
            "reason" => page.push_str(facts.reason),
            "id" if !id.is_empty() => {
                page.push_str("<dt>Request ID</dt><dd>");
                push_escaped(&mut page, id);
                page.push_str("</dd>");
            }
            "sentence" => push_escaped(&mut page, &sentence(refusal)),
            _ => {}
        }
        page.push_str(text);
    }
    page
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
    use serde_json::json;

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
    fn a_page_has_no_mark_left() {
        let refusal = Refusal::QueueFull { limit: 7 };
        let (_, body) = of(&refusal, &refusal.facts(), &accepting("text/html"), "abc");
        assert!(!body.contains("{{") && !body.contains("}}"), "{body}");
        for part in
            ["<title>503 Service Unavailable</title>", "Try again", "<dd>queue_full</dd>", "<dd>abc</dd>"]
        {
            assert!(body.contains(part), "{part} is not in {body}");
        }
        let refusal = Refusal::NoRoute;
        let (_, body) = of(&refusal, &refusal.facts(), &accepting("text/html"), "");
        assert!(!body.contains("Try again") && !body.contains("Request ID"), "{body}");
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
