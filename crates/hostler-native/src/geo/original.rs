//! What the original service answered, byte for byte. Knows no addresses.

use std::sync::Arc;

use bytes::Bytes;
use hostler_wire::ResponseHead;
use hostler_wire::Whole;

use super::counters::GeoCounters;
use super::dataset::UNKNOWN;
use super::head;

/// Flash asked for it before it asked anything else; anybody's page may.
const CROSSDOMAIN: &str = concat!(
    "<?xml version=\"1.0\"?>\n",
    "<!DOCTYPE cross-domain-policy SYSTEM \"http://www.macromedia.com/xml/dtds/cross-domain-policy.dtd\">\n",
    "<cross-domain-policy>\n  <allow-access-from domain=\"*\" />\n</cross-domain-policy>\n",
);

/// Answers that are always the same, or differ in their bodies only: to give one copies nothing.
pub(super) struct Original {
    pub crossdomain: Whole,
    pub not_found: Whole,
    unknown: Whole,
    city: Arc<ResponseHead>,
    status: Arc<ResponseHead>,
}

impl Default for Original {
    fn default() -> Self {
        let city = Arc::new(head(200, "text/plain", "private, no-store"));
        Self {
            crossdomain: Whole::new(head(200, "text/xml", "public, max-age=86400"), CROSSDOMAIN),
            not_found: Whole::new(head(404, "text/plain", "no-store"), "File not found.\n"),
            unknown: Whole { head: city.clone(), body: Bytes::from_static(UNKNOWN) },
            city,
            status: Arc::new(head(200, "text/plain", "no-store")),
        }
    }
}

impl Original {
    /// The answer to `/get_city`, which is about the caller and nobody else's to keep.
    pub fn city(&self, body: Option<Bytes>) -> Whole {
        body.map_or_else(|| self.unknown.clone(), |body| Whole { head: self.city.clone(), body })
    }

    /// The answer to `/status`.
    pub fn status(&self, counters: &GeoCounters) -> Whole {
        Whole { head: self.status.clone(), body: format!("{}\n", counters.original()).into() }
    }
}
