//! Who may use the admin listener: its rules, and the check of each request by them. Knows no commands and no answers.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::extract::connect_info::ConnectInfo;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hostler_config::Secret;
use hostler_engine::journal::{Journal, Level, SeldomLine};
use subtle::ConstantTimeEq;
use tokio::net::UnixStream;
use tokio::time::Instant;

use super::http::FIELD;
use super::visitors;

/// The paths that need no token. An orchestrator cannot send one.
const HEALTH: &str = "/health";
/// The log has at most one line about wrong tokens in this time.
const COMPLAINT_PAUSE: Duration = Duration::from_secs(10);
const REALM: &str = "realm=\"Hostler admin\"";

/// What a browser must not do with the answers of the admin listener: show them inside another page, or guess their type.
const SAFE: [(HeaderName, &str); 5] = [
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// The rules of the admin listener.
#[derive(Clone, Debug)]
pub struct AccessRules {
    /// Only this machine can connect.
    pub is_local: bool,
    /// The names that `Host` may have, in lower case, besides IP addresses and `localhost`.
    pub hosts: Vec<String>,
    pub token: Option<Secret>,
}

/// The rules of a running Hostler. A reload changes them.
pub struct AdminAccess {
    rules: ArcSwap<AccessRules>,
    journal: Journal,
    /// The line about a wrong token.
    complaint: Mutex<SeldomLine>,
}

/// The other end of an admin connection, for the log.
#[derive(Clone, Debug)]
pub struct AdminClient(String);

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Denial {
    /// It has no token.
    NoToken,
    WrongToken,
    /// No token is set, and a web page could have sent it.
    NoField,
    /// Other machines can connect, and no token is set. The configuration does not allow that.
    Closed,
}

impl AdminAccess {
    pub fn new(rules: AccessRules, journal: Journal) -> Self {
        let rules = ArcSwap::from_pointee(rules);
        Self { rules, journal, complaint: Mutex::default() }
    }

    /// Applies a reload. It may remove the token only if the listener is for this machine alone: a listener for other machines must have a token.
    pub fn update(&self, hosts: Vec<String>, token: Option<Secret>) {
        let old = self.rules.load();
        let token = if old.is_local { token } else { token.or_else(|| old.token.clone()) };
        self.rules.store(Arc::new(AccessRules { is_local: old.is_local, hosts, token }));
    }

    fn complain(&self, peer: Option<&AdminClient>, method: &Method, path: &str) {
        let mut complaint = self.complaint.lock().unwrap_or_else(PoisonError::into_inner);
        if !complaint.is_due(COMPLAINT_PAUSE, Instant::now()) {
            return;
        }
        drop(complaint);
        let peer = peer.map_or("an unknown address", |AdminClient(peer)| peer);
        let text = format!("admin: a request with a wrong token from {peer}: {method} {path}");
        self.journal.event(Level::Warn, &text);
    }
}

impl AdminClient {
    /// A dual-stack socket shows an IPv4 client as `::ffff:192.0.2.1`.
    pub fn at(address: SocketAddr) -> Self {
        Self(SocketAddr::new(address.ip().to_canonical(), address.port()).to_string())
    }

    pub fn of(stream: &UnixStream) -> Self {
        Self(stream.peer_cred().map_or_else(
            |_| "the Unix socket".into(),
            |who| format!("user {} (pid {})", who.uid(), who.pid().unwrap_or_default()),
        ))
    }
}

/// Answers a request itself if the rules refuse it.
pub async fn check(State(access): State<Arc<AdminAccess>>, request: Request, next: Next) -> Response {
    let rules = access.rules.load_full();
    let (method, path, fields) = (request.method(), request.uri().path(), request.headers());
    let mut response = match visitors::objection(method, fields, &rules.hosts) {
        Some(why) => (StatusCode::FORBIDDEN, format!("{why}\n")).into_response(),
        None => match rules.denies(method, path, fields) {
            Some(denial) => {
                if denial == Denial::WrongToken {
                    let peer = request.extensions().get::<ConnectInfo<AdminClient>>();
                    access.complain(peer.map(|ConnectInfo(peer)| peer), method, path);
                }
                denial.answer(is_browsing(method, fields))
            }
            None => next.run(request).await,
        },
    };
    for (name, value) in SAFE {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

impl AccessRules {
    /// Why a request is refused. None: it is allowed. On a listener for this machine alone, reading needs no token. A listener that other machines can
    /// reach shows only the health without it.
    fn denies(&self, method: &Method, path: &str, fields: &HeaderMap) -> Option<Denial> {
        let reads = is_reading(method);
        let is_health =
            path.strip_prefix(HEALTH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if reads && (self.is_local || is_health) {
            return None;
        }
        match &self.token {
            Some(Secret(token)) => match given_token(fields, reads) {
                Some(given) if bool::from(given.as_bytes().ct_eq(token.as_bytes())) => None,
                Some(_) => Some(Denial::WrongToken),
                None => Some(Denial::NoToken),
            },
            None if !self.is_local => Some(Denial::Closed),
            // A custom field makes a browser send a CORS preflight request before it posts for another site's page. Hostler does not
            // answer the preflight. With a token, `Authorization` is such a field.
            None => (!fields.contains_key(FIELD)).then_some(Denial::NoField),
        }
    }
}

impl Denial {
    /// The refusal as a response. `is_browsing`: a browser loads a page. It then asks its user for the token, as the password of `Basic`.
    fn answer(self, is_browsing: bool) -> Response {
        let (status, why) = match self {
            Self::NoToken => (
                StatusCode::UNAUTHORIZED,
                "this request needs the admin token: Authorization: Bearer TOKEN (server.admin_token_file)\n",
            ),
            Self::WrongToken => (StatusCode::UNAUTHORIZED, "the admin token is wrong\n"),
            Self::NoField => (StatusCode::FORBIDDEN, "a command needs the header field Hostler-Command: 1\n"),
            Self::Closed => (
                StatusCode::FORBIDDEN,
                "other machines can reach this listener, and it has no admin token: set server.admin_token_file\n",
            ),
        };
        let mut response = (status, [(header::CACHE_CONTROL, "no-store")], why).into_response();
        if status == StatusCode::UNAUTHORIZED {
            let error = if self == Self::WrongToken { ", error=\"invalid_token\"" } else { "" };
            let schemes = [format!("Bearer {REALM}{error}"), format!("Basic {REALM}, charset=\"UTF-8\"")];
            let schemes = schemes.iter().take(if is_browsing { 2 } else { 1 });
            for scheme in schemes.filter_map(|scheme| HeaderValue::from_str(scheme).ok()) {
                response.headers_mut().append(header::WWW_AUTHENTICATE, scheme);
            }
        }
        response
    }
}

fn is_reading(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// Whether a browser loads a page.
fn is_browsing(method: &Method, fields: &HeaderMap) -> bool {
    let accept = fields.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    is_reading(method) && accept.is_some_and(|accept| accept.contains("text/html"))
}

/// The token as `Bearer`. For reading also as the password of `Basic`, with any user name: a browser can send that. A browser sends `Basic`
/// by itself, so a command does not accept it.
fn given_token(fields: &HeaderMap, reads: bool) -> Option<String> {
    let (scheme, value) = fields.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let value = value.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(value.to_owned());
    }
    if !reads || !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(BASE64_STANDARD.decode(value).ok()?).ok()?;
    decoded.split_once(':').map(|(_, password)| password.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "a-token-of-some-length";

    fn denied(is_local: bool, token: Option<&str>, request: (Method, &str), field: &str) -> Option<Denial> {
        let rules = AccessRules { is_local, hosts: Vec::new(), token: token.map(|text| Secret(text.into())) };
        let fields = field.split_once(": ").into_iter().map(|(name, value)| {
            (name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap())
        });
        rules.denies(&request.0, request.1, &fields.collect())
    }

    #[test]
    fn reading_needs_the_token_only_where_other_machines_can_connect() {
        let get = |path| (Method::GET, path);
        for token in [None, Some(TOKEN)] {
            assert_eq!(denied(true, token, get("/status"), ""), None);
        }
        assert_eq!(denied(false, Some(TOKEN), get("/status"), ""), Some(Denial::NoToken));
        assert_eq!(denied(false, Some(TOKEN), get("/healthy"), ""), Some(Denial::NoToken));
        assert_eq!(denied(false, None, get("/status"), ""), Some(Denial::Closed));
        for path in ["/health", "/health/live", "/health/ready/app"] {
            assert_eq!(denied(false, Some(TOKEN), get(path), ""), None);
            assert_eq!(denied(false, Some(TOKEN), (Method::POST, path), ""), Some(Denial::NoToken));
        }
        let basic = format!("authorization: Basic {}", BASE64_STANDARD.encode(format!("me:{TOKEN}")));
        let bearer = format!("authorization: bearer {TOKEN}");
        for field in [&basic, &bearer] {
            assert_eq!(denied(false, Some(TOKEN), get("/status"), field), None, "{field}");
        }
        let wrong = "authorization: Bearer a-token-of-some-lengtH";
        assert_eq!(denied(false, Some(TOKEN), get("/status"), wrong), Some(Denial::WrongToken));
    }

    #[test]
    fn a_command_needs_the_token_everywhere_and_never_by_basic() {
        let post = || (Method::POST, "/restart");
        let bearer = format!("authorization: Bearer {TOKEN}");
        let basic = format!("authorization: Basic {}", BASE64_STANDARD.encode(format!("me:{TOKEN}")));
        for is_local in [true, false] {
            assert_eq!(denied(is_local, Some(TOKEN), post(), &bearer), None);
            for field in ["", "hostler-command: 1", &basic] {
                assert_eq!(denied(is_local, Some(TOKEN), post(), field), Some(Denial::NoToken), "{field}");
            }
            let longer = format!("{bearer}x");
            assert_eq!(denied(is_local, Some(TOKEN), post(), &longer), Some(Denial::WrongToken));
        }
        assert_eq!(denied(true, None, post(), "hostler-command: 1"), None);
        assert_eq!(denied(true, None, post(), ""), Some(Denial::NoField));
        assert_eq!(denied(false, None, post(), "hostler-command: 1"), Some(Denial::Closed));
    }
}
