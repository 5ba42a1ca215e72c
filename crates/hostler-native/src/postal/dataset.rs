//! The service with one state of the data, and what all its responses have in common. Knows no paths.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hostler_config as config;
use hostler_lookup::Mapping;
use hostler_lookup::postal::{Country, PostalError, PostalFile as Data, PostalTable};
use hostler_wire::{Name, ResponseHead, Whole, parse_http_date};

use super::form::Number;
use super::ready::Ready;
use super::rows::Rows;
use crate::LookupRequest;
use crate::head;
use crate::problem::{problem, repeated};
use crate::tag;

/// The cache directives of responses: the data changes a few times a year, and its tag shows a change.
pub(super) const KEPT: &str = "public, max-age=86400, stale-while-revalidate=604800";
pub(super) const NOT_KEPT: &str = "no-store";

/// One state of the data.
pub(super) struct PostalDataset {
    data: Data,
    pub settings: Arc<config::Postal>,
    /// The beginning of every tag: it stands for the data and the settings that change its form.
    name: String,
    modified: Option<SystemTime>,
    pub ready: Ready,
}

/// How a response is sent.
pub(super) struct PostalReply<'a> {
    /// Its content type.
    pub kind: &'a str,
    /// Its `Cache-Control`.
    pub kept: &'a str,
    /// It depends on `Accept`.
    pub varies: bool,
}

/// The result of a question: rows, or an error response.
pub(super) type PostalAnswer<'a> = Result<(Rows<'a>, Number), Whole>;

impl PostalDataset {
    pub fn open(settings: &Arc<config::Postal>, temp_dir: &Path) -> Result<Self, PostalError> {
        let data = Data::open(&settings.data, Mapping::Copy(temp_dir))?;
        // Another Hostler, or this one with other settings, may send the same data in another form.
        let words = if settings.compat_strings { "c" } else { "" };
        let name = format!("{:08x}{words}-{}", data.fingerprint(), env!("CARGO_PKG_VERSION"));
        let modified = data.made().map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds));
        Ok(Self { data, settings: settings.clone(), name, modified, ready: Ready::new() })
    }

    pub fn data(&self) -> &Data {
        &self.data
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The response with a body, or a 304 if the client has it already.
    pub fn tell(&self, request: &LookupRequest<'_>, told: &PostalReply<'_>, body: Bytes) -> Whole {
        if told.kept == NOT_KEPT {
            return Whole::new(head::of(200, told.kind, told.kept), body);
        }
        let key = key_of(request, told.kind);
        if self.is_known(request, &key) {
            let mut head = ResponseHead::with_status(304);
            self.validators(&mut head, &key, told);
            return Whole::new(head, Bytes::new());
        }
        Whole::new(self.head(&key, told), body)
    }

    /// The head of a response whose tag ends in this key.
    pub fn head(&self, key: &str, told: &PostalReply<'_>) -> ResponseHead {
        let mut head = ResponseHead::with_status(200);
        head.fields.add(b"Content-Type", told.kind.as_bytes());
        self.validators(&mut head, key, told);
        head
    }

    /// The fields that a 304 has too (RFC 9110 section 15.4.5).
    fn validators(&self, head: &mut ResponseHead, key: &str, told: &PostalReply<'_>) {
        head.fields.add(b"Cache-Control", told.kept.as_bytes());
        head.fields.add(b"ETag", self.tag(key).as_bytes());
        if let Some(modified) = self.modified {
            head.fields.add(b"Last-Modified", httpdate::fmt_http_date(modified).as_bytes());
        }
        if told.varies {
            head.fields.add(b"Vary", b"Accept");
        }
    }

    /// Whether the client has the response already (RFC 9110 section 13.2.2: a date counts only without a tag).
    fn is_known(&self, request: &LookupRequest<'_>, key: &str) -> bool {
        let fields = &request.head.fields;
        if fields.first(Name::IfNoneMatch).is_some() {
            return tag::is_known(request, &self.tag(key));
        }
        let since = fields.get("if-modified-since").and_then(parse_http_date);
        self.modified.zip(since).is_some_and(|(modified, since)| modified <= since)
    }

    fn tag(&self, key: &str) -> String {
        format!("\"{}-{key}\"", self.name)
    }

    pub fn country(&self, text: &str) -> Result<(&PostalTable, &Country), Whole> {
        self.data.country(text).ok_or_else(|| {
            let text = repeated(text.as_bytes());
            problem(404, format_args!("there is no country {text}; /postal/countries lists all countries"))
        })
    }

    pub fn us(&self) -> Result<(&PostalTable, &Country), Whole> {
        self.data.country("US").ok_or_else(|| problem(404, "the data has no codes of the US"))
    }
}

pub(super) fn no_state(country: &Country, state: &str) -> Whole {
    problem(404, format_args!("there is no state {} in {}", repeated(state.as_bytes()), country.as_str()))
}

/// The part of the tag that is different for each question and format. A single code is its own key.
fn key_of(request: &LookupRequest<'_>, kind: &str) -> String {
    let target = request.head.target();
    if kind == "application/json"
        && let Some(code) = target.strip_suffix(b"/").unwrap_or(target).rsplit(|&byte| byte == b'/').next()
        && (3..=10).contains(&code.len())
        && code.iter().all(u8::is_ascii_alphanumeric)
    {
        return String::from_utf8_lossy(code).into_owned();
    }
    // With fixed keys, so that all Hostlers of a site make the same tag.
    let mut hasher = DefaultHasher::new();
    (target, kind).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
