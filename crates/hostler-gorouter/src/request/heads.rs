//! The header fields that registered routes add for members and clients. Knows no pools.

use std::borrow::Cow;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hostler_config::{self as config, Compat, ForwardedClientCert, ForwardedProto};
use hostler_engine::exchange::{Edit, Edits, Exchange, Scheme};
use hostler_engine::proxy::Endpoint;
use hostler_wire::{Name, ResponseHead, tokens};

use super::facts::{Registered, registered, registered_mut};
use super::route::RegisteredRoute;
use super::sticky;

const REQUEST_ID: &str = "X-Vcap-Request-Id";
const APP_INSTANCE: &str = "X-CF-App-Instance";
const CLIENT_CERT: &str = "X-Forwarded-Client-Cert";

impl RegisteredRoute {
    /// Edits that are the same for every member and every answer.
    pub(super) fn prepare(&self, exchange: &mut Exchange) {
        let settings = self.rules.settings();
        let compat = settings.compat == Compat::Gorouter;
        let registered = Registered::new(compat);
        let id: Vec<u8> = registered.id.as_str().into();
        exchange.registered = Some(registered);
        // Gorouter trusts all clients in this. With `compat`, a balancer in front must be the only way to Hostler.
        exchange.client.peer_trusted |= compat;
        exchange.forwarded_proto = match settings.forwarded_proto {
            ForwardedProto::Keep => exchange.forwarded_proto,
            ForwardedProto::Sanitize => Some(exchange.scheme),
            ForwardedProto::Https => Some(Scheme::Https),
        };
        let own = &mut exchange.to_member.own;
        own.push(set(REQUEST_ID, id.clone()));
        own.push(Edit::Remove(APP_INSTANCE.into()));
        own.push(Edit::Default("X-Request-Start".into(), milliseconds().into()));
        forward_certificate(exchange, &settings);
        let own = &mut exchange.to_client.own;
        own.push(Edit::Remove("X-CF-Proxy-Signature".into()));
        own.push(Edit::Default(REQUEST_ID.into(), id));
    }

    /// Edits for this member.
    pub(super) fn add_member_fields(&self, exchange: &mut Exchange, member: &Endpoint) {
        let instance = member.instance.clone();
        let (app, id, index) = match &instance {
            Some(instance) => (instance.app.as_str(), instance.id.as_str(), instance.index.as_str()),
            None => ("", "", ""),
        };
        let id = if id.is_empty() { &member.label } else { id };
        let own = &mut exchange.to_member.own;
        for (name, value) in
            [("X-CF-ApplicationID", app), ("X-CF-InstanceID", id), ("X-CF-InstanceIndex", index)]
        {
            own.push(set(name, fit(value).as_bytes().into()));
        }
        if let Some(registered) = registered_mut(exchange) {
            registered.instance = instance;
        }
    }

    /// Edits of the answer for the client: the session cookie that names the instance, and the fields for which `X-Vcap-Trace` asks.
    pub(super) fn add_client_fields(&self, exchange: &mut Exchange, answer: &ResponseHead) {
        let settings = self.rules.settings();
        let Some(registered) = registered(exchange) else { return };
        if let Some(instance) = registered.instance.as_ref().filter(|instance| is_cookie_value(&instance.id))
        {
            let place = sticky::StickyCookie {
                path: self.cookie_path(exchange),
                sessions: &settings.sticky_session_cookie_names,
                secure: settings.secure_cookies,
                negotiates: settings.sticky_sessions_for_auth_negotiate,
            };
            let stale = registered.sticky.as_ref().is_some_and(|wanted| **wanted != *instance.id);
            if let Some(cookie) = sticky::cookie(&answer.fields, &instance.id, stale, &place) {
                exchange.to_client.own.push(Edit::Add("Set-Cookie".into(), cookie.into()));
            }
        }
        let asked = exchange.head.fields.get("X-Vcap-Trace");
        let is_traced = |key: &String| !key.is_empty() && asked == Some(key.as_bytes());
        if settings.trace_key.as_ref().is_some_and(is_traced) {
            let member = exchange.log_facts.member.as_deref().unwrap_or_default();
            let own = &mut exchange.to_client.own;
            let router = exchange.local.ip().to_canonical().to_string();
            own.push(set("X-Vcap-Router", router.into()));
            own.push(set("X-Vcap-Backend", member.into()));
            own.push(set("X-Cf-Routeendpoint", member.into()));
        }
    }

    /// The path of the sticky cookie: that of the route, in the letters of the request. Browsers compare it with case, and routes may not.
    fn cookie_path<'a>(&'a self, exchange: &'a Exchange) -> &'a str {
        let start = exchange.path().get(..self.context_path.len());
        let written = start.and_then(|start| std::str::from_utf8(start).ok());
        let path = written.filter(|path| path.eq_ignore_ascii_case(&self.context_path));
        let path = path.unwrap_or(&self.context_path);
        if is_cookie_value(path) { path } else { "/" }
    }
}

/// Removes the edits of [`RegisteredRoute::add_client_fields`].
pub(super) fn remove_answer_edits(to_client: &mut Edits) {
    to_client.own.retain(|edit| match edit {
        Edit::Add(name, _) => name != "Set-Cookie",
        Edit::Set(name, _) => !name.starts_with("X-Vcap-") && name != "X-Cf-Routeendpoint",
        Edit::Remove(_) | Edit::Default(..) => true,
    });
}

fn forward_certificate(exchange: &mut Exchange, settings: &config::Platform) {
    let certificate = exchange.certificate.as_deref();
    let edit = match (settings.forwarded_client_cert, certificate) {
        (ForwardedClientCert::AlwaysForward, _) | (ForwardedClientCert::Forward, Some(_)) => return,
        (ForwardedClientCert::Forward | ForwardedClientCert::SanitizeSet, None) => {
            Edit::Remove(CLIENT_CERT.into())
        }
        (ForwardedClientCert::SanitizeSet, Some(der)) => set(CLIENT_CERT, STANDARD.encode(der).into()),
    };
    exchange.to_member.own.push(edit);
}

fn set(name: &'static str, value: Vec<u8>) -> Edit {
    Edit::Set(name.into(), value)
}

fn milliseconds() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_millis().to_string()
}

/// Text from a registration, without characters that cannot stand in a header field.
fn fit(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
        return text.into();
    }
    text.chars().filter(|letter| letter.is_ascii_graphic()).collect()
}

/// Whether the text can be the value of a cookie (RFC 6265 section 4.1.1).
fn is_cookie_value(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_graphic() && !b"\",;\\".contains(&byte);
    !text.is_empty() && text.bytes().all(fits)
}

/// For the log: the `X-Forwarded-For` that the member got, or, if no member got the request, what came from a trusted client.
pub(crate) fn forwarded_for(exchange: &Exchange, was_sent: bool) -> String {
    let came = exchange.head.fields.all(Name::XForwardedFor).flat_map(tokens);
    let came = came.filter(|_| is_trusted(exchange)).map(String::from_utf8_lossy);
    let own = was_sent.then(|| Cow::from(&*exchange.peer_ip));
    came.chain(own).collect::<Vec<_>>().join(", ")
}

/// The same for `X-Forwarded-Proto`.
pub(crate) fn forwarded_proto(exchange: &Exchange, was_sent: bool) -> &str {
    let mut came = exchange.head.fields.all(Name::XForwardedProto);
    let came = came.find(|came| !came.is_empty()).filter(|_| is_trusted(exchange));
    let came = came.map(|came| std::str::from_utf8(came).unwrap_or_default());
    match (exchange.forwarded_proto, came) {
        (_, came) if !was_sent => came.unwrap_or_default(),
        (None, Some(came)) => came,
        (settled, _) => settled.unwrap_or(exchange.scheme).as_str(),
    }
}

/// Whether the client is trusted in these fields. A request that no route matches has not been prepared for it.
fn is_trusted(exchange: &Exchange) -> bool {
    exchange.client.peer_trusted || registered(exchange).is_some_and(|registered| registered.compat)
}
