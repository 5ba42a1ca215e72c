//! The responses of the original service, byte for byte. Knows no addresses.

use std::sync::Arc;

use bytes::Bytes;
use hostler_wire::ResponseHead;
use hostler_wire::Whole;

use super::counters::GeoCounters;
use super::dataset::UNKNOWN;
use crate::head;

/// The Flash policy file. It allows pages of every site.
const CROSSDOMAIN: &str = concat!(
    "<?xml version=\"1.0\"?>\n",
    "<!DOCTYPE cross-domain-policy SYSTEM \"http://www.macromedia.com/xml/dtds/cross-domain-policy.dtd\">\n",
    "<cross-domain-policy>\n  <allow-access-from domain=\"*\" />\n</cross-domain-policy>\n",
);

/// Responses that are always the same or differ only in their body. To send one copies nothing.
pub(super) struct Original {
    pub crossdomain: Whole,
    pub not_found: Whole,
    unknown: Whole,
    city: Arc<ResponseHead>,
    status: Arc<ResponseHead>,
}

impl Default for Original {
    fn default() -> Self {
        let city = Arc::new(head::of(200, "text/plain", "private, no-store"));
        Self {
            crossdomain: Whole::new(head::of(200, "text/xml", "public, max-age=86400"), CROSSDOMAIN),
            not_found: Whole::new(head::of(404, "text/plain", "no-store"), "File not found.\n"),
            unknown: Whole { head: city.clone(), body: Bytes::from_static(UNKNOWN) },
            city,
            status: Arc::new(head::of(200, "text/plain", "no-store")),
        }
    }
}

impl Original {
    /// The response to `/get_city`. It is about the client, so no shared cache may store it.
    pub fn city(&self, body: Option<Bytes>) -> Whole {
        body.map_or_else(|| self.unknown.clone(), |body| Whole { head: self.city.clone(), body })
    }

    /// The response to `/status`.
    pub fn status(&self, counters: &GeoCounters) -> Whole {
        Whole { head: self.status.clone(), body: format!("{}\n", counters.original()).into() }
    }
}
