//! The service with one state of the data: its paths, and what all its responses have in common. Knows no files.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hostler_config as config;
use hostler_lookup::postal::{Country, PostalError, PostalFile as Data, PostalTable};
use hostler_wire::{Name, ResponseHead, Whole, parse_http_date};

use super::batch::PostalBatch;
use super::form::{self, Number};
use super::ready::Ready;
use super::rows::Rows;
use crate::LookupRequest;
use crate::form::AnswerFormat;
use crate::problem::{self, problem, repeated};
use crate::query::QueryString;
use crate::tag;

/// The list of paths, for requests to an unknown one.
pub(super) const PATHS: &str = "for example use /postal/{country}/{code}; /openapi.json lists all paths, /postal/countries all countries";
/// The cache directives of responses: the data changes a few times a year, and its tag shows a change.
const KEPT: &str = "public, max-age=86400, stale-while-revalidate=604800";
const NOT_KEPT: &str = "no-store";

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

/// A function that answers a request with a body.
type Poster = for<'a> fn(&'a PostalDataset, &PostalBatch, &QueryString) -> Result<Rows<'a>, Whole>;

impl PostalDataset {
    pub fn open(settings: &Arc<config::Postal>) -> Result<Self, PostalError> {
        let data = Data::open(&settings.data)?;
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

    /// The response to a path after `/postal/`.
    pub fn ask(&self, request: &LookupRequest<'_>, path: &str) -> Result<Whole, Whole> {
        let (rest, suffix) = AnswerFormat::split(path.as_bytes());
        let path = &path[..rest.len()];
        let parts: Vec<&str> = path.split('/').collect();
        let posted: Option<Poster> = match *parts {
            ["batch"] => Some(Self::batch),
            ["validate"] => Some(Self::validate),
            ["match-close"] => Some(Self::match_close),
            _ => None,
        };
        let methods: &[&str] = if posted.is_some() { &["POST"] } else { &["GET", "HEAD"] };
        if let Some(refused) = problem::method(request.head.method(), methods) {
            return Err(refused);
        }
        let query = QueryString::of(request.head.target()).map_err(|detail| problem(400, detail))?;
        let named = AnswerFormat::said(&query).map_err(|detail| problem(400, detail))?;
        let chosen = suffix.or(named);
        let form = chosen.unwrap_or_else(|| AnswerFormat::liked(&request.head.fields));
        let told = |kept| PostalReply { kind: form.content_type(), kept, varies: chosen.is_none() };
        if let Some(answer) = posted {
            let batch = PostalBatch::read(request, &query)?;
            let body = written(&answer(self, &batch, &query)?, Number::Many, &query, form)?;
            return Ok(self.tell(request, &told(NOT_KEPT), body));
        }
        let mut link = None;
        let (rows, number) = self.rows(&parts, &query, &mut link)?;
        let kept = if parts.last() == Some(&"random") { NOT_KEPT } else { KEPT };
        let mut whole = self.tell(request, &told(kept), written(&rows, number, &query, form)?);
        if let Some(link) = link {
            Arc::make_mut(&mut whole.head).fields.add(b"Link", link.as_bytes());
        }
        Ok(whole)
    }

    /// The result for a path. Sets `link` if a list has more pages.
    fn rows(&self, parts: &[&str], query: &QueryString, link: &mut Option<String>) -> PostalAnswer<'_> {
        let many = |rows| (rows, Number::Many);
        match *parts {
            ["" | "countries"] => Ok(many(self.countries())),
            ["near"] => self.near_point(query).map(many),
            [country] => Ok(many(self.states(self.country(country)?))),
            [country, "search"] => self.search(self.country(country)?, query).map(many),
            [country, "random"] => Ok((self.random(self.country(country)?), Number::One)),
            [country, codes] if codes.contains(',') => self.several(self.country(country)?, codes).map(many),
            [country, code_or_state] => {
                self.code_or_state(self.country(country)?, code_or_state, query, link)
            }
            [country, code, "nearest"] => self.nearest_to(self.country(country)?, code, query).map(many),
            [_, _, "distance"] => {
                Err(problem(400, "name the other codes: /distance/{code}, or several separated by commas"))
            }
            [country, from, "distance", to] => {
                self.distances(self.country(country)?, from, to, query).map(many)
            }
            [country, state, city] => self.city(self.country(country)?, state, city, None).map(many),
            [country, state, city, county] => {
                self.city(self.country(country)?, state, city, Some(county)).map(many)
            }
            _ => Err(problem(404, PATHS)),
        }
    }

    /// The response with a body, or a 304 if the client has it already.
    pub fn tell(&self, request: &LookupRequest<'_>, told: &PostalReply<'_>, body: Bytes) -> Whole {
        if told.kept == NOT_KEPT {
            let mut head = ResponseHead::with_status(200);
            head.fields.add(b"Content-Type", told.kind.as_bytes());
            head.fields.add(b"Cache-Control", told.kept.as_bytes());
            return Whole::new(head, body);
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

fn written(rows: &Rows<'_>, number: Number, query: &QueryString, form: AnswerFormat) -> Result<Bytes, Whole> {
    let wanted = rows.wanted(query.list("fields")).map_err(|detail| problem(400, detail))?;
    Ok(form::write(rows, &wanted, number, form).into())
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
