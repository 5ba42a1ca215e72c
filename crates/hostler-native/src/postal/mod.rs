//! Where postal codes are, over HTTP: the service, whatever data it has at the moment. Knows no paths and no forms.
//!
//! `dataset` is the service out of one state of the data: which path asks what, and what all answers have in common. `compat` has the
//! paths of the service that was here before, `place` those about one code, `lists` those about many, `near` distances, `batch` what
//! is posted. All say `rows`, and `form` writes them down.

mod batch;
mod compat;
mod dataset;
mod form;
mod lists;
mod near;
mod place;
mod ready;
mod rows;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use dataset::Dataset;
use form::Number;
use hostler_config as config;
use hostler_lookup::postal::{Point, PostalError};
use hostler_wire::ResponseHead;
use hostler_wire::Whole;
use jiff::Timestamp;
use rows::{Rows, Unit};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::LookupRequest;
use crate::form::AnswerFormat;
use crate::problem::{method, problem};
use crate::query::QueryString;
use crate::{Nearest, cors};

/// What the licence of the data asks for (CC BY 4.0).
const THANKS: &str = "Postal codes: GeoNames, https://www.geonames.org, CC BY 4.0";

/// The service.
pub struct Postal {
    settings: Arc<config::Postal>,
    dataset: ArcSwap<Dataset>,
    reloads: AtomicU64,
}

/// Its part of Hostler's status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PostalStatus {
    /// Which state of the data it is.
    pub dataset: String,
    /// How many countries it has.
    pub countries: u64,
    /// How many places.
    pub places: u64,
    /// How many bytes they take, mapped or not.
    pub bytes: u64,
    /// How often newer data took over.
    pub reloads: u64,
}

impl Postal {
    /// Reads the data. Takes a while with large texts.
    pub fn open(settings: &config::Postal) -> Result<Self, PostalError> {
        let settings = Arc::new(settings.clone());
        let dataset = ArcSwap::from_pointee(Dataset::open(&settings)?);
        Ok(Self { settings, dataset, reloads: AtomicU64::new(0) })
    }

    /// The files that it was opened with.
    pub fn files(&self) -> &[PathBuf] {
        &self.settings.data
    }

    /// Whose pages may read answers.
    pub fn origins(&self) -> &[config::Origin] {
        &self.settings.cors
    }

    /// Reads all of the files anew, and goes over to them if they are good.
    pub fn renew(&self) -> Result<(), PostalError> {
        self.dataset.store(Arc::new(Dataset::open(&self.settings)?));
        self.reloads.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Its part of Hostler's status.
    pub fn status(&self) -> PostalStatus {
        let dataset = self.dataset.load();
        PostalStatus {
            dataset: dataset.name().to_owned(),
            countries: dataset.data().countries().count() as u64,
            places: dataset.data().len(),
            bytes: dataset.data().bytes(),
            reloads: self.reloads.load(Ordering::Relaxed),
        }
    }

    /// The answer; none where the path is none of the service's.
    pub fn answer(&self, request: &LookupRequest<'_>, path: &[u8]) -> Option<Whole> {
        let dataset = self.dataset.load();
        let zipinfo = path.strip_prefix(b"/api/zipinfo/");
        if let Some(code) = zipinfo.and_then(|rest| rest.strip_prefix(b"byzip/"))
            && let Some(whole) = dataset.at_once(request, code)
        {
            return Some(whole);
        }
        let is_below = |rest: &&[u8]| matches!(rest.first(), None | Some(b'/' | b'.'));
        let postal = || path.strip_prefix(b"/postal").filter(is_below);
        let below = zipinfo.or_else(postal)?;
        let whole = match std::str::from_utf8(below) {
            Err(_) => Err(problem(400, "the path is not UTF-8, percent-encoded")),
            Ok(below) if zipinfo.is_some() => dataset.zipinfo(request, below),
            Ok("/meta" | "/meta/" | "/meta.json") => self.meta(request),
            Ok(below) => dataset.ask(request, below.trim_matches('/')),
        };
        Some(cors::allow(&self.settings.cors, request, whole.unwrap_or_else(|problem| problem)))
    }

    /// What there is to know about the data itself.
    fn meta(&self, request: &LookupRequest<'_>) -> Result<Whole, Whole> {
        if let Some(refused) = method(request.head.method(), &["GET", "HEAD"]) {
            return Err(refused);
        }
        let PostalStatus { dataset, countries, places, bytes, reloads } = self.status();
        let made =
            self.dataset.load().data().made().and_then(|made| Timestamp::from_second(made as i64).ok());
        let body = json!({
            "edition": dataset,
            "made": made.map(|made| made.to_string()),
            "countries": countries,
            "places": places,
            "bytes": bytes,
            "reloads": reloads,
            "attribution": THANKS,
        });
        let mut head = ResponseHead::with_status(200);
        head.fields.add(b"Content-Type", b"application/json");
        head.fields.add(b"Cache-Control", b"no-cache");
        Ok(Whole::new(head, format!("{body}\n")))
    }

    /// The answer to what is no path of any service here.
    pub fn not_found(&self) -> Whole {
        problem(404, dataset::PATHS)
    }
}

impl Nearest for Postal {
    fn nearest(
        &self,
        at: (f64, f64),
        query: &QueryString,
        form: AnswerFormat,
    ) -> Result<Option<String>, String> {
        let dataset = self.dataset.load();
        let Some(point) = Point::new(at.0, at.1) else { return Ok(None) };
        let rows = Rows::near(dataset.data().near(point, 1, None), Unit::of(query.get("unit"))?);
        let wanted = rows.wanted(query.list("fields"))?;
        Ok((!rows.rows.is_empty()).then(|| form::write(&rows, &wanted, Number::One, form)))
    }
}
