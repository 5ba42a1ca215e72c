//! Services that Hostler answers itself, out of data in memory: where addresses are, and postal codes. Knows no routes.

mod accept;
mod cors;
mod form;
pub mod geo;
mod openapi;
pub mod postal;
pub mod problem;
mod query;
pub mod tag;

use std::fmt::Display;
use std::sync::{Arc, OnceLock};

use form::AnswerFormat;
use geo::Geo;
use hostler_address::ClientAddress;
use hostler_config::Origin;
use hostler_wire::{RequestHead, Whole};
use postal::Postal;
use query::QueryString;

/// What these services read of a request.
#[derive(Clone, Copy)]
pub struct LookupRequest<'a> {
    /// Its head.
    pub head: &'a RequestHead,
    /// The address of its client.
    pub client: ClientAddress,
    /// Its body, read whole; empty where there is none.
    pub body: &'a [u8],
}

/// Bytes of a request's body: far more than the largest batch has.
pub const MOST_BODY: u64 = 1 << 20;

/// Where the nearest postal code is, for the service that knows where somebody is.
pub trait Nearest {
    /// The record nearest to a point (latitude and longitude in degrees), with the fields that a query names; none where there is no
    /// record at all. The error is a sentence for the client.
    fn nearest(
        &self,
        at: (f64, f64),
        query: &QueryString,
        form: AnswerFormat,
    ) -> Result<Option<String>, String>;
}

/// What one route answers, and below which path.
pub struct Native {
    /// Where addresses are.
    pub geo: Option<Arc<Geo>>,
    /// Where postal codes are.
    pub postal: Option<Arc<Postal>>,
    /// The route's prefix, decoded and without a slash at its end; empty for a route that takes one path, or all.
    prefix: Box<str>,
    /// What they answer, for programs to read: made when it is asked for.
    openapi: OnceLock<Whole>,
}

impl Native {
    /// These services, below a prefix.
    pub fn new(geo: Option<Arc<Geo>>, postal: Option<Arc<Postal>>, prefix: Box<str>) -> Self {
        Self { geo, postal, prefix, openapi: OnceLock::new() }
    }

    /// The answer; `path` is percent-decoded and without dot segments. What follows the prefix is looked up first, then the whole: so
    /// `/lookup/*` has `/lookup/geo/8.8.8.8`, and `/geo/*` need not have `/geo/geo/8.8.8.8`.
    pub fn answer(&self, request: &LookupRequest<'_>, path: &[u8]) -> Whole {
        // A route that folds the case of paths takes prefixes that are not written as its own: only their length is the same.
        let behind = path.get(self.prefix.len()..).filter(|_| !self.prefix.is_empty());
        let known = behind.into_iter().chain([path]).find_map(|path| self.known(request, path));
        known.unwrap_or_else(|| match (&self.geo, &self.postal) {
            (Some(geo), _) => geo.not_found(),
            (None, Some(postal)) => postal.not_found(),
            (None, None) => unreachable!("invariant: a native route has at least one service"),
        })
    }

    /// What is said to whoever asks for this path and is not heard: a problem, which those may read who may read answers.
    pub fn refuse(&self, request: &LookupRequest<'_>, path: &[u8], status: u16, why: impl Display) -> Whole {
        cors::allow(self.origins(path), request, problem::problem(status, why))
    }

    /// Whose pages may read what is answered to this path: `/geo` is about visitors, all else is no secret where there are codes.
    fn origins(&self, path: &[u8]) -> &[Origin] {
        let behind = path.get(self.prefix.len()..).unwrap_or_default();
        match (&self.geo, &self.postal) {
            (Some(geo), _) if [behind, path].iter().any(|path| path.starts_with(b"/geo")) => geo.origins(),
            (_, Some(postal)) => postal.origins(),
            (Some(geo), None) => geo.origins(),
            (None, None) => &[],
        }
    }

    fn known(&self, request: &LookupRequest<'_>, path: &[u8]) -> Option<Whole> {
        let near = self.postal.as_deref().map(|postal| postal as &dyn Nearest);
        let geo = self.geo.as_ref().and_then(|geo| geo.answer(request, path, near));
        geo.or_else(|| self.postal.as_ref()?.answer(request, path)).or_else(|| self.described(request, path))
    }

    fn described(&self, request: &LookupRequest<'_>, path: &[u8]) -> Option<Whole> {
        if path != b"/openapi.json" {
            return None;
        }
        if let Some(refused) = problem::method(request.head.method(), &["GET", "HEAD"]) {
            return Some(refused);
        }
        // Where the prefix is the name of a service, its paths stand there whole.
        let server = if matches!(&*self.prefix, "/geo" | "/postal") { "" } else { &self.prefix };
        let described = || openapi::describe(self.geo.is_some(), self.postal.is_some(), server);
        let whole = self.openapi.get_or_init(described).clone();
        Some(cors::allow(self.origins(path), request, whole))
    }
}
