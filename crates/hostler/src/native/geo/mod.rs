//! Where addresses are, over HTTP: the paths of the service and who may ask. Knows no files and no forms.

mod asked;
mod batch;
mod counters;
mod edition;
mod facts;
mod headers;
mod meta;
mod original;
mod render;

use std::net::IpAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use hostler_address::Kind;
use hostler_lookup::geo::{self as lookup, Broken, OpenError};
use hostler_wire::ResponseHead;

use super::problem::{method, problem, repeated};
use super::tag::{self, Tagged};
use super::{Nearest, cors};
use crate::config::{self, Lookups};
use crate::exchange::{Body, Exchange, Whole};
use asked::Asked;
use counters::Counters;
use edition::Edition;
use facts::{Facts, Field};
use original::Original;
use render::Form;

pub use counters::GeoStatus;

/// What is read with GET.
const READ: &[&str] = &["GET", "HEAD"];

/// The service.
pub struct Geo {
    settings: config::Geo,
    edition: ArcSwap<Edition>,
    counters: Arc<Counters>,
    original: Original,
}

/// Whose address is asked about.
#[derive(Clone, Copy)]
enum Whose {
    /// That of whoever asks.
    Own,
    /// One that he has named.
    Named(IpAddr),
}

impl Geo {
    /// Maps the databases; `before`, whose counts go on, keeps its own.
    pub fn open(settings: &config::Geo, before: Option<&Self>) -> Result<Self, OpenError> {
        let edition = match before {
            Some(before) if before.has_the_same(settings) => before.edition.load_full(),
            _ => Arc::new(Edition::open(&settings.databases, settings.decimals)?),
        };
        Ok(Self {
            edition: ArcSwap::new(edition),
            counters: before.map(|before| before.counters.clone()).unwrap_or_default(),
            original: Original::default(),
            settings: settings.clone(),
        })
    }

    /// What was made of its records can stay.
    fn has_the_same(&self, settings: &config::Geo) -> bool {
        self.settings.databases == settings.databases && self.settings.decimals == settings.decimals
    }

    /// The files that it was opened with.
    pub fn databases(&self) -> &[std::path::PathBuf] {
        &self.settings.databases
    }

    /// Looks at all of the files, and goes over to them if they are good; what is odd about them. Takes seconds.
    pub fn renew(&self) -> Result<Vec<String>, OpenError> {
        let verified = lookup::verify(&self.settings.databases)?;
        let edition = Edition::open(&self.settings.databases, self.settings.decimals)?;
        self.edition.store(Arc::new(edition));
        self.counters.reloads.add();
        Ok(verified.warnings)
    }

    /// Its part of Hostler's status.
    pub fn status(&self) -> GeoStatus {
        let Counters { lookups, unknown, broken, reloads, .. } = &*self.counters;
        GeoStatus {
            lookups: lookups.get(),
            unknown: unknown.get(),
            broken: broken.get(),
            reloads: reloads.get(),
            databases: meta::describe(&self.edition.load()),
        }
    }

    /// The answer; none where the path is none of the service's.
    pub fn answer(&self, exchange: &Exchange, path: &[u8], near: Option<&dyn Nearest>) -> Option<Whole> {
        let whole = match path {
            b"/get_city" => method(exchange.head.method(), READ).unwrap_or_else(|| self.get_city(exchange)),
            b"/crossdomain.xml" => self.answer_original(exchange, &self.original.crossdomain),
            b"/status" => method(exchange.head.method(), READ).unwrap_or_else(|| {
                self.counters.status.add();
                self.original.status(&self.counters)
            }),
            _ => self.geo(exchange, path.strip_prefix(b"/geo")?, near)?,
        };
        Some(cors::allow(&self.settings.cors, exchange, whole))
    }

    /// Says in the request's head where its client is, in the place of whatever was said of that; of a client whose address is
    /// doubtful, nothing: it may be that of a proxy.
    pub fn introduce(&self, exchange: &mut Exchange) {
        let client = exchange.client;
        let lines = if client.doubtful { Ok(None) } else { self.edition.load().headers(client.ip) };
        self.counters.lookups.add();
        let lines = lines.unwrap_or_else(|_| {
            self.counters.broken.add();
            None
        });
        headers::replace(&mut exchange.head.fields, lines.as_ref());
    }

    /// The answer to what is no path of any service here.
    pub fn not_found(&self) -> Whole {
        self.counters.fnf.add();
        self.original.not_found.clone()
    }

    fn answer_original(&self, exchange: &Exchange, whole: &Whole) -> Whole {
        method(exchange.head.method(), READ).unwrap_or_else(|| {
            self.counters.xmls.add();
            whole.clone()
        })
    }

    fn get_city(&self, exchange: &Exchange) -> Whole {
        self.counters.cities.add();
        self.counters.lookups.add();
        let city = self.edition.load().city(exchange.client.ip).unwrap_or_else(|_| {
            self.counters.broken.add();
            None
        });
        if city.is_none() {
            self.counters.unknown.add();
        }
        self.original.city(city)
    }

    /// What lies below `/geo`.
    fn geo(&self, exchange: &Exchange, below: &[u8], near: Option<&dyn Nearest>) -> Option<Whole> {
        let (rest, form) = match below {
            b"" | b"/" => (&b""[..], None),
            // `/geology` is another path.
            _ if !matches!(below[0], b'/' | b'.') => return None,
            _ => Form::split(below),
        };
        let rest = rest.strip_prefix(b"/").unwrap_or(rest);
        let rest = rest.strip_suffix(b"/").unwrap_or(rest);
        let mut segments = rest.split(|&byte| byte == b'/');
        let (first, second) = (segments.next().unwrap_or_default(), segments.next());
        if segments.next().is_some() {
            return None;
        }
        let allowed: &[&str] = if first == b"batch" { &["POST"] } else { READ };
        if let Some(other) = method(exchange.head.method(), allowed) {
            return Some(other);
        }
        Some(match (first, second) {
            (b"", None) => self.all(exchange, Whose::Own, form),
            (b"batch", None) => self.batch(exchange, form),
            (b"meta", None) => self.meta(),
            (b"nearest-zip", None) => self.nearest(exchange, Whose::Own, near),
            (field, None) if !is_address(field) && Shown::named(field).is_some() => {
                self.field(exchange, Whose::Own, field)
            }
            (ip, second) => match address(ip) {
                Err(why) => problem(400, why),
                Ok(ip) => match (self.refusal(exchange), second) {
                    (Some(refusal), _) => refusal,
                    (None, None) => self.all(exchange, Whose::Named(ip), form),
                    (None, Some(b"nearest-zip")) => self.nearest(exchange, Whose::Named(ip), near),
                    (None, Some(field)) => self.field(exchange, Whose::Named(ip), field),
                },
            },
        })
    }

    /// Why he may not ask about others, if so.
    fn refusal(&self, exchange: &Exchange) -> Option<Whole> {
        let is_near =
            || matches!(Kind::of(exchange.client.ip), Kind::Private | Kind::Loopback | Kind::LinkLocal);
        match self.settings.lookups {
            Lookups::Public => None,
            Lookups::PrivateNet if is_near() => None,
            Lookups::PrivateNet => {
                Some(problem(403, "other addresses than your own are looked up for the own network only"))
            }
            Lookups::Off => Some(problem(403, "other addresses than your own are not looked up")),
        }
    }

    /// Whatever is wrong with a record, it is one that nothing is known of.
    fn facts<'a>(&self, edition: &'a Edition, ip: IpAddr, source: Option<&'static str>) -> Facts<'a> {
        self.counters.lookups.add();
        let decimals = self.settings.decimals;
        let facts = edition.facts(ip, source, decimals).unwrap_or_else(|_: Broken| {
            self.counters.broken.add();
            Facts::unknown(ip, source, decimals)
        });
        if facts.place.city(&[]).is_none() {
            self.counters.unknown.add();
        }
        facts
    }

    fn facts_of<'a>(&self, edition: &'a Edition, exchange: &Exchange, whose: Whose) -> Facts<'a> {
        match whose {
            Whose::Own => self.facts(edition, exchange.client.ip, Some(exchange.client.source.as_str())),
            Whose::Named(ip) => self.facts(edition, ip, None),
        }
    }

    /// One item of a batch.
    fn look<'a>(&self, edition: &'a Edition, item: &[u8]) -> Result<Facts<'a>, String> {
        Ok(self.facts(edition, address(item)?, None))
    }

    fn all(&self, exchange: &Exchange, whose: Whose, form: Option<Form>) -> Whole {
        let asked = match Asked::of(query(exchange), &exchange.head.fields, form) {
            Ok(asked) => asked,
            Err(why) => return problem(400, why),
        };
        let edition = self.edition.load();
        let facts = self.facts_of(&edition, exchange, whose);
        // Only the caller's own address has somebody who says so.
        let fields = asked.fields.iter().copied();
        let fields: Vec<_> = match whose {
            Whose::Own => fields.collect(),
            Whose::Named(_) => fields.filter(|field| *field != Field::Source).collect(),
        };
        let body = render::one(&facts, &fields, &asked.languages(), asked.form);
        self.said(exchange, whose, asked.form.content_type(), body)
    }

    fn field(&self, exchange: &Exchange, whose: Whose, name: &[u8]) -> Whole {
        let Some(shown) = Shown::named(name) else {
            return problem(404, format_args!("there is no {}; there are {}", repeated(name), Shown::NAMES));
        };
        let asked = match Asked::of(query(exchange), &exchange.head.fields, Some(Form::Text)) {
            Ok(asked) => asked,
            Err(why) => return problem(400, why),
        };
        let edition = self.edition.load();
        let facts = self.facts_of(&edition, exchange, whose);
        match shown.text(&facts, &asked.languages()) {
            Some(text) => self.said(exchange, whose, Form::Text.content_type(), format!("{text}\n")),
            None => problem(
                404,
                format_args!("{}: that is not known of this address", String::from_utf8_lossy(name)),
            ),
        }
    }

    fn batch(&self, exchange: &Exchange, form: Option<Form>) -> Whole {
        if let Some(refusal) = self.refusal(exchange) {
            return refusal;
        }
        let asked = match Asked::of(query(exchange), &exchange.head.fields, form) {
            Ok(asked) => asked,
            Err(why) => return problem(400, why),
        };
        let body: &[u8] = match &exchange.body {
            Body::Memory(body) => body,
            _ => b"",
        };
        let items = match batch::items(body) {
            Ok(items) => items,
            Err(refusal) => return *refusal,
        };
        let body = batch::body(self, &self.edition.load(), &items, &asked);
        let form = match asked.form {
            form @ (Form::Lines | Form::Csv) => form,
            _ => Form::Json,
        };
        Whole::new(head(200, form.content_type(), "private, no-store"), body)
    }

    fn meta(&self) -> Whole {
        let attribution = self.settings.attribution.as_deref();
        let body = meta::body(&self.edition.load(), attribution, self.counters.reloads.get());
        Whole::new(head(200, Form::Json.content_type(), "no-cache"), format!("{body}\n"))
    }

    fn nearest(&self, exchange: &Exchange, whose: Whose, near: Option<&dyn Nearest>) -> Whole {
        let Some(near) = near else { return problem(404, "there are no postal codes on this route") };
        let edition = self.edition.load();
        let facts = self.facts_of(&edition, exchange, whose);
        let Some((latitude, longitude)) = facts.place.coordinates else {
            return problem(404, "where this address is, is not known");
        };
        match near.nearest(latitude, longitude) {
            Some(body) => self.said(exchange, whose, Form::Json.content_type(), body),
            None => problem(404, "there is no postal code anywhere"),
        }
    }

    /// An answer about an address: nobody but the caller may keep what is about him, and he need not.
    fn said(&self, exchange: &Exchange, whose: Whose, content_type: &str, body: String) -> Whole {
        let Whose::Named(_) = whose else {
            return Whole::new(head(200, content_type, "private, no-store"), body);
        };
        let scope = match self.settings.lookups {
            Lookups::Public => "public",
            // Whether there is an answer depends on who asks.
            Lookups::PrivateNet | Lookups::Off => "private",
        };
        let cache_control = format!("{scope}, max-age={}", self.settings.max_age.as_secs());
        let mut head = head(200, content_type, &cache_control);
        head.fields.add(b"Vary", b"Accept, Accept-Language");
        tag::tagged(exchange, Tagged { head, tag: tag::of(body.as_bytes()), body: body.into() })
    }
}

/// What is shown by itself, as text.
struct Shown(Vec<Field>);

impl Shown {
    const NAMES: &'static str =
        "ip, network, city, district, region, country, continent, coordinates, timezone, postal, type";

    /// By the names that services like this one have had for long; a country and a region are their code.
    fn named(name: &[u8]) -> Option<Self> {
        Some(Self(match name {
            b"country" => vec![Field::CountryCode],
            b"region" => vec![Field::RegionCode, Field::RegionName],
            b"coordinates" => vec![Field::Latitude, Field::Longitude],
            _ => {
                let name = std::str::from_utf8(name).ok()?;
                vec![*Field::ALL.iter().find(|field| field.name() == name)?]
            }
        }))
    }

    fn text(&self, facts: &Facts<'_>, languages: &[&str]) -> Option<String> {
        let texts = self.0.iter().map(|field| facts.get(*field, languages).to_string());
        let mut texts = texts.filter(|text| !text.is_empty());
        match self.0.as_slice() {
            [Field::Latitude, Field::Longitude] => Some(format!("{},{}", texts.next()?, texts.next()?)),
            _ => texts.next(),
        }
    }
}

fn is_address(segment: &[u8]) -> bool {
    address(segment).is_ok()
}

/// An address that was named, as its canonical self.
fn address(text: &[u8]) -> Result<IpAddr, String> {
    let ip = std::str::from_utf8(text).ok().and_then(|text| text.parse::<IpAddr>().ok());
    ip.map(|ip| ip.to_canonical()).ok_or_else(|| format!("{} is not an IP address", repeated(text)))
}

fn query(exchange: &Exchange) -> &[u8] {
    let target = exchange.head.target();
    memchr::memchr(b'?', target).map_or(b"", |at| &target[at + 1..])
}

fn head(status: u16, content_type: &str, cache_control: &str) -> ResponseHead {
    let reason = http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let mut head = ResponseHead::new(status, reason.unwrap_or_default());
    head.fields.add(b"Content-Type", content_type.as_bytes());
    head.fields.add(b"Cache-Control", cache_control.as_bytes());
    head
}
