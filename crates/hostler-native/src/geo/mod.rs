//! The places of addresses over HTTP: the service, with its current data. Knows no paths and no file formats.
//!
//! `paths` has the paths, `about` what is said about an address, `original` the responses of the original service.

mod about;
mod asked;
mod batch;
mod counters;
mod dataset;
mod facts;
mod headers;
mod meta;
mod original;
mod paths;
mod render;
mod shown;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use counters::GeoCounters;
use dataset::GeoDataset;
use hostler_address::ClientAddress;
use hostler_config as config;
use hostler_lookup::geo::{self as lookup, OpenError};
use hostler_lookup::{DataCopies, Mapping};
use hostler_wire::{RequestHead, Whole};
use original::Original;

pub use counters::GeoStatus;

/// The service.
pub struct Geo {
    settings: config::Geo,
    /// The folder for copies of the databases.
    temp_dir: PathBuf,
    dataset: ArcSwap<GeoDataset>,
    counters: Arc<GeoCounters>,
    original: Original,
}

impl Geo {
    /// Maps copies of the databases, in `temp_dir`. The counters of the service before go on, and its data stays if it has the same databases.
    pub fn open(settings: &config::Geo, temp_dir: &Path, before: Option<&Self>) -> Result<Self, OpenError> {
        let dataset = match before.filter(|before| before.settings.databases == settings.databases) {
            None => Arc::new(GeoDataset::open(settings, Mapping::Copy(temp_dir))?),
            Some(before) if before.settings.decimals == settings.decimals => before.dataset.load_full(),
            Some(before) => Arc::new(before.dataset.load().with_decimals(settings.decimals)),
        };
        Ok(Self {
            dataset: ArcSwap::new(dataset),
            counters: before.map(|before| before.counters.clone()).unwrap_or_default(),
            original: Original::default(),
            settings: settings.clone(),
            temp_dir: temp_dir.to_owned(),
        })
    }

    /// The paths of its databases.
    pub fn databases(&self) -> &[PathBuf] {
        &self.settings.databases
    }

    /// One sentence for each database of which no copy could be made.
    pub fn remarks(&self) -> Vec<String> {
        self.dataset.load().databases.remarks().map(str::to_owned).collect()
    }

    /// The origins whose pages may read responses.
    pub fn origins(&self) -> &[config::Origin] {
        &self.settings.cors
    }

    /// Verifies all files, and uses them from now on if they are good. Returns remarks about them. Takes seconds.
    pub fn renew(&self) -> Result<Vec<String>, OpenError> {
        // One copy for both: the files may be replaced again while they are verified.
        let copies = DataCopies::new(&self.temp_dir);
        let verified = lookup::verify(&self.settings.databases, Mapping::Kept(&copies))?;
        let dataset = GeoDataset::open(&self.settings, Mapping::Kept(&copies))?;
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
}
