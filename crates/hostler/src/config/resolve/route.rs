//! The meaning of routes: one target each, no pattern twice, and the catch-all that stands in for none. Knows
//! no requests.

use std::collections::HashMap;
use std::time::Duration;

use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};

use super::Resolver;
use crate::config::document::KeyPath;
use crate::config::error::nearest;
use crate::config::file::{self, Buffer, File, Priority};
use crate::config::pattern::MatchPattern;
use crate::config::resolved::{Body, LoadedFile, Respond, Route, Target};
use crate::config::value::TextOr;

impl Resolver<'_> {
    /// The meaning of `[[routes]]`, or of their absence.
    pub(super) fn routes(&mut self, file: &File) -> Vec<Route> {
        let list = KeyPath::of("routes");
        if file.routes.is_empty() && !self.document.is_written(&list) {
            return self.catch_all(file);
        }
        let mut seen: HashMap<MatchPattern, KeyPath> = HashMap::new();
        let mut routes = Vec::new();
        for (index, written) in file.routes.iter().enumerate() {
            let path = list.index(index);
            let Some(pattern) = self.pattern(&path, written) else { continue };
            if let Some(first) = seen.get(&pattern) {
                let (place, first) =
                    (self.document.place_of_value(&first.key("match")), self.document.original(first));
                self.refuse(
                    &path.key("match"),
                    format!("\"{pattern}\" is matched by {first} already ({place})"),
                );
            }
            seen.insert(pattern.clone(), path.clone());
            if let Some(target) = self.target(&path, written, file) {
                let fallback = written.fallback.as_deref().filter(|_| written.respond.is_none());
                let fallback =
                    fallback.and_then(|what| self.fallback(&path.key("fallback"), what, written.buffer));
                routes.push(Route {
                    pattern,
                    target,
                    buffer: written.buffer,
                    max_body_size: written.max_body_size.unwrap_or(file.server.max_body_size).0,
                    priority: written.priority,
                    fallback,
                });
            }
        }
        routes
    }

    fn catch_all(&mut self, file: &File) -> Vec<Route> {
        let mut pools = file.pools.iter();
        match (pools.next(), pools.next()) {
            (Some((name, pool)), None) => {
                let target = Target::Pool { name: name.clone(), request_timeout: pool.request_timeout.0 };
                return vec![Route {
                    pattern: MatchPattern::ALL,
                    target,
                    buffer: Buffer::Full,
                    max_body_size: file.server.max_body_size.0,
                    priority: Priority::Normal,
                    fallback: None,
                }];
            }
            (Some(_), Some(_)) => {
                let names: Vec<_> = file.pools.keys().map(String::as_str).collect();
                let why = "there are several pools and no [[routes]] that say which request goes where";
                let place = self.document.place_of_key(&KeyPath::default());
                self.report.error(place, format!("{why} (pools: {})", names.join(", ")));
            }
            (None, _) => {
                let all_register = self.document.is_written(&KeyPath::of("registrar"));
                if !all_register && !self.document.is_written(&KeyPath::of("pools")) {
                    let place = self.document.place_of_key(&KeyPath::default());
                    self.report.error(
                        place,
                        "there is nothing to serve: neither [pools.NAME] nor [[routes]] nor [registrar]",
                    );
                }
            }
        }
        Vec::new()
    }

    fn pattern(&mut self, path: &KeyPath, written: &file::Route) -> Option<MatchPattern> {
        if written.pattern.is_none() && !self.document.is_written(&path.key("match")) {
            self.refuse(path, "match is missing: which requests? \"*\" is all of them");
        }
        written.pattern.clone()
    }

    fn target(&mut self, path: &KeyPath, written: &file::Route, file: &File) -> Option<Target> {
        match (&written.pool, &written.respond) {
            (Some(_), Some(_)) => {
                self.refuse(&path.key("respond"), "a route has exactly one target: pool or respond");
                None
            }
            (None, None) => {
                if !["pool", "respond"].iter().any(|key| self.document.is_written(&path.key(key))) {
                    self.refuse(path, "it leads nowhere: add pool or respond");
                }
                None
            }
            (Some(name), None) => self.pool_target(path, name, written, file),
            (None, Some(respond)) => {
                for key in ["buffer", "max_body_size", "request_timeout", "priority", "fallback"] {
                    if self.document.is_written(&path.key(key)) {
                        self.refuse(&path.key(key), "has no meaning beside respond");
                    }
                }
                self.respond(&path.key("respond"), respond).map(Target::Respond)
            }
        }
    }

    fn pool_target(
        &mut self,
        path: &KeyPath,
        name: &str,
        written: &file::Route,
        file: &File,
    ) -> Option<Target> {
        let Some(pool) = file.pools.get(name) else {
            let known: Vec<_> = file.pools.keys().map(String::as_str).collect();
            if !self.document.is_written(&KeyPath::of("pools").key(name)) {
                let help = match nearest(name, known.iter().copied()) {
                    Some(near) => format!(", did you mean \"{near}\"?"),
                    None if known.is_empty() => "; there are no [pools.NAME] at all".into(),
                    None => format!("; there are: {}", known.join(", ")),
                };
                self.refuse(&path.key("pool"), format!("there is no pool \"{name}\"{help}"));
            }
            return None;
        };
        let request_timeout: Duration = written.request_timeout.unwrap_or(pool.request_timeout).0;
        Some(Target::Pool { name: name.into(), request_timeout })
    }

    fn respond(&mut self, path: &KeyPath, written: &TextOr<file::Respond>) -> Option<Respond> {
        let written = match written {
            TextOr::Text(body) => &file::Respond { body: body.clone(), ..file::Respond::default() },
            TextOr::Table(table) => table,
        };
        let status = u16::try_from(written.status.0).ok().and_then(|code| StatusCode::from_u16(code).ok())?;
        let bodiless =
            [StatusCode::NO_CONTENT, StatusCode::RESET_CONTENT, StatusCode::NOT_MODIFIED].contains(&status);
        if bodiless && !written.body.is_empty() {
            self.refuse(&path.key("body"), format!("an answer with status {} has no body", status.as_u16()));
        }
        let body = match &written.file {
            Some(name) => Body::File(self.file_to_send(path, name, status, bodiless)?),
            None => Body::Text(written.body.clone()),
        };
        let mut headers = HeaderMap::new();
        for (name, value) in &written.headers {
            let here = path.key("headers").key(name);
            match header_field(name, value) {
                Ok((name, value)) if headers.contains_key(&name) => {
                    self.refuse(&here, format!("{name} is there twice ({value:?})"));
                }
                Ok((name, value)) => {
                    headers.insert(name, value);
                }
                Err(why) => self.refuse(&here, why),
            }
        }
        if !bodiless {
            let kind = match &body {
                Body::Text(_) => "text/plain; charset=utf-8",
                Body::File(file) => &file.content_type,
            };
            let kind = HeaderValue::from_str(kind).expect("invariant: a media type is ASCII");
            headers.entry(header::CONTENT_TYPE).or_insert(kind);
        }
        Some(Respond { status, headers, body })
    }

    fn file_to_send(
        &mut self,
        respond: &KeyPath,
        name: &str,
        status: StatusCode,
        bodiless: bool,
    ) -> Option<LoadedFile> {
        let path = respond.key("file");
        if bodiless {
            self.refuse(&path, format!("an answer with status {} has no body", status.as_u16()));
        }
        if self.document.is_written(&respond.key("body")) {
            self.refuse(&path, "there is a body already; write one of the two");
        }
        self.loaded_file(&path, name)
    }
}

fn header_field(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let framing =
        [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONNECTION, header::TE, header::TRAILER];
    let name: HeaderName = name.parse().map_err(|_| format!("{name:?} is not the name of a header field"))?;
    let value =
        HeaderValue::from_str(value).map_err(|_| format!("{value:?} cannot stand in a header field"))?;
    match framing.contains(&name) || name == header::UPGRADE || name == "keep-alive" {
        true => Err("is set by the server, as it frames the message".into()),
        false => Ok((name, value)),
    }
}
