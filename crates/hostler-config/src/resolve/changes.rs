//! The meaning of `request_headers`, `response_headers` and `rewrite`: valid names, each once, and prefixes that match. Knows no
//! requests.

use http::header::{HeaderName, HeaderValue};

use super::Resolver;
use crate::document::KeyPath;
use crate::file;
use crate::pattern::{MatchPattern, PathPattern};
use crate::resolved::{Changes, HeaderChange, Rewrite};
use crate::value::is_host;

/// Which head is changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HeadKind {
    Request,
    Answer,
}

impl Resolver<'_> {
    /// The meaning of `request_headers`, `response_headers` and `rewrite`.
    pub(super) fn changes(
        &mut self,
        path: &KeyPath,
        written: &file::Route,
        pattern: &MatchPattern,
    ) -> Changes {
        Changes {
            request: self.headers(&path.key("request_headers"), &written.request_headers, HeadKind::Request),
            answer: self.headers(&path.key("response_headers"), &written.response_headers, HeadKind::Answer),
            rewrite: written
                .rewrite
                .as_ref()
                .map(|rewrite| self.rewrite(&path.key("rewrite"), rewrite, pattern)),
            geo_headers: written.geo_headers,
        }
    }

    fn headers(
        &mut self,
        path: &KeyPath,
        written: &file::HeaderChanges,
        head: HeadKind,
    ) -> Vec<HeaderChange> {
        let lines = |key: &'static str, map: &std::collections::BTreeMap<String, String>| {
            let lines =
                map.iter().map(|(name, value)| (path.key(key).key(name), name.clone(), Some(value.clone())));
            (key, lines.collect::<Vec<_>>())
        };
        let removed = written.remove.iter().enumerate();
        let removed = removed.map(|(at, name)| (path.key("remove").index(at), name.clone(), None));
        let all = [
            lines("set", &written.set),
            lines("add", &written.add),
            lines("default", &written.default),
            ("remove", removed.collect()),
        ];
        let mut seen: Vec<HeaderName> = Vec::new();
        let mut changes = Vec::new();
        for (key, here, text, value) in all
            .into_iter()
            .flat_map(|(key, lines)| lines.into_iter().map(move |(at, name, value)| (key, at, name, value)))
        {
            match checked(&text, value.as_deref(), key, head) {
                Ok(name) if seen.contains(&name) => self.refuse(&here, format!("{name} is changed twice")),
                Ok(name) => {
                    seen.push(name);
                    changes.push(match (key, value) {
                        ("set", Some(value)) => HeaderChange::Set(text, value),
                        ("add", Some(value)) => HeaderChange::Add(text, value),
                        (_, Some(value)) => HeaderChange::Default(text, value),
                        (_, None) => HeaderChange::Remove(text),
                    });
                }
                Err(why) => self.refuse(&here, why),
            }
        }
        changes
    }

    fn rewrite(&mut self, path: &KeyPath, written: &file::Rewrite, pattern: &MatchPattern) -> Rewrite {
        if written.strip_prefix.is_none() && written.add_prefix.is_none() {
            let known = ["strip_prefix", "add_prefix"];
            if !known.iter().any(|key| self.document.is_written(&path.key(key))) {
                self.refuse(path, "is empty; add strip_prefix or add_prefix");
            }
        }
        let mut prefix = |key: &str, text: Option<&str>| {
            let text = text.unwrap_or_default();
            if text.contains('?') {
                self.refuse(&path.key(key), format!("{text:?} has a query; only the path can be changed"));
            }
            text.trim_end_matches('/').to_owned()
        };
        let strip = prefix("strip_prefix", written.strip_prefix.as_ref().map(|path| path.0.as_str()));
        let add = prefix("add_prefix", written.add_prefix.as_ref().map(|path| path.0.as_str()));
        // Decoded, as patterns are.
        let strip = match strip.parse::<MatchPattern>() {
            Ok(MatchPattern { host: None, path: PathPattern::Exact(decoded) }) => decoded,
            _ => strip,
        };
        let (PathPattern::Exact(whole) | PathPattern::Prefix(whole)) = &pattern.path;
        let rest = whole.strip_prefix(&strip);
        if !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
            let why = format!("not every path of \"{pattern}\" begins with {strip}");
            self.refuse(&path.key("strip_prefix"), why);
        }
        Rewrite { strip, add }
    }
}

/// Fields that frame the message or belong to the connection. Hostler sets them itself on each side.
const FRAMING: [&str; 9] = [
    "connection",
    "content-length",
    "http2-settings",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// Fields about the client. Hostler sets them itself.
const OURS: [&str; 7] = [
    "expect",
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-request-id",
];

/// The value, if it can be sent. A blank at one of its ends makes a whole HTTP/2 response malformed (RFC 9113 section 8.2.1). It may be a secret, so
/// no error repeats it.
pub(super) fn field_value(text: &str) -> Result<HeaderValue, String> {
    const CANNOT: &str = "which the value of a header field cannot have";
    let is_control = |char: char| char.is_ascii_control() && char != '\t';
    if let Some((number, char)) = (1..).zip(text.chars()).find(|(_, char)| is_control(*char)) {
        return Err(format!("character {number} is {char:?}, {CANNOT}"));
    }
    let value = HeaderValue::from_str(text).ok().filter(|_| text.trim() == text);
    value.ok_or_else(|| format!("begins or ends with a blank, {CANNOT}"))
}

/// A field of a response that Hostler makes, if it is allowed.
pub(super) fn own_field(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    Ok((checked(name, Some(value), "set", HeadKind::Answer)?, field_value(value)?))
}

/// The name, if this change is allowed.
fn checked(name: &str, value: Option<&str>, key: &str, head: HeadKind) -> Result<HeaderName, String> {
    let parsed: HeaderName =
        name.parse().map_err(|_| format!("{name:?} is not a valid name of a header field"))?;
    value.map(field_value).transpose()?;
    let known = parsed.as_str();
    match head {
        _ if FRAMING.contains(&known) => {
            Err("Hostler sets this field itself, because it frames the message".into())
        }
        HeadKind::Request if known == "host" && key != "set" => {
            Err("every request has exactly one; use set".into())
        }
        HeadKind::Request if known == "host" && !value.is_some_and(is_host) => {
            Err(format!("{:?} is not a valid Host", value.unwrap_or_default()))
        }
        HeadKind::Request if OURS.contains(&known) => {
            Err("Hostler sets this field itself; see server.trusted_proxies".into())
        }
        HeadKind::Answer if known == "date" => {
            Err("the server that makes the response sets this field".into())
        }
        _ => Ok(parsed),
    }
}
