//! The fallback of a route: which answer replaces a refusal, and for which requests. Knows neither files nor connections.

use std::sync::Arc;

use bytes::Bytes;
use hostler_config::{Fallback, LoadedFile};
use hostler_wire::{Name, tokens, weight};

use super::hypernova;
use super::refusal::Refusal;
use crate::exchange::Exchange;

pub enum FallbackAnswer {
    /// The same for all requests.
    File(Arc<LoadedFile>),
    /// Made for this request: a Hypernova response in JSON.
    Batch(Bytes),
}

impl FallbackAnswer {
    pub fn content_type(&self) -> &str {
        match self {
            Self::File(file) => &file.content_type,
            Self::Batch(_) => "application/json; charset=utf-8",
        }
    }

    /// The whole body. One that was made for this request has no other owner then, so that it counts as memory of its client.
    pub fn into_body(self) -> Bytes {
        match self {
            Self::File(file) => file.body.clone(),
            Self::Batch(json) => json,
        }
    }
}

/// The fallback for this request. None: the client gets the refusal.
pub(super) async fn stand_in(
    fallback: &Fallback,
    exchange: &mut Exchange,
    refusal: &Refusal,
    max_body: u64,
) -> Option<FallbackAnswer> {
    match fallback {
        Fallback::File(file) => is_for(file, exchange).then(|| FallbackAnswer::File(file.clone())),
        Fallback::Hypernova => hypernova::stand_in(exchange, refusal, max_body)
            .await
            .map(|json| FallbackAnswer::Batch(json.into())),
    }
}

/// Only GET and HEAD requests, and HTML only if they accept it. A POST must not get a page that looks like success.
fn is_for(file: &LoadedFile, exchange: &Exchange) -> bool {
    let asks = matches!(exchange.head.method(), b"GET" | b"HEAD");
    asks && (!file.content_type.starts_with("text/html") || accepts_html(exchange))
}

/// Whether `Accept` allows HTML (RFC 9110 section 12.5.1). A missing `Accept` allows everything.
fn accepts_html(exchange: &Exchange) -> bool {
    let mut values = exchange.head.fields.all(Name::Accept).peekable();
    values.peek().is_none() || values.any(allows_html)
}

fn allows_html(value: &[u8]) -> bool {
    tokens(value).any(|range| {
        let mut parts = range.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let kind = parts.next().unwrap_or_default();
        let is_html = [&b"text/html"[..], b"text/*", b"*/*", b"application/xhtml+xml"]
            .iter()
            .any(|html| kind.eq_ignore_ascii_case(html));
        is_html && !parts.any(|parameter| weight(parameter) == Some(0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_navigating_browser_gets_the_fallback_page_and_a_script_that_fetches_data_does_not() {
        let navigates: &[u8] = b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        for accept in [
            navigates,
            b"*/*",
            b"TEXT/HTML",
            b"a/b, text/*;q=0.1",
            b"text/html;level=1; q=0.5",
            b"text/html;q=....",
        ] {
            assert!(allows_html(accept), "{}", accept.escape_ascii());
        }
        for accept in [&b"application/json"[..], b"text/html;q=0", b"text/html; Q=0.00, image/*", b""] {
            assert!(!allows_html(accept), "{}", accept.escape_ascii());
        }
    }
}
