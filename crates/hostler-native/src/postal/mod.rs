//! The places of postal codes over HTTP: the service, with its current data. Knows no paths and no formats.
//!
//! `dataset` is the service with one state of the data, and what all responses have in common. `paths` has the paths,
//! `compat` those of the original service, `place` what is said about one code, `lists` about many, `near` distances,
//! `batch` requests with many codes. All return `rows`, and `form` writes them.

mod batch;
mod compat;
mod dataset;
mod form;
mod lists;
mod near;
mod paths;
mod place;
mod ready;
mod rows;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use dataset::PostalDataset;
use form::Number;
use hostler_config as config;
use hostler_lookup::postal::{Point, PostalError};
use hostler_wire::Whole;
use jiff::Timestamp;
use rows::{Rows, Unit};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::LookupRequest;
use crate::form::AnswerFormat;
use crate::head;
use crate::problem::{method, problem};
use crate::query::QueryString;
use crate::{Nearest, cors};

/// The attribution that the licence of the data asks for (CC BY 4.0).
const THANKS: &str = "Postal codes: GeoNames, https://www.geonames.org, CC BY 4.0";

/// The service.
pub struct Postal {
    settings: Arc<config::Postal>,
    /// The folder for copies of packs.
    temp_dir: PathBuf,
    dataset: ArcSwap<PostalDataset>,
    reloads: Arc<AtomicU64>,
}

/// The service's part of Hostler's status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PostalStatus {
    /// A name that changes with the data.
    pub dataset: String,
    /// The number of countries.
    pub countries: u64,
    /// The number of places.
    pub places: u64,
    /// The bytes of the data, mapped or not.
    pub bytes: u64,
    /// How many times newer data has replaced it.
    pub reloads: u64,
}

impl Postal {
    /// Reads the data. Takes a while with large texts. The count of the service before goes on.
    pub fn open(
        settings: &config::Postal,
        temp_dir: &Path,
        before: Option<&Self>,
    ) -> Result<Self, PostalError> {
        let settings = Arc::new(settings.clone());
        let dataset = ArcSwap::from_pointee(PostalDataset::open(&settings, temp_dir)?);
        let reloads = before.map(|before| before.reloads.clone()).unwrap_or_default();
        Ok(Self { settings, temp_dir: temp_dir.to_owned(), dataset, reloads })
    }

    /// The paths of its files.
    pub fn files(&self) -> &[PathBuf] {
        &self.settings.data
    }

    /// The origins whose pages may read responses.
    pub fn origins(&self) -> &[config::Origin] {
        &self.settings.cors
    }

    /// One sentence for each pack of which no copy could be made.
    pub fn remarks(&self) -> Vec<String> {
        self.dataset.load().data().remarks().to_vec()
    }

    /// Reads all files again, and uses them from now on if they are good.
    pub fn renew(&self) -> Result<(), PostalError> {
        self.dataset.store(Arc::new(PostalDataset::open(&self.settings, &self.temp_dir)?));
        self.reloads.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// The service's part of Hostler's status.
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

    /// The response. `None` if the path does not belong to the service.
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
            Err(_) => Err(problem(400, "the path is not percent-encoded UTF-8")),
            Ok(below) if zipinfo.is_some() => dataset.zipinfo(request, below),
            Ok("/meta" | "/meta/" | "/meta.json") => self.meta(request),
            Ok(below) => dataset.ask(request, below.trim_matches('/')),
        };
        Some(cors::allow(&self.settings.cors, request, whole.unwrap_or_else(|problem| problem)))
    }

    /// Facts about the data itself.
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
        let head = head::of(200, "application/json", "no-cache");
        Ok(Whole::new(head, format!("{body}\n")))
    }

    /// The response for a path that no service here has.
    pub fn not_found(&self) -> Whole {
        problem(404, paths::PATHS)
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
