//! The meaning of `[traces]`. Opens no connection.

use std::net::IpAddr;

use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use percent_encoding::percent_decode_str;
use rustls::pki_types::ServerName;

use super::Resolver;
use crate::document::KeyPath;
use crate::error::SourcePlace;
use crate::file;
use crate::resolved::{CollectorAddress, Traces};
use crate::value::has_port_or_none;

/// The variables of the OpenTelemetry specification, the more specific one first.
const VARIABLES: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];

impl Resolver<'_> {
    /// The meaning of `[traces]`, also if the section is not written.
    pub(super) fn traces(&mut self, written: &file::Traces) -> Traces {
        Traces {
            collector: written.endpoint.as_deref().and_then(|text| self.collector(text, written)),
            sample: u32::try_from(written.sample.get()).unwrap_or(u32::MAX),
            slow: written.slow.0,
            parent_based: written.parent_based,
        }
    }

    fn collector(&mut self, endpoint: &str, written: &file::Traces) -> Option<CollectorAddress> {
        let at = KeyPath::of("traces.endpoint");
        let uri = address(endpoint).map_err(|why| self.refuse(&at, why)).ok()?;
        let is_secure = uri.scheme_str() == Some("https");
        let tls = KeyPath::of("traces.tls");
        if !is_secure && written.tls != file::OutgoingTls::default() {
            self.refuse(&tls, "needs an https:// endpoint");
        }
        let server_name = Some(host(&uri).to_owned());
        let as_for_members = file::MemberTls { server_name, ..written.tls.as_for_members() };
        let tls = if is_secure { Some(self.member_tls(&tls, &as_for_members)?) } else { None };
        let headers = self.collector_headers(&uri, written)?;
        Some(CollectorAddress { uri, headers, tls })
    }

    /// As written, or of the environment. The variable may be meant for the app, so its secrets never leave the machine in plain text.
    fn collector_headers(&mut self, uri: &Uri, written: &file::Traces) -> Option<HeaderMap> {
        let is_private = uri.scheme_str() == Some("https") || is_on_this_machine(uri);
        if let Some(secret) = &written.headers {
            let at = KeyPath::of("traces.headers");
            let headers = headers(&secret.0).map_err(|why| self.refuse(&at, why)).ok()?;
            if !is_private && !headers.is_empty() {
                let place = self.document.place_of_value(&at);
                self.report.warn(
                    place,
                    format!("{at}: Hostler sends these fields in plain text; use an https:// endpoint"),
                );
            }
            return Some(headers);
        }
        let environment = &self.load_context.environment;
        // By the specification an empty variable counts as one that is not set.
        let mut set = VARIABLES.iter().filter_map(|name| {
            environment.get(*name).filter(|text| !text.trim().is_empty()).map(|text| (*name, text))
        });
        let Some((name, text)) = set.next().filter(|_| is_private) else { return Some(HeaderMap::new()) };
        headers(text).map_err(|why| self.report.error(SourcePlace::Named(name.into()), why)).ok()
    }
}

/// The address with its path. OTLP says which path an address without one means.
fn address(text: &str) -> Result<Uri, String> {
    let wrong = || {
        match text.contains(['@', '?']) {
        // A password before the `@` or a key in the query must not be in a message.
        true => "is not an address such as \"http://127.0.0.1:4318\": it has a user, a password or a query; use traces.headers".to_owned(),
        false => format!("{text:?} is not an address such as \"http://127.0.0.1:4318\""),
    }
    };
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(wrong());
    }
    let is_place = |authority: &Authority| !authority.as_str().contains('@') && has_port_or_none(authority);
    let is_wrong = !uri.authority().is_some_and(is_place) || ServerName::try_from(host(&uri)).is_err();
    if is_wrong || uri.query().is_some() {
        return Err(wrong());
    }
    if uri.path() != "/" {
        return Ok(uri);
    }
    format!("{}/v1/traces", text.trim_end_matches('/')).parse().map_err(|_| wrong())
}

fn is_on_this_machine(uri: &Uri) -> bool {
    host(uri) == "localhost" || host(uri).parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// An IPv6 address without its brackets.
fn host(uri: &Uri) -> &str {
    uri.host().unwrap_or_default().trim_matches(['[', ']'])
}

/// `name=value,name=value`. An error names no value, and what could be one: the `=` of `Authorization: Bearer c2VjcmV0=` is the end of a secret.
fn headers(text: &str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (number, pair) in (1..).zip(text.split(',').map(str::trim).filter(|pair| !pair.is_empty())) {
        let (name, value) = pair.split_once('=').ok_or("is not of the form \"name=value,name=value\"")?;
        let name = name.trim();
        let known: HeaderName = name
            .parse()
            .map_err(|_| format!("the text before the first = of field {number} is not a field name"))?;
        if [CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING].contains(&known) {
            return Err(format!("{name} is a field that Hostler sets itself"));
        }
        let decoded: Vec<u8> = percent_decode_str(value.trim()).collect();
        let mut value = HeaderValue::from_bytes(&decoded)
            .map_err(|_| format!("the value of {name} cannot be in a field"))?;
        value.set_sensitive(true);
        headers.append(known, value);
    }
    Ok(headers)
}
