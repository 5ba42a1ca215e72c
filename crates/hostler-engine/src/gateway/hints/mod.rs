//! The Early Hints of a route (RFC 8297): to whom a 103 is sent while a request waits, and from which answers its links are learnt. Knows no
//! queue and no client protocol.
//!
//! The links of one person must not reach another one. So Hostler learns only from what any stranger gets: an answer to a request that says
//! nothing about its sender, and that the answer itself does not call personal. `docs/guide/early-hints.md` lists the rules.

mod learnt;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Context;

use hostler_config::EarlyHintLinks;
use hostler_wire::{Fields, Name, ResponseHead, Version, media_type, tokens};
use serde::Serialize;

use crate::exchange::{Downstream, Exchange, Protocol};
use learnt::{Learnt, head};

/// The Early Hints of a route.
pub struct EarlyHints {
    source: HintSource,
    /// HTTP/1.1 clients get them too.
    http1: bool,
}

enum HintSource {
    /// The configuration names the links.
    Written(Arc<ResponseHead>),
    /// The links of the route's answers.
    Learnt {
        learnt: Mutex<Learnt>,
        /// The newest release of the pool's workers. Asset names of an earlier one may be stale.
        newest: Arc<AtomicU64>,
    },
}

/// What the route hints at now, for the Status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HintsView {
    /// How many requests got a 103.
    pub sent: u64,
    pub hosts: Vec<HostHintsView>,
}

/// The links for requests to one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostHintsView {
    /// None: every host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    pub links: Vec<String>,
}

impl EarlyHints {
    /// `newest` is the newest release of the pool's workers.
    pub fn new(links: &EarlyHintLinks, http1: bool, newest: &Arc<AtomicU64>) -> Self {
        let source = match links {
            EarlyHintLinks::Learn => {
                HintSource::Learnt { learnt: Mutex::default(), newest: Arc::clone(newest) }
            }
            EarlyHintLinks::List(links) => {
                HintSource::Written(Arc::new(head(links.iter().map(|link| link.0.as_bytes()))))
            }
        };
        Self { source, http1 }
    }

    /// Sends a 103 to the client, once for each request: it has just begun to wait.
    pub(super) fn send<D: Downstream>(&self, exchange: &mut Exchange, client: &mut D, cx: &mut Context<'_>) {
        if exchange.log_facts.early_hints > 0 || !self.is_wanted(exchange) {
            return;
        }
        let Some(head) = self.known(exchange.host()) else { return };
        if client.interim(cx, &head) {
            exchange.log_facts.early_hints = head.fields.len() as u32;
        }
    }

    /// Whether the client is known to take them, and would use them: a browser that opens a page.
    fn is_wanted(&self, exchange: &Exchange) -> bool {
        let takes_interim = match exchange.protocol {
            Protocol::Http2 => true,
            Protocol::Http1 => self.http1 && exchange.head.version == Version::Http11,
        };
        let fields = &exchange.head.fields;
        takes_interim
            && exchange.head.method() == b"GET"
            && fields.get("sec-fetch-mode").is_some_and(|mode| mode.eq_ignore_ascii_case(b"navigate"))
            // A page that is fetched in advance must not fetch what belongs to it.
            && fields.get("sec-purpose").is_none()
    }

    fn known(&self, host: &[u8]) -> Option<Arc<ResponseHead>> {
        match &self.source {
            HintSource::Written(head) => Some(Arc::clone(head)),
            HintSource::Learnt { learnt, newest } => {
                let learnt = learnt.lock().unwrap_or_else(PoisonError::into_inner);
                learnt.known(host, newest.load(Ordering::Relaxed))
            }
        }
    }

    /// Learns from the answer of a worker of this release, if any stranger would have got it.
    pub(super) fn learn(&self, exchange: &Exchange, answer: &ResponseHead, release: u64) {
        let HintSource::Learnt { learnt, newest } = &self.source else { return };
        if release != newest.load(Ordering::Relaxed) || !is_page(answer) || !is_from_a_stranger(exchange) {
            return;
        }
        if is_personal(&answer.fields) || !exchange.to_client.keeps(b"link") {
            return;
        }
        let mut learnt = learnt.lock().unwrap_or_else(PoisonError::into_inner);
        learnt.take(exchange.host(), answer.fields.values("link"), release);
    }

    /// What is hinted at now. `sent` requests have got it.
    pub fn view(&self, sent: u64) -> HintsView {
        let texts = |head: &ResponseHead| {
            let lines = head.fields.values("link").map(|link| String::from_utf8_lossy(link).into_owned());
            lines.collect::<Vec<_>>()
        };
        let hosts = match &self.source {
            HintSource::Written(head) => vec![HostHintsView { host: None, links: texts(head) }],
            HintSource::Learnt { learnt, newest } => {
                let learnt = learnt.lock().unwrap_or_else(PoisonError::into_inner);
                let all = learnt.all(newest.load(Ordering::Relaxed));
                all.map(|(host, head)| HostHintsView {
                    host: Some(String::from_utf8_lossy(host).into_owned()),
                    links: texts(head),
                })
                .collect()
            }
        };
        HintsView { sent, hosts }
    }
}

/// A whole page.
fn is_page(answer: &ResponseHead) -> bool {
    let kind = media_type(answer.fields.first(Name::ContentType).unwrap_or_default());
    answer.status == 200
        && [&b"text/html"[..], b"application/xhtml+xml"].iter().any(|page| kind.eq_ignore_ascii_case(page))
}

/// The request says nothing about who has sent it.
fn is_from_a_stranger(exchange: &Exchange) -> bool {
    let fields = &exchange.head.fields;
    exchange.head.method() == b"GET"
        && exchange.certificate.is_none()
        && fields.get("cookie").is_none()
        && fields.get("authorization").is_none()
        // The certificate that a proxy in front has seen (RFC 9440).
        && fields.get("client-cert").is_none()
}

/// The answer says that it is for one client, or that it depends on who asks.
fn is_personal(answer: &Fields) -> bool {
    let has = |field: &str, words: &[&[u8]]| {
        answer.values(field).flat_map(tokens).any(|token| {
            let word = token.split(|&byte| byte == b'=').next().unwrap_or_default().trim_ascii();
            words.iter().any(|wanted| word.eq_ignore_ascii_case(wanted))
        })
    };
    answer.get("set-cookie").is_some()
        || has("vary", &[b"cookie", b"authorization", b"*"])
        || has("cache-control", &[b"private", b"no-store"])
}
