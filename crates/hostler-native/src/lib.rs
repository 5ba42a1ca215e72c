//! Services that Hostler answers itself, from data in memory: the places of addresses and of postal codes. Knows no
//! routes.

mod cors;
mod form;
pub mod geo;
mod head;
mod json_item;
mod openapi;
pub mod postal;
pub mod problem;
mod query;
mod request;
pub mod tag;

use std::fmt::Display;
use std::sync::{Arc, OnceLock};

use geo::Geo;
use hostler_config::Origin;
use hostler_wire::Whole;
use postal::Postal;

pub use request::{LookupRequest, Nearest};

/// The most bytes of a request's body. The largest batch is far smaller.
pub const MOST_BODY: u64 = 1 << 20;

/// The services of one route, below the route's prefix.
pub struct Native {
    /// The places of addresses.
    pub geo: Option<Arc<Geo>>,
    /// The places of postal codes.
    pub postal: Option<Arc<Postal>>,
    /// The prefix of the route, decoded and without a final slash. Empty for a route with one path or with all paths.
    prefix: Box<str>,
    /// The OpenAPI description, made at the first request for it.
    openapi: OnceLock<Whole>,
}

impl Native {
    /// These services below a prefix.
    pub fn new(geo: Option<Arc<Geo>>, postal: Option<Arc<Postal>>, prefix: Box<str>) -> Self {
        Self { geo, postal, prefix, openapi: OnceLock::new() }
    }

    /// The response. `path` is percent-decoded and has no dot segments.
    ///
    /// First the part after the prefix is looked up, then the whole path. So `/lookup/*` has `/lookup/geo/8.8.8.8`, and
    /// `/geo/*` has `/geo/8.8.8.8`, not only `/geo/geo/8.8.8.8`.
    pub fn answer(&self, request: &LookupRequest<'_>, path: &[u8]) -> Whole {
        // A route that ignores the case of paths accepts other spellings of its prefix, with the same length.
        let behind = path.get(self.prefix.len()..).filter(|_| !self.prefix.is_empty());
        let known = behind.into_iter().chain([path]).find_map(|path| self.known(request, path));
        known.unwrap_or_else(|| cors::allow(self.origins(path), request, self.not_found()))
    }

    fn not_found(&self) -> Whole {
        match (&self.geo, &self.postal) {
            (Some(geo), _) => geo.not_found(),
            (None, Some(postal)) => postal.not_found(),
            (None, None) => unreachable!("invariant: a native route has at least one service"),
        }
    }

    /// A refusal for this path as a problem document. The pages that may read responses may read it too.
    pub fn refuse(&self, request: &LookupRequest<'_>, path: &[u8], status: u16, why: impl Display) -> Whole {
        cors::allow(self.origins(path), request, problem::problem(status, why))
    }

    /// The origins whose pages may read responses to this path. `/geo` is about clients. Everything else is public where
    /// the service of postal codes is on.
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
        // If the prefix is the name of a service, its paths are complete without it.
        let server = if matches!(&*self.prefix, "/geo" | "/postal") { "" } else { &self.prefix };
        let described = || openapi::describe(self.geo.is_some(), self.postal.is_some(), server);
        let refused = problem::method(request.head.method(), &["GET", "HEAD"]);
        let whole = refused.unwrap_or_else(|| self.openapi.get_or_init(described).clone());
        Some(cors::allow(self.origins(path), request, whole))
    }
}
