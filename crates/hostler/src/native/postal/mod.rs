//! Where postal codes are, over HTTP: the paths of the service, and what its answers have in common. Knows no files.
//!
//! `compat` has the paths of the service that was here before, `place` those about one code, `lists` those about many, `near` distances,
//! `batch` what is posted. All say [`rows::Rows`], and `form` writes them down.

mod batch;
mod compat;
mod form;
mod lists;
mod near;
mod place;
mod ready;
mod rows;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hostler_lookup::postal::{self as lookup, Country, Point, Table};
use hostler_wire::{Name, ResponseHead};

use crate::exchange::{Exchange, Whole};
use crate::native::problem::{self, problem, repeated};
use crate::native::query::Query;
use crate::native::{Nearest, tag};
use form::{Form, Number};
use ready::Ready;
use rows::{Rows, Unit};

/// How long anybody may keep an answer: the data changes a few times a year, and a tag says when.
const KEPT: &str = "public, max-age=86400, stale-while-revalidate=604800";
const NOT_KEPT: &str = "no-store";

/// What can be set.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The paths of the service that was here before answer in its very words.
    pub compat_strings: bool,
    /// `callback=` is heard.
    pub jsonp: bool,
}

/// The service.
pub struct Postal {
    data: lookup::Postal,
    settings: Settings,
    /// What every tag begins with: the data and how it is shown.
    edition: String,
    modified: Option<SystemTime>,
    ready: Ready,
}

/// How an answer is told.
struct Told<'a> {
    /// Its content type.
    kind: &'a str,
    /// Its `Cache-Control`.
    kept: &'a str,
    /// It has come out of `Accept`.
    varies: bool,
}

/// What a question came to: rows, or the answer that says why there are none.
type Answered<'a> = Result<(Rows<'a>, Number), Whole>;

impl Postal {
    /// A service out of these data.
    pub fn new(data: lookup::Postal, settings: Settings) -> Self {
        let shown = u8::from(settings.compat_strings);
        let edition = format!("{:08x}{shown}-{}", data.fingerprint(), env!("CARGO_PKG_VERSION"));
        let modified = data.made().map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds));
        Self { data, settings, edition, modified, ready: Ready::new() }
    }

    /// The answer; none where the path is none of the service's.
    pub fn answer(&self, exchange: &Exchange, path: &[u8]) -> Option<Whole> {
        if let Some(rest) = path.strip_prefix(b"/api/zipinfo/") {
            let Ok(rest) = std::str::from_utf8(rest) else { return Some(no_text()) };
            let simple = rest.strip_prefix("byzip/").and_then(|code| self.at_once(exchange, code));
            return Some(simple.unwrap_or_else(|| {
                let parts: Vec<&str> = rest.split('/').collect();
                self.zipinfo(exchange, &parts)
            }));
        }
        let rest = path.strip_prefix(b"/postal").filter(|rest| rest.is_empty() || rest[0] == b'/')?;
        let Ok(rest) = std::str::from_utf8(rest) else { return Some(no_text()) };
        Some(self.ask(exchange, rest.trim_matches('/')).unwrap_or_else(|problem| problem))
    }

    /// The answer to what is no path of any service here.
    pub fn not_found(&self) -> Whole {
        problem(404, "there are /postal/{country}/{code} and others; /openapi.json has them all")
    }

    fn ask(&self, exchange: &Exchange, path: &str) -> Result<Whole, Whole> {
        let (path, suffix) = Form::split(path);
        let parts: Vec<&str> = path.split('/').collect();
        let posted: Option<for<'a> fn(&'a Self, &batch::Batch) -> Rows<'a>> = match *parts {
            ["batch"] => Some(Self::batch),
            ["validate"] => Some(Self::validate),
            _ => None,
        };
        let methods: &[&str] = if posted.is_some() { &["POST"] } else { &["GET", "HEAD"] };
        if let Some(refused) = problem::method(exchange.head.method(), methods) {
            return Err(refused);
        }
        let query = Query::of(exchange.head.target()).map_err(|detail| problem(400, detail))?;
        let named =
            query.get("format").map(Form::named).transpose().map_err(|detail| problem(400, detail))?;
        let form = suffix.or(named).unwrap_or_else(|| Form::liked(&exchange.head.fields));
        let varies = suffix.or(named).is_none();
        if let Some(answer) = posted {
            let batch = batch::Batch::read(exchange, &query)?;
            let body = self.written(&answer(self, &batch), Number::Many, &query, form)?;
            let told = Told { kind: form.content_type(), kept: NOT_KEPT, varies };
            return Ok(Whole { head: Arc::new(self.bare_head(&told)), body });
        }
        let kept = if parts.last() == Some(&"random") { NOT_KEPT } else { KEPT };
        let told = Told { kind: form.content_type(), kept, varies };
        let key = self.key_of(exchange, told.kind);
        let mut link = None;
        let mut whole = self.tell(exchange, &key, &told, || {
            let (rows, number) = self.rows(&parts, &query, &mut link)?;
            self.written(&rows, number, &query, form)
        })?;
        if let Some(link) = link {
            Arc::make_mut(&mut whole.head).fields.add(b"Link", link.as_bytes());
        }
        Ok(whole)
    }

    /// What a path comes to; `link` takes where a list goes on.
    fn rows(&self, parts: &[&str], query: &Query, link: &mut Option<String>) -> Answered<'_> {
        match *parts {
            ["" | "countries"] => Ok((self.countries(), Number::Many)),
            ["near"] => Ok((self.near_point(query)?, Number::Many)),
            [country] => Ok((self.states(self.country(country)?), Number::Many)),
            [country, "search"] => Ok((self.search(self.country(country)?, query)?, Number::Many)),
            [country, "random"] => Ok((self.random(self.country(country)?), Number::One)),
            [country, codes] if codes.contains(',') => Ok((self.several(country, codes)?, Number::Many)),
            [country, code_or_state] => {
                self.code_or_state(self.country(country)?, code_or_state, query, link)
            }
            [country, code, "nearest"] => {
                Ok((self.nearest_to(self.country(country)?, code, query)?, Number::Many))
            }
            [country, from, "distance", to] => {
                Ok((self.distances(self.country(country)?, from, to, query)?, Number::Many))
            }
            [country, state, city] => {
                Ok((self.city(self.country(country)?, state, city, None)?, Number::Many))
            }
            [country, state, city, county] => {
                Ok((self.city(self.country(country)?, state, city, Some(county))?, Number::Many))
            }
            _ => Err(self.not_found()),
        }
    }

    fn written(&self, rows: &Rows<'_>, number: Number, query: &Query, form: Form) -> Result<Bytes, Whole> {
        let wanted = rows.wanted(query.get("fields")).map_err(|detail| problem(400, detail))?;
        Ok(form::write(rows, &wanted, number, form).into())
    }

    /// Tells what `make` makes, unless the client has it already.
    fn tell(
        &self,
        exchange: &Exchange,
        key: &str,
        told: &Told<'_>,
        make: impl FnOnce() -> Result<Bytes, Whole>,
    ) -> Result<Whole, Whole> {
        if told.kept == NOT_KEPT {
            return Ok(Whole { head: Arc::new(self.bare_head(told)), body: make()? });
        }
        // Whether there is anything comes first: what is unknown has no tag.
        let body = make()?;
        if self.is_known(exchange, key) {
            let mut head = ResponseHead::new(304, "Not Modified");
            self.validators(&mut head, key, told);
            return Ok(Whole::new(head, Bytes::new()));
        }
        Ok(Whole { head: self.head(key, told), body })
    }

    fn head(&self, key: &str, told: &Told<'_>) -> Arc<ResponseHead> {
        let mut head = ResponseHead::new(200, "OK");
        head.fields.add(b"Content-Type", told.kind.as_bytes());
        self.validators(&mut head, key, told);
        Arc::new(head)
    }

    fn bare_head(&self, told: &Told<'_>) -> ResponseHead {
        let mut head = ResponseHead::new(200, "OK");
        head.fields.add(b"Content-Type", told.kind.as_bytes());
        head.fields.add(b"Cache-Control", told.kept.as_bytes());
        head
    }

    /// What a 304 says as well (RFC 9110 section 15.4.5).
    fn validators(&self, head: &mut ResponseHead, key: &str, told: &Told<'_>) {
        head.fields.add(b"Cache-Control", told.kept.as_bytes());
        head.fields.add(b"ETag", self.tag(key).as_bytes());
        if let Some(modified) = self.modified {
            head.fields.add(b"Last-Modified", httpdate::fmt_http_date(modified).as_bytes());
        }
        if told.varies {
            head.fields.add(b"Vary", b"Accept");
        }
    }

    /// Whether the client has it already (RFC 9110 section 13.2.2: a date counts only where no tag is named).
    fn is_known(&self, exchange: &Exchange, key: &str) -> bool {
        let fields = &exchange.head.fields;
        if fields.first(Name::IfNoneMatch).is_some() {
            return tag::is_known(exchange, &self.tag(key));
        }
        let since = fields.get("if-modified-since").and_then(|date| std::str::from_utf8(date).ok());
        let since = since.and_then(|date| httpdate::parse_http_date(date).ok());
        self.modified.zip(since).is_some_and(|(modified, since)| modified <= since)
    }

    fn tag(&self, key: &str) -> String {
        format!("\"{}-{key}\"", self.edition)
    }

    /// What tells an answer from all others out of these data: what was asked, and in which form.
    fn key_of(&self, exchange: &Exchange, kind: &str) -> String {
        use std::hash::{Hash as _, Hasher as _};
        // Its keys are fixed, so that all Hostlers of a site give one tag.
        let mut hasher = std::hash::DefaultHasher::new();
        (exchange.head.target(), kind).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    fn country(&self, text: &str) -> Result<(&Table, &Country), Whole> {
        self.data.country(text).ok_or_else(|| {
            let text = repeated(text.as_bytes());
            problem(
                404,
                format_args!("there are no codes of a country {text}; /postal/countries has those there are"),
            )
        })
    }

    fn us(&self) -> Result<(&Table, &Country), Whole> {
        self.data.country("US").ok_or_else(|| problem(404, "there are no codes of the US in the data"))
    }
}

impl Nearest for Postal {
    fn nearest(&self, latitude: f64, longitude: f64) -> Option<String> {
        let point = Point::new(latitude, longitude)?;
        let rows = Rows::near(self.data.near(point, 1, None), Unit::default());
        let wanted: Vec<usize> = (0..rows.columns.len()).collect();
        (!rows.rows.is_empty()).then(|| form::write(&rows, &wanted, Number::One, Form::Json))
    }
}

fn no_text() -> Whole {
    problem(400, "the path is not UTF-8, percent-encoded")
}
