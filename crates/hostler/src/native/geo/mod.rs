//! Where addresses are, over HTTP: the paths of the service. Knows no databases.

mod counters;

use std::sync::Arc;

use hostler_wire::ResponseHead;

use crate::exchange::{Exchange, Whole};
use counters::Counters;

/// Flash asked for it before it asked anything else; anybody's page may.
const CROSSDOMAIN: &str = concat!(
    "<?xml version=\"1.0\"?>\n",
    "<!DOCTYPE cross-domain-policy SYSTEM \"http://www.macromedia.com/xml/dtds/cross-domain-policy.dtd\">\n",
    "<cross-domain-policy>\n  <allow-access-from domain=\"*\" />\n</cross-domain-policy>\n",
);

/// The service.
pub struct Geo {
    counters: Counters,
    crossdomain: Whole,
    not_found: Whole,
    status_head: Arc<ResponseHead>,
}

impl Default for Geo {
    fn default() -> Self {
        Self {
            counters: Counters::default(),
            crossdomain: Whole::new(
                head(200, "OK", "text/xml; charset=utf-8", "public, max-age=86400"),
                CROSSDOMAIN,
            ),
            not_found: Whole::new(head(404, "Not Found", "text/plain", "no-store"), "404 Not Found\n"),
            status_head: Arc::new(head(200, "OK", "application/json", "no-store")),
        }
    }
}

impl Geo {
    /// The answer; none where the path is none of the service's.
    pub fn answer(&self, _exchange: &Exchange, path: &[u8]) -> Option<Whole> {
        match path {
            b"/crossdomain.xml" => {
                self.counters.xmls.add();
                Some(self.crossdomain.clone())
            }
            b"/status" => {
                self.counters.status.add();
                let body = self.counters.view().to_string().into();
                Some(Whole { head: self.status_head.clone(), body })
            }
            _ => None,
        }
    }

    /// The answer to what is no path of any service here.
    pub fn not_found(&self) -> Whole {
        self.counters.fnf.add();
        self.not_found.clone()
    }
}

fn head(status: u16, reason: &str, content_type: &str, cache_control: &str) -> ResponseHead {
    let mut head = ResponseHead::new(status, reason);
    head.fields.add(b"Content-Type", content_type.as_bytes());
    head.fields.add(b"Cache-Control", cache_control.as_bytes());
    head
}
