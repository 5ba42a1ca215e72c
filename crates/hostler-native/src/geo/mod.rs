//! The places of addresses over HTTP: the service, its data and its paths. Knows no file formats.

mod about;
mod asked;
mod batch;
mod counters;
mod dataset;
mod facts;
mod headers;
mod meta;
mod original;
mod render;
mod shown;

use std::sync::Arc;

use about::{AboutWhom, address};
use arc_swap::ArcSwap;
use counters::GeoCounters;
use dataset::GeoDataset;
use hostler_address::ClientAddress;
use hostler_config as config;
use hostler_lookup::geo::{self as lookup, OpenError};
use hostler_wire::ResponseHead;
use hostler_wire::{RequestHead, Whole};
use original::Original;
use shown::Shown;

use super::form::AnswerFormat;
use super::problem::{method, problem, repeated};
use super::{Nearest, cors};
use crate::LookupRequest;

pub use counters::GeoStatus;

/// The methods of paths that are read.
const READ: &[&str] = &["GET", "HEAD"];

/// The service.
pub struct Geo {
    settings: config::Geo,
    dataset: ArcSwap<GeoDataset>,
    counters: Arc<GeoCounters>,
    original: Original,
}

impl Geo {
    /// Maps the databases. The counters of the service before go on, and its data stays if the settings are the same.
    pub fn open(settings: &config::Geo, before: Option<&Self>) -> Result<Self, OpenError> {
        let dataset = match before {
            Some(before) if before.has_the_same(settings) => before.dataset.load_full(),
            _ => Arc::new(GeoDataset::open(&settings.databases, settings.decimals)?),
        };
        Ok(Self {
            dataset: ArcSwap::new(dataset),
            counters: before.map(|before| before.counters.clone()).unwrap_or_default(),
            original: Original::default(),
            settings: settings.clone(),
        })
    }

    /// Whether the settings lead to the same data.
    fn has_the_same(&self, settings: &config::Geo) -> bool {
        self.settings.databases == settings.databases && self.settings.decimals == settings.decimals
    }

    /// The paths of its databases.
    pub fn databases(&self) -> &[std::path::PathBuf] {
        &self.settings.databases
    }

    /// The origins whose pages may read responses.
    pub fn origins(&self) -> &[config::Origin] {
        &self.settings.cors
    }

    /// Verifies all files, and uses them from now on if they are good. Returns remarks about them. Takes seconds.
    pub fn renew(&self) -> Result<Vec<String>, OpenError> {
        let verified = lookup::verify(&self.settings.databases)?;
        let dataset = GeoDataset::open(&self.settings.databases, self.settings.decimals)?;
        dataset.may_replace(&self.dataset.load(), &verified.without_cities)?;
        self.dataset.store(Arc::new(dataset));
        self.counters.reloads.add();
        Ok(verified.warnings)
    }

    /// The service's part of Hostler's status.
    pub fn status(&self) -> GeoStatus {
        let GeoCounters { lookups, unknown, broken, reloads, .. } = &*self.counters;
        GeoStatus {
            lookups: lookups.get(),
            unknown: unknown.get(),
            broken: broken.get(),
            reloads: reloads.get(),
            databases: meta::describe(&self.dataset.load()),
        }
    }

    /// The response. `None` if the path does not belong to the service.
    pub fn answer(
        &self,
        request: &LookupRequest<'_>,
        path: &[u8],
        near: Option<&dyn Nearest>,
    ) -> Option<Whole> {
        let whole = match path {
            b"/get_city" => method(request.head.method(), READ).unwrap_or_else(|| self.get_city(request)),
            b"/crossdomain.xml" => self.answer_original(request, &self.original.crossdomain),
            b"/status" => method(request.head.method(), READ).unwrap_or_else(|| {
                self.counters.status.add();
                self.original.status(&self.counters)
            }),
            _ => self.geo(request, path.strip_prefix(b"/geo")?, near)?,
        };
        Some(cors::allow(&self.settings.cors, request, whole))
    }

    /// Sets the fields `X-Geo-*` in a request's head for its member, and removes those that the client sent. A doubtful
    /// address may be that of a proxy, so it gets no fields.
    pub fn introduce(&self, head: &mut RequestHead, client: ClientAddress) {
        let lines = if client.doubtful { Ok(None) } else { self.dataset.load().headers(client.ip) };
        self.counters.lookups.add();
        let lines = lines.unwrap_or_else(|_| {
            self.counters.broken.add();
            None
        });
        headers::replace(&mut head.fields, lines.as_ref());
    }

    /// The response for a path that no service here has.
    pub fn not_found(&self) -> Whole {
        self.counters.fnf.add();
        self.original.not_found.clone()
    }

    fn answer_original(&self, request: &LookupRequest<'_>, whole: &Whole) -> Whole {
        method(request.head.method(), READ).unwrap_or_else(|| {
            self.counters.xmls.add();
            whole.clone()
        })
    }

    fn get_city(&self, request: &LookupRequest<'_>) -> Whole {
        self.counters.cities.add();
        self.counters.lookups.add();
        let city = self.dataset.load().city(request.client.ip).unwrap_or_else(|_| {
            self.counters.broken.add();
            None
        });
        if city.is_none() {
            self.counters.unknown.add();
        }
        self.original.city(city)
    }

    /// The paths below `/geo`.
    fn geo(&self, request: &LookupRequest<'_>, below: &[u8], near: Option<&dyn Nearest>) -> Option<Whole> {
        let (rest, form) = match below {
            b"" | b"/" => (&b""[..], None),
            // `/geology` is another path.
            _ if !matches!(below[0], b'/' | b'.') => return None,
            _ => AnswerFormat::split(below),
        };
        let rest = rest.strip_prefix(b"/").unwrap_or(rest);
        let rest = rest.strip_suffix(b"/").unwrap_or(rest);
        let mut segments = rest.split(|&byte| byte == b'/');
        let (first, second) = (segments.next().unwrap_or_default(), segments.next());
        if segments.next().is_some() {
            let path = repeated(below);
            return Some(problem(
                404,
                format_args!("there is no {path} below /geo; /openapi.json lists the paths"),
            ));
        }
        let allowed: &[&str] = if first == b"batch" { &["POST"] } else { READ };
        if let Some(other) = method(request.head.method(), allowed) {
            return Some(other);
        }
        Some(match (first, second) {
            (b"", None) => self.all(request, AboutWhom::Own, form),
            (b"batch", None) => self.batch(request, form),
            (b"meta", None) => self.meta(),
            (b"nearest-zip", None) => self.nearest(request, AboutWhom::Own, form, near),
            (field, None) if address(field).is_err() && Shown::named(field).is_some() => {
                self.field(request, AboutWhom::Own, field)
            }
            (ip, second) => match address(ip) {
                Err(why) => problem(400, why),
                Ok(ip) => match (self.refusal(request), second) {
                    (Some(refusal), _) => refusal,
                    (None, None) => self.all(request, AboutWhom::Named(ip), form),
                    (None, Some(b"nearest-zip")) => self.nearest(request, AboutWhom::Named(ip), form, near),
                    (None, Some(field)) => self.field(request, AboutWhom::Named(ip), field),
                },
            },
        })
    }
}

fn head(status: u16, content_type: &str, cache_control: &str) -> ResponseHead {
    let mut head = ResponseHead::with_status(status);
    head.fields.add(b"Content-Type", content_type.as_bytes());
    head.fields.add(b"Cache-Control", cache_control.as_bytes());
    head
}
